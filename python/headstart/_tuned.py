"""`headstart.install`, `tuned` and `uninstall`: kernels looked at as they are launched, whichever library they are of."""

from __future__ import annotations

import os
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
    """Looks at every Triton kernel that this process compiles from now on, Inductor's among them.

    Args:
        mode: `background`: the first launch of its size is copied and tuned in a process of its own, meanwhile the original
            is launched. `now`: the first launch waits for that. `cached`: only answers that the cache has are used.
            `collect`: launches are copied into the cache, for `python -m headstart tune-cache`. `off`: nothing.
        cache: the folder of answers; `HEADSTART_PYTHON_CACHE`, or one in the user's folder for caches.
        budget: seconds after which a search begins no further plan.
        max_bytes: a launch that reaches more memory is left as it is.
        least: a better kernel is taken from this speedup on.

    Raises:
        UsageError: no such mode; Triton is not there, or older than 3.5.
        CacheError: `cache` was named and cannot be used.
    """
    if os.environ.get("HEADSTART") == "off":
        return
    _hook.install(Settings.of(mode, cache, budget, max_bytes, least))


def uninstall() -> None:
    """Leaves Triton and Numba as they were. Kernels that were already looked at launch their originals."""
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
    """Has one kernel looked at as it is launched.

    Of Triton's: `@headstart.tuned` above `@triton.jit`, above or below `@triton.autotune`. Of Numba's: above `@cuda.jit`. The
    kernel itself is returned, and is launched as before. In Triton's interpreter and Numba's simulator nothing happens.

    Of CuPy's: `headstart.tuned(cupy.RawKernel(…))` is a kernel of the same type, and the original is left alone; of a
    `RawModule` that is so for the kernels that its `get_function` gives.

    Arguments are those of `install`; the first launch of its size waits for its answer unless `mode` says otherwise.

    Raises:
        UsageError: it is no such kernel; what `install` raises.
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
