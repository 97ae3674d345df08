"""Numba's CUDA kernels, watched as they are launched.

`@cuda.jit` gives a dispatcher, which compiles a kernel for each combination of argument types. The kernel's `launch` is wrapped
for marked dispatchers: a launch that meets a better kernel's assumptions launches a copy of the kernel whose code library has
the better PTX. Numba links and loads that as its own, and its caches are not affected.
"""

from __future__ import annotations

import copy
import ctypes
import inspect
import logging
import math
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from headstart import _ptx
from headstart._answers import Settings, Unsuitable
from headstart._numba import of_array
from headstart._raw import Array, Call, Parameters, RawLauncher, three
from headstart._trial import Trial, Turn
from headstart.errors import HeadstartError, UsageError

log = logging.getLogger("headstart")

_Value = Array | int | bytes

_INTEGERS = ("Integer", "IntegerLiteral", "Boolean")
_PLACE = "_headstart"
"""The attribute of an array that its parameters are kept in."""
_NOTHING: dict[str, Any] = {}


class _Place:
    """The parameters of an array. Arrays are told apart by it: it is equal to itself alone."""

    __slots__ = ("values",)

    def __init__(self, values: list[_Value]) -> None:
        self.values = values


class _State:
    def __init__(self) -> None:
        self.marked: dict[int, tuple[Settings, Any]] = {}
        """By the `id` of a Python function: how its kernels are looked at, and the dispatcher, which keeps it."""
        self.original: tuple[type, Any] | None = None


_state = _State()


def is_simulated(value: Any) -> bool:
    """Whether a value is a kernel of Numba's simulator, which has no GPU."""
    kind = type(value)
    return kind.__name__ == "FakeCUDAKernel" and kind.__module__.startswith("numba")


def mark(dispatcher: Any, settings: Settings) -> Any:
    """Watches a dispatcher's kernels; returns the dispatcher.

    Raises:
        UsageError: this version of Numba is not supported.
    """
    from numba.cuda.dispatcher import _Kernel  # pyright: ignore[reportMissingImports]

    if not hasattr(_Kernel, "launch") or not hasattr(_Kernel, "_prepare_args"):
        raise UsageError(
            "this version of Numba is not supported: its compiled kernels have no `launch`; accepted: numba-cuda 0.30"
        )
    _state.marked[id(dispatcher.py_func)] = (settings, dispatcher)
    if _state.original is None:
        original = _Kernel.launch
        _state.original = (_Kernel, original)

        def launch(self: Any, args: Sequence[Any], griddim: Any, blockdim: Any, stream: Any = 0, sharedmem: int = 0) -> None:
            launcher = _launcher_of(self)
            if launcher is None:
                return original(self, args, griddim, blockdim, stream, sharedmem)
            better = launcher.for_launch(args, griddim, blockdim, stream, sharedmem)
            if isinstance(better, Turn):
                with better:
                    return original(better.function or self, args, griddim, blockdim, stream, sharedmem)
            return original(better or self, args, griddim, blockdim, stream, sharedmem)

        _Kernel.launch = launch
    return dispatcher


def uninstall() -> None:
    """Restores Numba."""
    _state.marked.clear()
    if _state.original is not None:
        owner, original = _state.original
        owner.launch = original
        _state.original = None


def _launcher_of(kernel: Any) -> NumbaLauncher | None:
    """The decider for a compiled kernel's launches; `None` if it is not watched."""
    function = getattr(kernel, "py_func", None)
    if id(function) not in _state.marked:
        return None
    settings, dispatcher = _state.marked[id(function)]
    known = vars(kernel).get("_headstart")
    if known is not None and known[0] is settings:
        return known[1]
    launcher = None
    if settings.mode != "off":
        try:
            launcher = NumbaLauncher(kernel, settings, dispatcher)
        except (Unsuitable, HeadstartError) as why:
            log.info("kernel %s is left as it is: %s", getattr(function, "__name__", "?"), why)
    kernel._headstart = (settings, launcher)
    return launcher


class _Event:
    """A Numba event on a stream."""

    def __init__(self, stream: Any) -> None:
        from numba import cuda  # pyright: ignore[reportMissingImports]

        self.cuda, self.stream = cuda, stream
        self.own = cuda.event(timing=True)

    def record(self) -> None:
        self.own.record(self.stream)

    def query(self) -> bool:
        return self.own.query()

    def elapsed_time(self, end: _Event) -> float:
        return self.cuda.event_elapsed_time(self.own, end.own)


