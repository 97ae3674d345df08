"""Whether as many work-groups of a better kernel are resident as of the original: the driver says.

Work-groups that wait for each other come to an end only if those that are waited for are resident.
"""

from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Sequence


@functools.lru_cache(maxsize=1)
def _driver() -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None


@functools.lru_cache(maxsize=256)
def _groups(function: int, items: int, shared_bytes: int) -> int | None:
    """Work-groups that a core holds at once; `None` if the driver does not say."""
    driver = _driver()
    if driver is None:
        return None
    found = ctypes.c_int()
    status = driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(
        ctypes.byref(found), ctypes.c_void_p(function), ctypes.c_int(items), ctypes.c_size_t(shared_bytes)
    )
    return found.value if status == 0 else None


def are_as_many(functions: tuple[int, int], group: Sequence[int], shared_bytes: int) -> bool:
    """Whether it is so for a launch with such work-groups; not if the driver does not say.

    Args:
        functions: the driver's handles of the original and of the better kernel.
    """
    original, better = (_groups(function, math.prod(group), shared_bytes) for function in functions)
    return original is not None and better is not None and better >= original
