"""Sums until a threshold, as a kernel that PyTorch's own runtime compiler compiles.

python torch_scan.py [GROUPS [LENGTH [ROUNDS]]]
"""

import sys

import torch

SOURCE = r"""
extern "C" __global__ void scan(const int* order, const float* scores, float* sums, int length, int limit) {
    int own = blockIdx.x * blockDim.x + threadIdx.x, count = gridDim.x * blockDim.x;
    float sum = 0;
    for (int i = 0; i < length && sum < limit; ++i) sum += scores[order[i * count + own]];
    sums[own] = sum;
}
"""


def main(groups: int = 32, length: int = 512, rounds: int = 200) -> None:
    items, entries = groups * 128, 1 << 24
    generator = torch.Generator(device="cuda").manual_seed(7)
    order = torch.randint(entries, (length, items), device="cuda", dtype=torch.int32, generator=generator)
    scores = (torch.arange(entries, device="cuda") % 61).float()
    sums = torch.zeros(items, device="cuda")
    scan = torch.cuda._compile_kernel(SOURCE, "scan")
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    for _ in range(rounds):
        scan((groups, 1, 1), (128, 1, 1), (order, scores, sums, length, 1_000_000))
    end.record()
    end.synchronize()
    print(f"sum {sums.double().sum().item():.1f}")
    print(f"{rounds} rounds in {begin.elapsed_time(end):.2f} ms", file=sys.stderr)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
