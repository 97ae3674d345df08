"""Stand-ins for arrays that are not at hand: shapes, and patterns of indices.

`advise` simulates a launch. It uses the contents of arrays that are given; these objects describe the others as far as a
simulation needs it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from headstart.errors import UsageError

__all__ = ["Pattern", "indices", "shape"]

_SIZES = {
    "bool": 1, "int8": 1, "uint8": 1, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4, "int64": 8, "uint64": 8,
    "float8_e4m3fn": 1, "float8_e5m2": 1, "float16": 2, "bfloat16": 2, "float32": 4, "float64": 8,
}  # fmt: skip
_FILLS = ("zero", "fractions", "indices", "zipf", "sequence", "permutation", "sorted", "bits")


@dataclass(frozen=True)
class Pattern:
    """An array of which only shape, type and kind of contents are known."""

    shape: tuple[int, ...]
    dtype: str
    fill: str
    """As launch files have it."""
    below: int | None = None
    skew: float | None = None
    seed: int | None = None

    def __post_init__(self) -> None:
        if self.dtype not in _SIZES:
            raise UsageError(f"no type {self.dtype!r}; known are {', '.join(_SIZES)}")
        if self.fill not in _FILLS:
            raise UsageError(f"no fill {self.fill!r}; known are {', '.join(_FILLS)}")
        if any(extent < 0 for extent in self.shape):
            raise UsageError(f"a shape has no negative extent: {self.shape}")

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return _SIZES[self.dtype]

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.size * self.itemsize


def _extents(of: int | Sequence[int]) -> tuple[int, ...]:
    return (of,) if isinstance(of, int) else tuple(int(extent) for extent in of)


def shape(*extents: int, dtype: Any = "float32", fill: str | None = None) -> Pattern:
    """An array of this shape: zeros where the kernel writes it, fractions from 1 to 2 where floats are read.

    Args:
        extents: elements along each dimension.
        dtype: a name such as `"float32"`, or a NumPy, PyTorch or JAX type.
        fill: its contents, as in launch files; `None`: `fractions` for floats, `zero` for integers.
    """
    name = str(dtype).split(".")[-1] if not hasattr(dtype, "__name__") else dtype.__name__
    floats = "fractions" if name.startswith(("float", "bfloat")) else "zero"
    return Pattern(_extents(extents), name, fill or floats)


def indices(
    of: int | Sequence[int],
    *,
    uniform: int | None = None,
    zipf: int | None = None,
    permutation: bool = False,
    skew: float = 1.0,
    dtype: Any = "int32",
    seed: int | None = None,
) -> Pattern:
    """Indices of a pattern; exactly one of `uniform`, `zipf` and `permutation` is given.

    Args:
        of: how many, or their shape.
        uniform: each is uniformly distributed from 0 to `uniform` - 1.
        zipf: each is below `zipf`, and k has a probability proportional to 1 / (k + 1)**`skew`.
        permutation: a random permutation of 0 to `of` - 1.
        skew: how much `zipf` prefers small indices.
        dtype: `"int32"` or `"int64"`.
        seed: other numbers of the same kind.

    Raises:
        UsageError: none or several of the patterns, or a bound below 1.
    """
    extents = _extents(of)
    name = shape(0, dtype=dtype).dtype
    if (uniform is not None) + (zipf is not None) + permutation != 1:
        raise UsageError("indices take exactly one of `uniform=BELOW`, `zipf=BELOW` and `permutation=True`")
    below = uniform if uniform is not None else zipf
    if below is not None and below < 1:
        raise UsageError(f"indices below {below} do not exist; the bound is at least 1")
    if permutation:
        return Pattern(extents, name, "permutation", seed=seed)
    if zipf is not None:
        return Pattern(extents, name, "zipf", zipf, skew, seed)
    return Pattern(extents, name, "indices", below, None, seed)
