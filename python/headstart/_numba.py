"""Numba's CUDA kernels without a GPU: PTX of a kernel, and the parameters that Numba passes for each array."""

from __future__ import annotations

import contextlib
import inspect
from typing import Any

import numpy as np

from headstart import _ptx
from headstart._arguments import contents, dtype_of, is_array
from headstart.data import Pattern
from headstart.errors import KernelError, UsageError


def is_kernel(value: Any) -> bool:
    """Whether a value is a kernel of Numba's `@cuda.jit`."""
    kind = type(value)
    return kind.__name__ == "CUDADispatcher" and kind.__module__.startswith("numba")


def compiled(kernel: Any, arguments: list[Any], arch: int) -> tuple[str, str, list[Any]]:
    """PTX for `sm_<arch>`, the entry's name, and a value for each of its parameters.

    The kernel is compiled as Numba does at a launch: for the types of these arguments, with `@cuda.jit`'s `fastmath` and `opt`.
    An array becomes two unused pointers, its number of elements, their size, its memory, its shape and its strides in bytes.

    Raises:
        KernelError: Numba refuses the kernel for these arguments.
        UsageError: an argument that Numba's kernels do not take.
    """
    from numba import cuda, types  # pyright: ignore[reportMissingImports]

    signature: list[Any] = []
    values: list[Any] = []
    names: list[str] = []
    memory: dict[int, Any] = {}
    own_names = list(inspect.signature(kernel.py_func).parameters)
    for number, value in enumerate(arguments):
        name = own_names[number] if number < len(own_names) else ""
        if is_array(value):
            kind, parameters = _array(value, number, memory)
            signature.append(kind)
            values += parameters
            names += of_array(name, kind.ndim)
        else:
            signature.append(_number(value, number))
            values.append(value)
            names.append(name)
    own = getattr(kernel, "targetoptions", {})
    options = {name: own[name] for name in ("fastmath", "opt") if own.get(name) is not None}
    # Numba warns if it does not find the source; then there are no lines.
    with contextlib.suppress(OSError, TypeError):
        options["lineinfo"] = bool(inspect.getsource(kernel.py_func))
    try:
        ptx, _ = cuda.compile_ptx(kernel.py_func, types.void(*signature), cc=(arch // 10, arch % 10), **options)
    except Exception as refusal:
        raise KernelError(f"Numba refuses the kernel: {refusal}") from refusal
    # The entry's name contains all types, in some hundred letters.
    ptx, name = _ptx.shortened(ptx, _ptx.entry(ptx).name, kernel.py_func.__name__)
    return _ptx.renamed(ptx, name, names), name, values


def of_array(name: str, dimensions: int) -> list[str]:
    """Names of the parameters that Numba makes of an array."""
    names = [f"{name}_{part}" for part in ("owner", "parent", "items", "item_bytes")] + [name]
    return names + [f"{name}_{part}{index}" for part in ("extent", "stride") for index in range(dimensions)]


def _array(value: Any, number: int, memory: dict[int, Any]) -> tuple[Any, list[Any]]:
    """An array's Numba type, and its parameters. An array given twice is one piece of `memory`."""
    from numba import types  # pyright: ignore[reportMissingImports]
    from numba.np.numpy_support import from_dtype  # pyright: ignore[reportMissingImports]

    shape = tuple(value.shape)
    kind = np.dtype(dtype_of(value))
    # The last index varies fastest in memory, or the first in Fortran order.
    by_columns = isinstance(value, np.ndarray) and not value.flags.c_contiguous
    if isinstance(value, np.ndarray) and by_columns and not value.flags.f_contiguous:
        raise UsageError(f"argument {number} is a view with gaps in memory; pass `numpy.ascontiguousarray(…)` of it")
    steps = [kind.itemsize]
    for extent in shape[:-1] if by_columns else reversed(shape[1:]):
        steps.append(steps[-1] * extent)
    strides = steps[: len(shape)] if by_columns else steps[: len(shape)][::-1]
    if id(value) not in memory:
        memory[id(value)] = value if isinstance(value, Pattern) else contents(value.T if by_columns else value)
    parameters = [None, None, int(np.prod(shape)), kind.itemsize, memory[id(value)], *shape, *strides]
    return types.Array(from_dtype(kind), len(shape), "F" if by_columns else "C"), parameters


def _number(value: Any, number: int) -> Any:
    """A number's Numba type."""
    from numba import types  # pyright: ignore[reportMissingImports]
    from numba.np.numpy_support import from_dtype  # pyright: ignore[reportMissingImports]

    if isinstance(value, np.bool_ | np.integer | np.floating):
        return from_dtype(value.dtype)
    if isinstance(value, bool):
        return types.boolean
    if isinstance(value, int):
        return types.int64
    if isinstance(value, float):
        return types.float64
    raise UsageError(f"argument {number} is {type(value).__name__!r}; Numba's kernels take arrays and numbers")
