"""Better kernels, assembled and loaded as Triton does it: by its assembler, with its options, by its driver."""

from __future__ import annotations

import contextlib
from typing import Any


def _backend(compiled: Any) -> tuple[Any, Any]:
    from triton.compiler.compiler import make_backend

    backend = make_backend(compiled.metadata.target)
    metadata = compiled.metadata._asdict()
    names = backend.parse_options({}).__dict__.keys()
    return backend, backend.parse_options({name: metadata[name] for name in names if name in metadata})


def assembler(compiled: Any) -> dict[str, str]:
    """Triton's assembler for this kernel, in the command's form."""
    arch = int(compiled.metadata.target.arch)
    program = None
    try:
        from triton.backends.nvidia.compiler import get_ptxas

        program = get_ptxas(arch).path
    except (ImportError, TypeError, AttributeError):
        with contextlib.suppress(Exception):
            from triton import knobs

            program = knobs.nvidia.ptxas.path
    if not program:
        return {}
    options = f"--gpu-name=sm_{arch}{'a' if arch >= 90 else ''}"
    if not getattr(compiled.metadata, "enable_fp_fusion", True):
        options += " --fmad=false"
    return {"HEADSTART_PTXAS": str(program), "HEADSTART_PTXAS_OPTIONS": options}


def loaded(compiled: Any, ptx: str, device: int) -> tuple[Any, Any]:
    """The function of a better kernel, and its module, assembled and loaded as Triton does it."""
    from triton.runtime import driver

    backend, options = _backend(compiled)
    target = compiled.metadata.target
    utils: Any = getattr(driver.active, "utils")  # noqa: B009 - of NVIDIA's driver, not of all
    cubin = backend.make_cubin(ptx, {}, options, target.arch)
    module, function, *_ = utils.load_binary(compiled.name, cubin, compiled.metadata.shared, device)
    return function, module