class _Gpu:
    """The GPU of a compiled kernel, through Numba."""

    def __init__(self, kernel: Any) -> None:
        from numba import cuda  # pyright: ignore[reportMissingImports]

        self.cuda = cuda
        device = cuda.get_current_device()
        name = device.name
        self.name = name.decode() if isinstance(name, bytes) else str(name)
        self.number = int(device.id)
        major, minor = device.compute_capability[:2]
        self.capability = 10 * major + minor
        self.kernel = kernel
        self.launch = threading.local()
        """Of the thread that launches: `stream`."""

    def assembler(self) -> dict[str, str]:
        """Numba links with the driver or nvJitLink, which are not programs."""
        return {}

    def loaded(self, ptx: str) -> Any:
        library = copy.copy(self.kernel._codelibrary)
        for cache in ("_cubin_cache", "_cufunc_cache", "_linkerinfo_cache"):
            setattr(library, cache, {})
        library._ptx_cache = _Always([ptx])
        library._lto = False
        library._entry_name = _ptx.entry(ptx).name
        better = copy.copy(self.kernel)
        better._codelibrary = library
        better.bind()
        return better

    def functions(self, better: Any) -> tuple[int, int] | None:
        try:
            original, own = (int(kernel._codelibrary.get_cufunc().handle) for kernel in (self.kernel, better))
        except (AttributeError, TypeError, ValueError):
            return None
        return original, own

    def is_capturing(self) -> bool:
        from cuda.bindings import driver  # pyright: ignore[reportMissingImports]

        handle = getattr(self.launch.stream, "handle", self.launch.stream) or 0
        error, status = driver.cuStreamIsCapturing(driver.CUstream(int(handle)))
        return int(error) != 0 or int(status) != 0

    def trial(self) -> Trial | None:
        return Trial(lambda enable_timing: _Event(self.launch.stream))

    def read(self, start: int, size: int) -> memoryview:
        """A copy of memory."""
        from numba.cuda.cudadrv import driver  # pyright: ignore[reportMissingImports]

        self.cuda.synchronize()
        contents = np.empty(size, np.uint8)
        driver.driver.cuMemcpyDtoH(contents.ctypes.data, start, size)
        return memoryview(contents)


class _Always(dict[Any, Any]):
    """A cache that returns the same for every key."""

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value

    def get(self, key: Any, default: Any = None) -> Any:
        return self.value

    def __getitem__(self, key: Any) -> Any:
        return self.value


class NumbaLauncher(RawLauncher):
    """Decides for the launches of a compiled Numba kernel."""

    gpu: _Gpu

    def __init__(self, kernel: Any, settings: Settings, dispatcher: Any) -> None:
        library = kernel._codelibrary
        if kernel.cooperative:
            raise Unsuitable("its work-groups wait for each other")
        if kernel.debug:
            raise Unsuitable("it is compiled for debugging, and stores its errors in module variables")
        if kernel.extensions:
            raise Unsuitable("extensions change its arguments")
        if library._linking_files or getattr(library, "needs_cudadevrt", False):
            raise Unsuitable("other code is linked to it")
        # nvJitLink's output is complete, and ends with a zero; the driver links kernels as they were compiled.
        texts = [library.get_lto_ptx().rstrip("\0")] if getattr(library, "_lto", False) else library.get_asm_strs()
        if len(texts) != 1:
            raise Unsuitable(f"it consists of {len(texts)} modules")
        # The entry's name contains all types, in some hundred letters.
        text, name = _ptx.shortened(texts[0], kernel.entry_name, kernel.py_func.__name__)
        text = _ptx.renamed(text, name, _names(kernel))
        gpu = _Gpu(kernel)
        super().__init__(Parameters(text, _ptx.entry(text, name), gpu.read), settings, gpu, dispatcher)
        self.kinds = kernel.argument_types

    def described(self, launch: tuple[Any, ...]) -> Call:
        """The parameters of a launch: of its arguments, groups, their size, stream and shared memory."""
        args, griddim, blockdim, stream, sharedmem = launch
        values: list[_Value] = []
        for kind, value in zip(self.kinds, args, strict=True):
            _flatten(kind, value, values)
        self.gpu.launch.stream = stream
        return Call.of(three(griddim), three(blockdim), sharedmem, values)

    def token(self, launch: tuple[Any, ...]) -> tuple[Any, ...] | None:
        """What tells a launch apart, without its parameters; `None` if it takes those."""
        args, griddim, blockdim, _, sharedmem = launch
        token = [griddim, blockdim, sharedmem]
        for kind, value in zip(self.kinds, args, strict=False):
            name = kind.__class__.__name__
            if name == "Array":
                place = getattr(value, "__dict__", _NOTHING).get(_PLACE)
                if place is None:
                    return None
                token.append(place)
            elif name in _INTEGERS:
                token.append(value)
            elif name != "Float":
                return None
        return tuple(token)


