"""A kernel with checks of its indices, in the manner of Inductor: their messages are variables of the module."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def checked_bag(indices, table, out, rows, items, BLOCK: tl.constexpr):
    """out[item] = Σ table[indices[item, …]], BLOCK of them at a time, each index looked at."""
    item = tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    total = tl.full([BLOCK], 0, tl.float32)
    for start in range(0, items, BLOCK):
        index = tl.load(indices + item * items + start + lane)
        index = tl.where(index < 0, index + rows, index)
        tl.device_assert((index >= 0) & (index < rows), "index out of bounds: 0 <= index < rows")
        total += tl.load(table + index)
    tl.store(out + item, tl.sum(total))
