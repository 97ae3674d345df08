"""An embedding bag as a raw kernel of CuPy: sums of rows of a table that indices choose.

python cupy_bag.py [BAGS [ITEMS [ROUNDS]]]
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


def main(bags: int = 64, items: int = 256, rounds: int = 200) -> None:
    rows, width = 200_000, 128
    random = cupy.random.RandomState(7)
    indices = random.randint(0, rows, bags * items, dtype=cupy.uint32)
    table = cupy.arange(rows * width, dtype=cupy.float32) % 97
    sums = cupy.zeros((bags, width), dtype=cupy.float32)
    kernel = cupy.RawKernel(SOURCE, "bag")
    begin, end = cupy.cuda.Event(), cupy.cuda.Event()
    begin.record()
    for _ in range(rounds):
        kernel((bags,), (width,), (indices, table, sums, cupy.uint32(items), cupy.uint32(width)))
    end.record()
    end.synchronize()
    print(f"sum {float(sums.sum(dtype=cupy.float64)):.1f}")
    print(f"{rounds} rounds in {cupy.cuda.get_elapsed_time(begin, end):.2f} ms", file=sys.stderr)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
