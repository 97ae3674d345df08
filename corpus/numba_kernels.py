"""Kernels in Python, compiled by Numba. Needs no GPU: python3 numba_kernels.py numba"""
import re
import sys

from numba import cuda, float32, int32, void


def gather(indices, values, out, items):
    i = cuda.grid(1)
    n = cuda.gridsize(1)
    total = float32(0)
    for j in range(items):
        total += values[indices[j * n + i]]
    out[i] = total


def spmv(rows, columns, a, x, y):
    row = cuda.grid(1)
    if row < y.size:
        total = float32(0)
        for k in range(rows[row], rows[row + 1]):
            total += a[k] * x[columns[k]]
        y[row] = total


def strided(values, out, n):
    start = cuda.grid(1)
    step = cuda.gridsize(1)
    total = float32(0)
    for i in range(start, n, step):
        total += values[i]
    out[start] = total


def row_maxima(rows, values, out):
    row = cuda.grid(1)
    if row < out.size:
        most = float32(-1e30)
        k = rows[row]
        while k < rows[row + 1]:
            most = max(most, values[k])
            k += 2
        out[row] = most


signatures = [
    (gather, void(int32[::1], float32[::1], float32[::1], int32)),
    (spmv, void(int32[::1], int32[::1], float32[::1], float32[::1], float32[::1])),
    (strided, void(float32[::1], float32[::1], int32)),
    (row_maxima, void(int32[::1], float32[::1], float32[::1])),
]
for kernel, signature in signatures:
    text, _ = cuda.compile_ptx(kernel, signature.args, cc=(9, 0), device=False)
    # Numba's names are longer than its kernels.
    text = text.replace(re.search(r"\.entry (\w+)\(", text)[1], "numba_" + kernel.__name__)
    open(f"{sys.argv[1]}_{kernel.__name__}.ptx", "w").write(text)
