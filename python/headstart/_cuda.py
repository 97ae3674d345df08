"""CUDA C: NVIDIA's runtime compiler, NVRTC, which needs no GPU; and CuPy's kernels from source."""

from __future__ import annotations

import contextlib
import ctypes
import ctypes.util
import functools
import glob
import importlib.util
import os
import re
import shutil
from typing import Any

from headstart._ptx import Entry
from headstart.errors import DeviceError, KernelError


def is_raw_kernel(value: Any) -> bool:
    """Whether a value is a CuPy `RawKernel` or `RawModule`, or has the same attributes: source, options, name or functions."""
    if not isinstance(getattr(value, "code", None), str):
        return False
    return isinstance(getattr(value, "name", None), str) or hasattr(value, "get_function")


@functools.lru_cache(maxsize=1)
def _library() -> ctypes.CDLL:
    names: list[str] = []
    if importlib.util.find_spec("cuda") and importlib.util.find_spec("cuda.pathfinder"):
        from cuda.pathfinder import load_nvidia_dynamic_lib  # pyright: ignore[reportMissingImports]

        try:
            path = load_nvidia_dynamic_lib("nvrtc").abs_path
            if path:
                names.append(path)
        except Exception:  # Libraries that are not found there may be found below.
            pass
    spec = importlib.util.find_spec("nvidia")
    for folder in spec.submodule_search_locations or [] if spec else []:
        names += sorted(glob.glob(os.path.join(folder, "*", "lib", "libnvrtc.so.*")), reverse=True)
    names += [name for name in (ctypes.util.find_library("nvrtc"), "libnvrtc.so") if name]
    for name in names:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise DeviceError("CUDA C needs NVRTC, which was not found; `pip install nvidia-cuda-nvrtc`, or pass PTX")


def assembler() -> str | None:
    """A `ptxas`: from `nvidia-cuda-nvcc`, from Triton's package, or on the path."""
    found: list[str | None] = []
    with contextlib.suppress(Exception):  # An older one has no such function.
        from cuda.pathfinder import find_nvidia_binary_utility  # pyright: ignore[reportMissingImports]

        found.append(find_nvidia_binary_utility("ptxas"))
    if spec := importlib.util.find_spec("triton"):
        found += [os.path.join(folder, "backends/nvidia/bin/ptxas") for folder in spec.submodule_search_locations or []]
    found.append(shutil.which("ptxas"))
    return next((program for program in found if program and os.access(program, os.X_OK)), None)


def _include_folders() -> list[str]:
    spec = importlib.util.find_spec("nvidia")
    found: list[str] = []
    for folder in spec.submodule_search_locations or [] if spec else []:
        found += glob.glob(os.path.join(folder, "*", "include"))
    return found


def names(source: str, entry: Entry) -> list[str]:
    """The parameters of an entry by their names in its source, which NVRTC leaves out; none where they are not plain to see."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/|__launch_bounds__\s*\([^()]*\)", " ", source, flags=re.DOTALL)
    found: set[tuple[str, ...]] = set()
    # Without parentheses or templates in the list itself.
    for name, parameters in re.findall(r"__global__[^(){};]*?(\w+)\s*\(([^()<>]*)\)\s*\{", text):
        named = tuple(re.findall(r"(\w+)\s*(?:,|$)", parameters.strip()))
        if (name == entry.name or f"{len(name)}{name}" in entry.name) and len(named) == len(entry.sizes):
            found.add(named)
    return list(found.pop()) if len(found) == 1 else []


def compiled(source: str, arch: int, options: tuple[str, ...] = ()) -> str:
    """Compiles CUDA C to PTX for `compute_<arch>`.

    Multiplications and additions are not fused (`--fmad=false`), so that the assembler has no choice.

    Raises:
        KernelError: NVRTC refuses the source; with its log.
        DeviceError: NVRTC is missing.
    """
    library = _library()
    words = [f"--gpu-architecture=compute_{arch}", "--fmad=false", "-lineinfo"]
    words += [f"-I{folder}" for folder in _include_folders()]
    words += list(options)
    program = ctypes.c_void_p()
    made = library.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernel.cu", 0, None, None)
    if made != 0:
        raise DeviceError(f"NVRTC cannot start: error {made}")
    try:
        list_of = (ctypes.c_char_p * len(words))(*(word.encode() for word in words))
        status = library.nvrtcCompileProgram(program, len(words), list_of)
        size = ctypes.c_size_t()
        if status != 0:
            library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
            text = ctypes.create_string_buffer(size.value)
            library.nvrtcGetProgramLog(program, text)
            raise KernelError(f"NVRTC refuses the source:\n{text.value.decode(errors='replace').strip()}")
        library.nvrtcGetPTXSize(program, ctypes.byref(size))
        text = ctypes.create_string_buffer(size.value)
        library.nvrtcGetPTX(program, text)
        return text.value.decode()
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))
