"""Kernels in Triton. Needs no GPU: python3 triton_kernels.py triton"""
import re
import sys

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def gather_sum(indices, values, out, items, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for j in range(items):
        index = tl.load(indices + j * n + at, mask=at < n, other=0)
        total += tl.load(values + index)
    tl.store(out + at, total, mask=at < n)


def ptx(kernel, signature, constants, warps):
    source = ASTSource(fn=kernel, signature=signature, constexprs=constants)
    made = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"ptx_version": 90, "num_warps": warps})
    return made.asm["ptx"]


modules = [
    ptx(gather_sum, {"indices": "*i32", "values": "*fp32", "out": "*fp32", "items": "i32", "n": "i32",
                     "BLOCK": "constexpr"}, {"BLOCK": 128}, 4),
]
for name, text in zip(["gather"], modules):
    # A path is of the machine that compiled; the file's name stays.
    text = re.sub(r'(\.file\s+\d+ )".*/([^/"]+)"', r'\1"\2"', text)
    open(f"{sys.argv[1]}_{name}.ptx", "w").write(text)
