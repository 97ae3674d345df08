"""Triton's compiler without a GPU: from a kernel, its arguments and a target to PTX.

Nothing here imports Triton before it is needed; the module works with Triton 3.5 and later.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headstart._arguments import dtype_of, is_array
from headstart.errors import KernelError, UsageError

_TYPES = {
    "bool": "i1", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
    "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64",
    "float8_e4m3fn": "fp8e4nv", "float8_e5m2": "fp8e5", "float16": "fp16", "bfloat16": "bf16",
    "float32": "fp32", "float64": "fp64",
}  # fmt: skip

#: The compiler's options beside the kernel's arguments.
OPTIONS = (
    "num_warps", "num_stages", "num_ctas", "enable_fp_fusion", "maxnreg", "ptx_options", "debug", "sanitize_overflow",
)  # fmt: skip


@dataclass(frozen=True)
class Compiled:
    """A kernel as PTX, and its launch parameters."""

    ptx: str
    name: str
    shared_bytes: int
    num_warps: int
    arguments: list[Any]
    """Those of the call that are parameters of the entry, in its order."""
    names: list[str]
    """Their names."""
    call: dict[str, Any]
    """All arguments by name, constants among them."""


def is_kernel(value: Any) -> bool:
    """Whether a value is a Triton kernel, with any decorators."""
    kinds = {kind.__name__ for kind in type(value).__mro__ if kind.__module__.startswith("triton.")}
    return bool(kinds & {"JITFunction", "Autotuner", "Heuristics", "KernelInterface"})


def unwrapped(kernel: Any) -> Any:
    """The `JITFunction` below decorators."""
    while not hasattr(kernel, "params") and hasattr(kernel, "fn"):
        kernel = kernel.fn
    return kernel


def compiled(kernel: Any, args: tuple[Any, ...], meta: dict[str, Any], arch: int) -> Compiled:
    """Compiles a kernel for `sm_<arch>`.

    An autotuned kernel uses its first configuration, except for the options in `meta`.

    Raises:
        UsageError: arguments that do not match the kernel's signature.
        KernelError: Triton refuses the kernel.
    """
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    meta = dict(meta)
    names = [parameter.name for parameter in unwrapped(kernel).params]
    if len(args) > len(names):
        raise UsageError(f"kernel takes {len(names)} arguments ({', '.join(names)}), and {len(args)} are given")
    while not hasattr(kernel, "params"):
        configs = getattr(kernel, "configs", None)
        if configs:
            for name, value in configs[0].all_kwargs().items():
                meta.setdefault(name, value)
        values = getattr(kernel, "values", None)
        if isinstance(values, dict):
            for name, heuristic in values.items():
                meta[name] = heuristic({**dict(zip(names, args, strict=False)), **meta})
        kernel = kernel.fn
    call = dict(zip(names, args, strict=False))
    options: dict[str, Any] = {}
    for name, value in meta.items():
        if name in call:
            raise UsageError(f"argument `{name}` is given twice")
        if name in names:
            call[name] = value
        elif name in OPTIONS:
            options[name] = value
        else:
            raise UsageError(f"the kernel has no argument `{name}`; it has {', '.join(names)}")
    if options.get("num_ctas", 1) != 1:
        raise UsageError("clusters (`num_ctas` above 1) are not simulated")
    signature: dict[str, str] = {}
    constants: dict[str, Any] = {}
    attributes: dict[tuple[int, ...], Any] = {}
    arguments: list[Any] = []
    entry_names: list[str] = []
    for number, parameter in enumerate(kernel.params):
        name = parameter.name
        if name not in call:
            if not parameter.has_default:
                raise UsageError(f"argument `{name}` is missing")
            call[name] = parameter.default
        value = call[name]
        fixed = parameter.is_constexpr or value is None
        if not fixed and isinstance(value, int) and not isinstance(value, bool) and not parameter.do_not_specialize:
            fixed = value == 1
        if fixed:
            signature[name] = "constexpr"
            constants[name] = value
            continue
        kind, divisible = _kind(name, value)
        signature[name] = getattr(parameter, "annotation_type", None) or kind
        if divisible and not parameter.do_not_specialize:
            attributes[(number,)] = [["tt.divisibility", 16]]
        arguments.append(value)
        entry_names.append(name)
    try:
        source = ASTSource(fn=kernel, signature=signature, constexprs=constants, attrs=attributes)
        made = triton.compile(source, target=GPUTarget("cuda", arch, 32), options=options)
    except Exception as refusal:
        if type(refusal).__module__.startswith("triton") or isinstance(refusal, AssertionError | ValueError | TypeError):
            raise KernelError(f"Triton refuses kernel `{names and kernel.__name__}`: {refusal}") from refusal
        raise
    return Compiled(
        ptx=made.asm["ptx"],
        name=made.metadata.name,
        shared_bytes=int(made.metadata.shared),
        num_warps=int(made.metadata.num_warps),
        arguments=arguments,
        names=entry_names,
        call=call,
    )


def _kind(name: str, value: Any) -> tuple[str, bool]:
    """Triton's type of an argument, and whether Triton would specialise it as a multiple of 16."""
    if is_array(value):
        dtype = dtype_of(value)
        if dtype not in _TYPES:
            raise UsageError(f"argument `{name}` has elements of type {dtype!r}, which Triton does not have")
        return "*" + _TYPES[dtype], True
    if isinstance(value, bool):
        return "i1", False
    if isinstance(value, int):
        kind = "i32" if -(1 << 31) <= value < 1 << 31 else "i64" if value < 1 << 63 else "u64"
        return kind, value % 16 == 0
    if isinstance(value, float):
        return "fp32", False
    raise UsageError(
        f"argument `{name}` is {type(value).__name__!r}; expected NumPy arrays, PyTorch tensors on the CPU, "
        "`headstart.shape(…)`, `headstart.indices(…)`, and numbers"
    )
