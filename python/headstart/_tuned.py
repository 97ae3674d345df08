"""`headstart.install`, `tuned` and `uninstall`: kernels of any supported library, watched as they are launched."""

from __future__ import annotations

import ctypes
import os
import warnings
from typing import Any

from headstart import _answers, _cupy, _hook, _numba, _numba_hook
from headstart._answers import Settings
from headstart.errors import UsageError


def install(
    *,
    mode: str = "background",
    cache: str | None = None,
    budget: float = 120.0,
    max_bytes: int = 4 << 30,
    least: float = 1.05,
) -> None:
    """Watches every Triton kernel that this process compiles from now on, Inductor's among them.

    Args:
        mode: `background`: the first launch of each size is copied and tuned in a separate process, while the original is
            launched. `now`: the first launch waits for that. `cached`: only the cache's answers are used. `collect`: launches
            are copied into the cache, for `python -m headstart tune-cache`. `off`: nothing.
        cache: the folder of answers; by default `HEADSTART_PYTHON_CACHE`, or a folder in the user's cache folder.
        budget: seconds after which a search begins no further plan.
        max_bytes: a launch that can access more memory keeps the original kernel.
        least: the smallest speedup for which a better kernel is used.

    Raises:
        UsageError: no such mode; Triton is missing, or older than 3.5.
        CacheError: `cache` was named and cannot be used.
    """
    if os.environ.get("HEADSTART") == "off":
        return
    _hook.install(Settings.of(mode, cache, budget, max_bytes, least))
    if not has_driver():
        # One message for a process, wherever it installs.
        warnings.warn(
            "headstart: there is no NVIDIA driver here, so no kernel is replaced; `headstart.advise` needs no GPU", stacklevel=2
        )


def has_driver() -> bool:
    """Whether CUDA's driver can be loaded. It is not initialised: that would spoil this process for forks."""
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


def uninstall() -> None:
    """Restores Triton and Numba. Kernels that were already watched launch their originals."""
    _hook.uninstall()
    _numba_hook.uninstall()
    _answers.undo()


def tuned(
    kernel: Any = None,
    *,
    mode: str = "now",
    cache: str | None = None,
    budget: float = 120.0,
    max_bytes: int = 4 << 30,
    least: float = 1.05,
) -> Any:
    """Watches one kernel as it is launched.

    For Triton: `@headstart.tuned` above `@triton.jit`, above or below `@triton.autotune`. For Numba: above `@cuda.jit`. The
    kernel itself is returned, and is launched as before. Triton's interpreter and Numba's simulator are not affected.

    For CuPy: `headstart.tuned(cupy.RawKernel(…))` is a kernel of the same type, and the original is not changed; for a
    `RawModule` this holds for the kernels from its `get_function`.

    The arguments are those of `install`; the first launch of each size waits for its answer unless `mode` says otherwise.

    Raises:
        UsageError: it is not such a kernel; see also `install`.
    """
    if kernel is None:
        return lambda own: tuned(own, mode=mode, cache=cache, budget=budget, max_bytes=max_bytes, least=least)
    if os.environ.get("HEADSTART") == "off" or _hook.is_interpreted(kernel) or _numba_hook.is_simulated(kernel):
        return kernel
    function = _hook.unwrapped(kernel)
    is_numba, is_raw = _numba.is_kernel(kernel), _cupy.is_kernel(kernel)
    if function is None and not is_numba and not is_raw:
        raise UsageError(
            f"`headstart.tuned` is for kernels of Triton's, Numba's and CuPy's, and this is {type(kernel).__name__!r}; "
            "put it above `@triton.jit` or `@cuda.jit`, or give it a `RawKernel`"
        )
    settings = Settings.of(mode, cache, budget, max_bytes, least)
    if is_numba:
        return _numba_hook.mark(kernel, settings)
    if is_raw:
        return _cupy.tuned(kernel, settings)
    _hook.mark(function, settings)
    return kernel
