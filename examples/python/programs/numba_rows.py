"""A product of a sparse matrix and a vector as a kernel of Numba: a work-item a row.

python numba_rows.py [--tuned] [ROWS [LENGTH [ROUNDS]]]

`--tuned` has Headstart look at the kernel's launches; without it the program is one to capture.
"""

import sys

import numpy
from numba import cuda, float32, int32, void


@cuda.jit(void(int32[:], int32[:], float32[:], float32[:], float32[:]))
def rows_times(starts, columns, values, vector, out):
    row = cuda.grid(1)
    if row < out.size:
        total = float32(0)
        for at in range(starts[row], starts[row + 1]):
            total += values[at] * vector[columns[at]]
        out[row] = total


def main(rows: int = 4096, length: int = 256, rounds: int = 200, tuned: bool = False) -> None:
    random = numpy.random.default_rng(7)
    columns = random.integers(0, 1 << 22, rows * length, dtype=numpy.int32)
    starts = numpy.arange(0, rows * length + 1, length, dtype=numpy.int32)
    values = random.integers(0, 8, rows * length).astype(numpy.float32)
    vector = (numpy.arange(1 << 22) % 31).astype(numpy.float32)
    arrays = [cuda.to_device(array) for array in (starts, columns, values, vector)]
    out = cuda.device_array(rows, dtype=numpy.float32)
    if tuned:
        import headstart

        headstart.tuned(rows_times, budget=30)
        # The search, and the launches that are timed in turns.
        for _ in range(20):
            rows_times[(rows + 63) // 64, 64](*arrays, out)
        print(*headstart.reports(), sep="\n", file=sys.stderr)
    begin, end = cuda.event(), cuda.event()
    begin.record()
    for _ in range(rounds):
        rows_times[(rows + 63) // 64, 64](*arrays, out)
    end.record()
    end.synchronize()
    print(f"sum {out.copy_to_host().sum(dtype=numpy.float64):.1f}")
    print(f"{rounds} rounds in {cuda.event_elapsed_time(begin, end):.2f} ms", file=sys.stderr)


if __name__ == "__main__":
    words = [word for word in sys.argv[1:] if word != "--tuned"]
    main(*map(int, words), tuned="--tuned" in sys.argv)
