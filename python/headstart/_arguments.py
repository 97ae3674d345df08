"""A launch without a GPU: arguments get addresses, and contents if they have none."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from headstart._capture import Memory
from headstart._ptx import Entry
from headstart.data import Pattern
from headstart.errors import UsageError

_FIRST = 0x7F00_0000_0000
_APART = 2 << 20
_LIMIT = 1 << 32

#: The layout of numbers for which NumPy has no type.
_LIKE = {"bfloat16": "uint16", "float8_e4m3fn": "uint8", "float8_e5m2": "uint8"}


def is_array(value: Any) -> bool:
    """Whether a value stands for memory; a NumPy number does not."""
    if isinstance(value, np.generic):
        return False
    return isinstance(value, Pattern) or hasattr(value, "data_ptr") or hasattr(value, "__array_interface__")


def dtype_of(value: Any) -> str:
    """The name of an array's element type, `float32` for example."""
    if isinstance(value, Pattern):
        return value.dtype
    return str(value.dtype).split(".")[-1]


def contents(value: Any) -> np.ndarray:
    """An array's elements in memory order, as a one-dimensional array of bytes.

    Raises:
        UsageError: it is on a device, or too large.
    """
    if isinstance(value, Pattern):
        array = filled(value)
    elif hasattr(value, "data_ptr"):
        if getattr(value, "is_cuda", False):
            raise UsageError(
                "a CUDA tensor cannot be simulated; pass `tensor.cpu()`, or tune on the GPU with `headstart.tuned`"
            )
        flat = value.detach().contiguous().flatten()
        array = flat.view(dtype=_bytes_of_torch()).numpy() if flat.numel() else np.zeros(0, np.uint8)
    else:
        array = np.ascontiguousarray(value)
    if array.nbytes > _LIMIT:
        raise UsageError(f"an array of {array.nbytes} bytes is too large to simulate; the limit is {_LIMIT}")
    return array.reshape(-1).view(np.uint8)


def _bytes_of_torch() -> Any:
    import torch

    return torch.uint8


def filled(pattern: Pattern) -> np.ndarray:
    """The contents of a pattern; equal patterns give equal numbers."""
    kind = np.dtype(_LIKE.get(pattern.dtype, pattern.dtype))
    count = pattern.size
    if pattern.fill == "zero":
        return np.zeros(count, kind)
    if pattern.fill == "sequence":
        return np.arange(count).astype(kind)
    random = np.random.default_rng(pattern.seed or 0)
    below = pattern.below or 1
    if pattern.fill == "indices":
        return random.integers(0, below, count).astype(kind)
    if pattern.fill == "permutation":
        return random.permutation(count).astype(kind)
    if pattern.fill == "sorted":
        return np.sort(random.integers(0, below, count)).astype(kind)
    if pattern.fill == "zipf":
        weights = 1.0 / np.arange(1, below + 1, dtype=np.float64) ** (1.0 if pattern.skew is None else pattern.skew)
        bounds = np.cumsum(weights)
        return np.searchsorted(bounds, random.random(count) * bounds[-1], side="right").astype(kind)
    if pattern.fill == "bits":
        return random.integers(0, 256, count * kind.itemsize, dtype=np.uint8).view(kind)
    numbers = 1.0 + random.integers(0, 1 << 16, count) / float(1 << 16)  # `fractions`
    if pattern.dtype == "bfloat16":
        return (numbers.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    if pattern.dtype.startswith("float8"):
        return random.integers(0x38, 0x40, count).astype(np.uint8)
    return numbers.astype(kind)


def laid_out(entry: Entry, arguments: Sequence[Any], scratch: int = 0) -> tuple[bytes, list[Memory]]:
    """The bytes of all parameters, and the memory that they point to.

    An array given twice is one allocation. `scratch` is the number of trailing pointers without an argument; each points to an
    allocation of its own.

    Raises:
        UsageError: too few or too many arguments, or one that does not match its parameter.
    """
    if len(arguments) + scratch != len(entry.sizes):
        raise UsageError(
            f"kernel `{entry.name}` has {len(entry.sizes) - scratch} parameters, but {len(arguments)} arguments were given"
        )
    memory: list[Memory] = []
    places: dict[int, int] = {}
    next_address = _FIRST
    words = bytearray()

    def place(bytes_of: Any) -> int:
        nonlocal next_address
        address = next_address
        memory.append(Memory(address, bytes_of))
        next_address = -(-(address + len(bytes_of) + 1) // _APART) * _APART
        return address

    for number, (offset, size) in enumerate(entry.layout):
        words.extend(bytes(offset - len(words)))
        if number >= len(arguments):
            words += place(bytes(128)).to_bytes(size, "little")
            continue
        value = arguments[number]
        if is_array(value):
            if size != 8:
                raise UsageError(f"argument {number} is an array, but its parameter has {size} bytes; expected a number")
            if id(value) not in places:
                data = contents(value)
                places[id(value)] = place(data.data) if data.nbytes else 0
            words += places[id(value)].to_bytes(8, "little")
        else:
            # Its bits would be an integer of nine digits.
            if isinstance(value, float) and number in entry.integers:
                raise UsageError(f"argument {number} is the float {value}; its parameter in `{entry.name}` is an integer")
            words += packed(value, size, number)
    return bytes(words), memory


def packed(value: Any, size: int, number: int) -> bytes:
    """A number as a parameter of so many bytes.

    Raises:
        UsageError: it is not a number, or does not fit.
    """
    if value is None:
        return bytes(size)
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        code = {2: "<e", 4: "<f", 8: "<d"}.get(size)
        if code is None:
            raise UsageError(f"argument {number} is a float, but its parameter has {size} bytes")
        return struct.pack(code, value)
    if isinstance(value, bool | int):
        try:
            return int(value).to_bytes(size, "little", signed=value < 0)
        except OverflowError:
            raise UsageError(f"argument {number}, {value}, does not fit into {size} bytes") from None
    raise UsageError(
        f"argument {number} is {type(value).__name__!r}; expected NumPy arrays, PyTorch tensors on the CPU, "
        "`headstart.shape(…)`, `headstart.indices(…)`, and numbers"
    )
