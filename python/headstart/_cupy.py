"""CuPy's kernels from source, `RawKernel` and `RawModule`, watched as they are launched.

CuPy launches from compiled code and has no hook. `tuned` therefore returns an object in front of the kernel. It launches that
kernel, or a better one that CuPy loads as a separate module.
"""

from __future__ import annotations

import logging
import re
import struct
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from headstart import _cuda, _ptx
from headstart._answers import Settings, Unsuitable
from headstart._raw import Array, Call, Parameters, RawLauncher, three
from headstart._trial import Trial, Turn
from headstart.errors import HeadstartError, KernelError

log = logging.getLogger("headstart")

#: Options with which CuPy links NVRTC's output with other code.
_LINKED = {"--device-c", "-dc", "-rdc=true", "--relocatable-device-code=true"}


def is_kernel(value: Any) -> bool:
    """Whether a value is a `RawKernel` or `RawModule`, from source or from a file."""
    kinds = {kind.__name__ for kind in type(value).__mro__ if kind.__module__.startswith("cupy")}
    return bool(kinds & {"RawKernel", "RawModule"}) or _cuda.is_raw_kernel(value)


def tuned(kernel: Any, settings: Settings) -> Any:
    """Launches as this kernel, or as the kernels of this module, and is watched."""
    if settings.mode == "off" or isinstance(kernel, TunedKernel | TunedModule):
        return kernel
    if hasattr(kernel, "get_function"):
        return TunedModule(kernel, settings)
    return TunedKernel(kernel, settings, kernel.name, ())


class _Before:
    """A proxy that reads and sets another object's attributes."""

    def __init__(self, own: Any) -> None:
        object.__setattr__(self, "__wrapped__", own)

    def __getattr__(self, name: str) -> Any:
        return getattr(object.__getattribute__(self, "__wrapped__"), name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.__wrapped__, name, value)


class TunedModule(_Before):
    """A `RawModule` whose kernels are watched."""

    def __init__(self, module: Any, settings: Settings) -> None:
        super().__init__(module)
        object.__setattr__(self, "_settings", settings)

    def get_function(self, name: str) -> TunedKernel:
        """A kernel of the module."""
        module = self.__wrapped__
        names = tuple(getattr(module, "name_expressions", None) or ())
        return TunedKernel(module.get_function(name), self._settings, name, names)


class TunedKernel(_Before):
    """A `RawKernel` whose launches are watched."""

    def __init__(self, kernel: Any, settings: Settings, name: str, names: Sequence[str]) -> None:
        """`names` are the C++ names that the kernel's module was compiled for."""
        super().__init__(kernel)
        for own, value in {"_settings": settings, "_name": name, "_names": names, "_launchers": {}}.items():
            object.__setattr__(self, own, value)

    def __call__(self, grid: Any, block: Any, args: Sequence[Any], *, shared_mem: int = 0) -> None:
        """Launches it, as `RawKernel` does."""
        kernel = self.__wrapped__
        launcher = self._launcher()
        better = None if launcher is None else launcher.for_launch(grid, block, args, shared_mem)
        if isinstance(better, Turn):
            with better:
                (better.function or kernel)(grid, block, args, shared_mem=shared_mem)
        else:
            (better or kernel)(grid, block, args, shared_mem=shared_mem)

    def _launcher(self) -> CupyLauncher | None:
        """The decider for launches on the current GPU; `None` if the original kernel is kept."""
        from cupy.cuda import runtime  # pyright: ignore[reportMissingImports]

        number = runtime.getDevice()
        if number not in self._launchers:
            try:
                gpu = _Gpu(self.__wrapped__, number)
                text, entry = text_of(self.__wrapped__, self._name, self._names, gpu.capability)
                parameters = Parameters(text, _ptx.entry(text, entry), gpu.read)
                self._launchers[number] = CupyLauncher(parameters, self._settings, gpu, self)
            except (Unsuitable, HeadstartError) as why:
                log.info("kernel %s is left as it is: %s", self._name, why)
                self._launchers[number] = None
        return self._launchers[number]


def text_of(kernel: Any, name: str, names: Sequence[str], capability: int) -> tuple[str, str]:
    """PTX of a kernel's module, from CuPy's own compiler with CuPy's options; and the entry's name.

    Raises:
        Unsuitable: it has no source, or is linked with other code.
        KernelError: NVRTC refuses it.
    """
    if kernel.enable_cooperative_groups:
        raise Unsuitable("its work-groups wait for each other")
    if kernel.code is None:
        try:
            return Path(kernel.file_path).read_text(encoding="ascii"), name
        except (OSError, UnicodeDecodeError, TypeError):
            raise Unsuitable(f"{kernel.file_path} is machine code; CuPy also loads PTX files") from None
    own = tuple(kernel.options or ())
    if kernel.backend != "nvrtc":
        raise Unsuitable(f"it is compiled by {kernel.backend}")
    if linked := _LINKED & set(own):
        raise Unsuitable(f"it is linked with other code ({', '.join(sorted(linked))})")
    options = [*own, "-ftz=true", f"-arch=compute_{capability}", "--device-as-default-execution-space"]
    if not any(option.startswith(("-std", "--std")) for option in own):
        options.append("-std=c++17")
    from cupy.cuda import nvrtc  # pyright: ignore[reportMissingImports]

    program = nvrtc.createProgram(kernel.code, f"{re.sub(r'[^A-Za-z0-9_]', '_', name)}.cu", (), ())
    try:
        for expression in names:
            nvrtc.addNameExpression(program, expression)
        nvrtc.compileProgram(program, tuple(options))
        entry = nvrtc.getLoweredName(program, name) if name in names else name
        text = nvrtc.getPTX(program)
    except nvrtc.NVRTCError as refusal:
        raise KernelError(f"NVRTC refuses the source: {nvrtc.getProgramLog(program).strip() or refusal}") from refusal
    finally:
        nvrtc.destroyProgram(program)
    return (text.decode() if isinstance(text, bytes) else str(text)).rstrip("\0"), str(entry)


