"""Numba's CUDA kernels without a GPU: PTX of a kernel, and its arrays as the many parameters that Numba makes of each."""

from __future__ import annotations

from typing import Any

import numpy as np

from headstart._arguments import contents, dtype_of, is_array
from headstart.data import Pattern
from headstart.errors import KernelError, UsageError


def is_kernel(value: Any) -> bool:
    """Whether a value is a kernel of Numba's `@cuda.jit`."""
    kind = type(value)
    return kind.__name__ == "CUDADispatcher" and kind.__module__.startswith("numba")


def compiled(kernel: Any, arguments: list[Any], arch: int) -> tuple[str, str, list[Any]]:
    """PTX for `sm_<arch>`, the entry's name, and a value for each of its parameters.

    An array becomes two pointers that nobody uses, its number of elements, their size, its memory, its shape and its
    strides in bytes.

    Raises:
        KernelError: Numba refuses the kernel for these arguments.
        UsageError: an argument that Numba's kernels do not take.
    """
    from numba import cuda, types  # pyright: ignore[reportMissingImports]
    from numba.np.numpy_support import from_dtype  # pyright: ignore[reportMissingImports]

    signature: list[Any] = []
    values: list[Any] = []
    for number, value in enumerate(arguments):
        if is_array(value):
            shape = tuple(value.shape)
            kind = np.dtype(dtype_of(value))
            array = value if isinstance(value, Pattern) else contents(value)
            strides = [kind.itemsize]
            for extent in reversed(shape[1:]):
                strides.insert(0, strides[0] * extent)
            signature.append(types.Array(from_dtype(kind), len(shape), "C"))
            values += [None, None, int(np.prod(shape)), kind.itemsize, array, *shape, *strides]
        elif isinstance(value, bool | int | float):
            signature.append(types.float64 if isinstance(value, float) else types.int64)
            values.append(value)
        else:
            raise UsageError(f"argument {number} is {type(value).__name__!r}; Numba's kernels take arrays and numbers")
    try:
        ptx, _ = cuda.compile_ptx(kernel.py_func, types.void(*signature), cc=(arch // 10, arch % 10), fastmath=False, fma=False)
    except TypeError:
        ptx, _ = cuda.compile_ptx(kernel.py_func, types.void(*signature), cc=(arch // 10, arch % 10))
    except Exception as refusal:
        raise KernelError(f"Numba refuses the kernel: {refusal}") from refusal
    from headstart._ptx import entry

    return ptx, entry(ptx).name, values
