"""An embedding bag as a raw kernel of CuPy: sums of rows of a table that indices choose.

python cupy_bag.py [--tuned] [BAGS [ITEMS [ROUNDS]]]

`--tuned` has Headstart look at the kernel's launches; without it the program is one to capture.
"""

import sys

import cupy

SOURCE = r"""
extern "C" __global__ void bag(const unsigned* indices, const float* table, float* sums, unsigned items, unsigned width) {
    unsigned column = threadIdx.x;
    float sum = 0;
    for (unsigned item = 0; item < items; ++item)
        sum += table[(size_t)indices[blockIdx.x * items + item] * width + column];
    sums[blockIdx.x * width + column] = sum;
}
"""


def main(bags: int = 64, items: int = 256, rounds: int = 200, tuned: bool = False) -> None:
    rows, width = 200_000, 128
    random = cupy.random.RandomState(7)
    indices = random.randint(0, rows, bags * items, dtype=cupy.uint32)
    table = cupy.arange(rows * width, dtype=cupy.float32) % 97
    sums = cupy.zeros((bags, width), dtype=cupy.float32)
    kernel = cupy.RawKernel(SOURCE, "bag")
    arguments = (indices, table, sums, cupy.uint32(items), cupy.uint32(width))
    if tuned:
        import headstart

        kernel = headstart.tuned(kernel, budget=30)
        # The search, and the launches that are timed in turns.
        for _ in range(20):
            kernel((bags,), (width,), arguments)
        print(*headstart.reports(), sep="\n", file=sys.stderr)
    begin, end = cupy.cuda.Event(), cupy.cuda.Event()
    begin.record()
    for _ in range(rounds):
        kernel((bags,), (width,), arguments)
    end.record()
    end.synchronize()
    print(f"sum {float(sums.sum(dtype=cupy.float64)):.1f}")
    print(f"{rounds} rounds in {cupy.cuda.get_elapsed_time(begin, end):.2f} ms", file=sys.stderr)


if __name__ == "__main__":
    words = [word for word in sys.argv[1:] if word != "--tuned"]
    main(*map(int, words), tuned="--tuned" in sys.argv)