def _names(kernel: Any) -> list[str]:
    """Names of the entry's parameters, for arguments that are one parameter or an array."""
    names: list[str] = []
    for name, kind in zip(inspect.signature(kernel.py_func).parameters, kernel.argument_types, strict=False):
        if type(kind).__name__ in ("UniTuple", "Tuple", "NamedTuple", "NamedUniTuple", "Complex"):
            break
        names += of_array(name, kind.ndim) if type(kind).__name__ == "Array" else [name]
    return names


def _flatten(kind: Any, value: Any, values: list[_Value]) -> None:
    """Adds the parameters that Numba passes for an argument.

    Raises:
        Unsuitable: its type is not supported, or it is not on the GPU.
    """
    name = type(kind).__name__
    if name == "Array":
        values += _parameters(value).values
    elif name in _INTEGERS:
        values.append(int(value))
    elif name == "Float":
        values.append({16: np.float16, 32: np.float32, 64: np.float64}[kind.bitwidth](value).tobytes())
    elif name == "Complex":
        part = np.float32 if kind.bitwidth == 64 else np.float64
        values += [part(value.real).tobytes(), part(value.imag).tobytes()]
    elif name in ("UniTuple", "Tuple", "NamedTuple", "NamedUniTuple"):
        for own_kind, own in zip(kind, value, strict=True):
            _flatten(own_kind, own, values)
    else:
        raise Unsuitable(f"it has an argument of type {kind}")


def _parameters(value: Any) -> _Place:
    """The parameters of an array. Numba's own arrays never move, so that theirs are kept with them.

    Raises:
        Unsuitable: it is on the host.
    """
    kept = getattr(value, "__dict__", None)
    if kept is not None and _PLACE in kept:
        return kept[_PLACE]
    shape, strides, size, address = _placed(value)
    reach = [(extent - 1) * stride for extent, stride in zip(shape, strides, strict=True)]
    count = math.prod(shape)
    start = end = address
    if count:
        start += sum(own for own in reach if own < 0)
        end += sum(own for own in reach if own > 0) + size
    # Two pointers that kernels do not use: the owner of the memory, and its parent.
    place = _Place([0, 0, count, size, Array(address, start, end), *shape, *strides])
    if kept is not None and hasattr(value, "__cuda_ndarray__"):
        kept[_PLACE] = place
    return place


def _placed(value: Any) -> tuple[tuple[int, ...], tuple[int, ...], int, int]:
    """Shape, strides and size of an element in bytes, and the address of an array on the GPU.

    Raises:
        Unsuitable: it is on the host; Numba copies it there and back with each launch.
    """
    if hasattr(value, "__cuda_ndarray__"):
        address = value.device_ctypes_pointer
        address = address.value if isinstance(address, ctypes._SimpleCData) else int(address)
        return value.shape, value.strides, value.dtype.itemsize, address or 0
    interface = getattr(value, "__cuda_array_interface__", None)
    if interface is None:
        raise Unsuitable("an array is on the host and is copied at each launch; `cuda.to_device` moves it to the GPU")
    shape = tuple(interface["shape"])
    size = np.dtype(interface["typestr"]).itemsize
    strides = interface.get("strides")
    if strides is None:
        steps = [size]
        for extent in reversed(shape[1:]):
            steps.append(steps[-1] * extent)
        strides = tuple(reversed(steps[: len(shape)]))
    return shape, tuple(strides), size, int(interface["data"][0])
