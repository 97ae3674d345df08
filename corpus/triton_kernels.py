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


@triton.jit
def cross_entropy(logits, labels, losses, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    most = float("-inf")
    total = 0.0
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(logits + row * columns + at, mask=at < columns, other=float("-inf"))
        new = tl.maximum(most, tl.max(x))
        total = total * tl.exp(most - new) + tl.sum(tl.exp(x - new))
        most = new
    label = tl.load(labels + row)
    tl.store(losses + row, most + tl.log(total) - tl.load(logits + row * columns + label))


@triton.jit
def quantized_norm(x, weights, out, scales, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    squares = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        value = tl.load(x + row * columns + at, mask=at < columns, other=0.0).to(tl.float32)
        squares += value * value
    scale = tl.rsqrt(tl.sum(squares) / columns + eps)
    tl.store(scales + row, scale)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        value = tl.load(x + row * columns + at, mask=at < columns, other=0.0).to(tl.float32)
        value *= scale * tl.load(weights + at, mask=at < columns, other=0.0)
        tl.store(out + row * columns + at, value.to(tl.float8e4nv), mask=at < columns)


@triton.jit
def gathered_dot(rows, a, b, out, steps, pitch, BLOCK: tl.constexpr, STEP: tl.constexpr):
    item = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    column = tl.arange(0, BLOCK)
    inner = tl.arange(0, STEP)
    row = tl.load(rows + item)
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for step in range(steps):
        k = step * STEP + inner
        x = tl.load(a + row[:, None] * pitch + k[None, :])
        y = tl.load(b + k[:, None] * BLOCK + column[None, :])
        total = tl.dot(x, y, total)
    tl.store(out + item[:, None] * BLOCK + column[None, :], total)


@triton.jit
def running_sums(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    before = 0
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        value = tl.load(x + row * columns + at, mask=at < columns, other=0)
        tl.store(out + row * columns + at, before + tl.cumsum(value, 0), mask=at < columns)
        before += tl.sum(value)


def ptx(kernel, signature, constants, warps):
    source = ASTSource(fn=kernel, signature=signature, constexprs=constants)
    made = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"ptx_version": 90, "num_warps": warps})
    return made.asm["ptx"]


modules = [
    ptx(gather_sum, {"indices": "*i32", "values": "*fp32", "out": "*fp32", "items": "i32", "n": "i32",
                     "BLOCK": "constexpr"}, {"BLOCK": 128}, 4),
    ptx(cross_entropy, {"logits": "*fp32", "labels": "*i32", "losses": "*fp32", "columns": "i32",
                        "BLOCK": "constexpr"}, {"BLOCK": 256}, 4),
    ptx(quantized_norm, {"x": "*fp16", "weights": "*fp32", "out": "*fp8e4nv", "scales": "*fp32", "columns": "i32",
                         "eps": "fp32", "BLOCK": "constexpr"}, {"BLOCK": 512}, 4),
    ptx(gathered_dot, {"rows": "*i32", "a": "*fp16", "b": "*fp16", "out": "*fp32", "steps": "i32", "pitch": "i32",
                       "BLOCK": "constexpr", "STEP": "constexpr"}, {"BLOCK": 16, "STEP": 32}, 1),
    ptx(running_sums, {"x": "*i32", "out": "*i32", "columns": "i32", "BLOCK": "constexpr"}, {"BLOCK": 256}, 4),
]
for name, text in zip(["gather", "cross_entropy", "quantized_norm", "gathered_dot", "running_sums"], modules):
    # A path is of the machine that compiled; the file's name stays.
    text = re.sub(r'(\.file\s+\d+ )".*/([^/"]+)"', r'\1"\2"', text)
    open(f"{sys.argv[1]}_{name}.ptx", "w").write(text)
