"""Four kernels of Triton's that load what indices lead to, written as a person would write them.

Each has a function beside it that makes a launch of any size: grid, arguments, constants. Arguments are NumPy arrays; a
caller with a GPU moves them there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import triton
import triton.language as tl


@dataclass(frozen=True)
class Launch:
    """A launch, and what its output must be."""

    kernel: Any
    grid: tuple[int, ...]
    args: tuple[Any, ...]
    constants: dict[str, int]
    output: int
    """Which argument is written."""
    expected: np.ndarray


@triton.jit
def embedding_bag(indices, offsets, table, out, dim, BLOCK: tl.constexpr):
    """Sums, for each bag, the rows of a table that its indices name."""
    bag = tl.program_id(0)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = column < dim
    begin = tl.load(offsets + bag)
    end = tl.load(offsets + bag + 1)
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for position in range(begin, end):
        row = tl.load(indices + position).to(tl.int64)
        total += tl.load(table + row * dim + column, mask=inside, other=0.0)
    tl.store(out + bag * dim + column, total, mask=inside)


@triton.jit
def gather_reduce(indices, values, out, n, count, BLOCK: tl.constexpr):
    """Sums, for each item, the values that its `count` indices name."""
    item = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = item < n
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for step in range(count):
        index = tl.load(indices + step * n + item, mask=inside, other=0)
        total += tl.load(values + index, mask=inside, other=0.0)
    tl.store(out + item, total, mask=inside)


@triton.jit
def spmv(rows, columns, values, x, y, BLOCK: tl.constexpr):
    """A sparse matrix in CSR form times a vector: a row for each program."""
    row = tl.program_id(0)
    begin = tl.load(rows + row)
    end = tl.load(rows + row + 1)
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(begin, end, BLOCK):
        at = start + tl.arange(0, BLOCK)
        inside = at < end
        column = tl.load(columns + at, mask=inside, other=0)
        value = tl.load(values + at, mask=inside, other=0.0)
        total += value * tl.load(x + column, mask=inside, other=0.0)
    tl.store(y + row, tl.sum(total, axis=0))


@triton.jit
def paged_scores(pages, lengths, cache, query, out, most_pages, scale, PAGE: tl.constexpr, DIM: tl.constexpr):
    """Scores of a query with all keys of its sequence, which lie in pages anywhere in a cache."""
    sequence = tl.program_id(0)
    length = tl.load(lengths + sequence)
    column = tl.arange(0, DIM)
    slot = tl.arange(0, PAGE)
    q = tl.load(query + sequence * DIM + column)
    for page in range(tl.cdiv(length, PAGE)):
        where = tl.load(pages + sequence * most_pages + page).to(tl.int64)
        keys = tl.load(cache + (where * PAGE + slot[:, None]) * DIM + column[None, :])
        score = tl.sum(keys * q[None, :], axis=1) * scale
        at = page * PAGE + slot
        tl.store(out + sequence * most_pages * PAGE + at, score, mask=at < length)


def _fractions(random: np.random.Generator, *shape: int) -> np.ndarray:
    # Small multiples of 1/16: their sums are exact in any order.
    return (random.integers(-16, 17, shape) / 16).astype(np.float32)


def embedding_bags(bags: int, rows: int, dim: int = 128, mean: int = 32, seed: int = 0) -> Launch:
    """`bags` bags of about `mean` rows each, of a table of `rows` rows of `dim` floats."""
    random = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(random.integers(mean // 2, mean * 3 // 2, bags))]).astype(
        np.int32
    )
    indices = random.integers(0, rows, offsets[-1]).astype(np.int32)
    table = _fractions(random, rows, dim)
    out = np.zeros((bags, dim), np.float32)
    expected = np.add.reduceat(table[indices], offsets[:-1], axis=0)
    block = 128
    grid = (bags, -(-dim // block))
    return Launch(embedding_bag, grid, (indices, offsets, table, out, dim), {"BLOCK": block}, 3, expected)


def gathers(n: int, values: int, count: int = 32, seed: int = 0) -> Launch:
    """`n` items, each the sum of `count` of `values` floats."""
    random = np.random.default_rng(seed)
    indices = random.integers(0, values, (count, n)).astype(np.int32)
    data = _fractions(random, values)
    out = np.zeros(n, np.float32)
    expected = data[indices].sum(axis=0)
    block = 128
    return Launch(
        gather_reduce, (-(-n // block),), (indices, data, out, n, count), {"BLOCK": block}, 2, expected
    )


def sparse(rows: int, columns: int, mean: int = 512, seed: int = 0) -> Launch:
    """A matrix of `rows` rows with about `mean` entries each."""
    random = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(random.integers(mean // 2, mean * 3 // 2, rows))]).astype(
        np.int32
    )
    column = random.integers(0, columns, offsets[-1]).astype(np.int32)
    value = _fractions(random, int(offsets[-1]))
    x = _fractions(random, columns)
    y = np.zeros(rows, np.float32)
    expected = np.add.reduceat(value * x[column], offsets[:-1])
    return Launch(spmv, (rows,), (offsets, column, value, x, y), {"BLOCK": 128}, 4, expected)


def paged(
    sequences: int, pages: int, most_pages: int = 64, page: int = 16, dim: int = 64, seed: int = 0
) -> Launch:
    """`sequences` queries over up to `most_pages` pages each, of a cache of `pages` pages."""
    random = np.random.default_rng(seed)
    lengths = random.integers(most_pages * page // 2, most_pages * page + 1, sequences).astype(np.int32)
    table = random.integers(0, pages, (sequences, most_pages)).astype(np.int32)
    cache = _fractions(random, pages, page, dim)
    query = _fractions(random, sequences, dim)
    out = np.zeros((sequences, most_pages * page), np.float32)
    scale = 0.125
    expected = np.zeros_like(out)
    for sequence in range(sequences):
        keys = cache[table[sequence]].reshape(-1, dim)
        expected[sequence] = (keys @ query[sequence]) * scale
        expected[sequence, lengths[sequence] :] = 0
    args = (table, lengths, cache, query, out, most_pages, scale)
    return Launch(paged_scores, (sequences,), args, {"PAGE": page, "DIM": dim}, 4, expected)