class _Event:
    """A CuPy event on its current stream."""

    def __init__(self) -> None:
        import cupy  # pyright: ignore[reportMissingImports]

        self.cuda = cupy.cuda
        self.own = cupy.cuda.Event()

    def record(self) -> None:
        self.own.record()

    def query(self) -> bool:
        return bool(self.own.done)

    def elapsed_time(self, end: _Event) -> float:
        return self.cuda.get_elapsed_time(self.own, end.own)


class _Gpu:
    """The GPU of a kernel, through CuPy."""

    def __init__(self, kernel: Any, number: int) -> None:
        import cupy  # pyright: ignore[reportMissingImports]

        self.cupy, self.kernel, self.number = cupy, kernel, number
        name = cupy.cuda.runtime.getDeviceProperties(number)["name"]
        self.name = name.decode() if isinstance(name, bytes) else str(name)
        self.capability = int(cupy.cuda.Device(number).compute_capability)

    def assembler(self) -> dict[str, str]:
        """NVRTC's assembler, which is not a program."""
        return {}

    def loaded(self, ptx: str) -> Any:
        with tempfile.TemporaryDirectory(prefix="headstart-") as folder:
            path = Path(folder) / "module.ptx"
            path.write_text(ptx)
            function = self.cupy.RawModule(path=str(path)).get_function(_ptx.entry(ptx).name)
            # The function's attributes are read on demand.
            limit = self.kernel.max_dynamic_shared_size_bytes
            if function.max_dynamic_shared_size_bytes < limit:
                function.max_dynamic_shared_size_bytes = limit
            function.preferred_shared_memory_carveout = self.kernel.preferred_shared_memory_carveout
        return function

    def functions(self, better: Any) -> tuple[int, int] | None:
        try:
            return int(self.kernel.kernel.ptr), int(better.kernel.ptr)
        except (AttributeError, TypeError, ValueError):
            return None

    def is_capturing(self) -> bool:
        return bool(self.cupy.cuda.runtime.streamIsCapturing(self.cupy.cuda.get_current_stream().ptr))

    def trial(self) -> Trial | None:
        return Trial(lambda enable_timing: _Event())

    def read(self, start: int, size: int) -> memoryview:
        """A copy of memory."""
        runtime = self.cupy.cuda.runtime
        runtime.deviceSynchronize()
        contents = np.empty(size, np.uint8)
        runtime.memcpy(contents.ctypes.data, start, size, runtime.memcpyDeviceToHost)
        return memoryview(contents)


class CupyLauncher(RawLauncher):
    """Decides for the launches of a CuPy kernel on a GPU."""

    def described(self, launch: tuple[Any, ...]) -> Call | None:
        """The parameters of a launch of so many groups, their size, its arguments and shared memory.

        `None` if it has no grid or no work-group, which CuPy itself says.
        """
        grid, block, args, shared_mem = launch
        try:
            extents, group = three(grid), three(block)
        except (TypeError, ValueError):
            return None
        return Call.of(extents, group, shared_mem, [_value(number, value) for number, value in enumerate(args)])

    def token(self, launch: tuple[Any, ...]) -> tuple[Any, ...] | None:
        """What tells a launch apart, without its parameters; `None` if it takes those."""
        grid, block, args, shared_mem = launch
        if grid.__class__ is not tuple or block.__class__ is not tuple:
            return None
        token: list[Any] = [grid, block, shared_mem]
        for value in args:
            place = getattr(value, "data", value)
            memory = getattr(place, "mem", None)
            if memory is not None:
                token += (place.ptr, memory.ptr, memory.size)
            elif isinstance(value, int | np.integer):
                token.append(int(value))
            elif not isinstance(value, float | np.floating):
                return None
        return tuple(token)


def _value(number: int, value: Any) -> Array | int | bytes:
    """An argument as CuPy passes it. A pointer may access all memory of its array.

    Raises:
        Unsuitable: its type is not supported.
    """
    place = getattr(value, "data", value)
    if hasattr(place, "mem") and hasattr(place, "ptr"):
        return Array(place.ptr, place.mem.ptr, place.mem.ptr + place.mem.size)
    if isinstance(value, bool | int | np.integer | np.bool_):
        return int(value)
    if isinstance(value, np.generic):
        return value.tobytes()
    if isinstance(value, float):
        return struct.pack("<d", value)
    if isinstance(value, complex):
        return struct.pack("<dd", value.real, value.imag)
    raise Unsuitable(f"argument {number} is {type(value).__name__!r}; accepted: CuPy arrays and numbers")
