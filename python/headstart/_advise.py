"""`headstart.advise`: the report on a simulated launch, without a GPU."""

from __future__ import annotations

import functools
import json
import sys
import tempfile
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from headstart import _arguments, _command, _cuda, _numba, _ptx, _triton
from headstart._capture import Launch
from headstart.errors import UsageError
from headstart.report import Report, of_advice

#: Compute capability by words in a device's name; for others, that of the newest simulated device.
_CAPABILITY = {"a100": 80, "a10": 86, "l4": 89, "h100": 90, "h200": 90}


def advise(
    kernel: Any,
    *,
    grid: int | Sequence[int] | Callable[[dict[str, Any]], Sequence[int]],
    args: Sequence[Any] = (),
    block: int | Sequence[int] | None = None,
    device: str = "sim:h200",
    budget: float | None = 60.0,
    l2: str = "kept",
    progress: bool | Callable[[str], Any] = False,
    name: str | None = None,
    shared_bytes: int = 0,
    arch: int | None = None,
    **constants: Any,
) -> Report:
    """Should this kernel prefetch? Compiles it for a named GPU, simulates the launch, tries the likely plans.

    No GPU is needed. Simulation time grows with the launch. A launch of a few hundred work-groups, with data larger than the
    GPU's cache, gives the same answer as one of many thousands.

    Args:
        kernel: a Triton kernel (with its decorators); a CuPy `RawKernel` or `RawModule`; a Numba kernel; CUDA C or PTX as a
            string.
        grid: work-groups, in up to three dimensions; for Triton also a function of the arguments by name.
        args: an argument for each parameter: NumPy arrays, PyTorch tensors on the CPU, `headstart.shape(…)`,
            `headstart.indices(…)`, numbers.
        block: work-items of a work-group; not for Triton kernels, which define it.
        device: a simulated device, as `headstart devices` lists them.
        budget: seconds after which no further plan is begun; `None` for no limit.
        l2: what each timed launch finds in L2: `kept`, what the launch before left, as in a loop; `flushed`, none of its data,
            as after other kernels.
        progress: `True` prints to standard error what becomes of each plan while it is tried; or a function of such a line.
        name: the kernel's name, if a module has several.
        shared_bytes: dynamic shared memory of a work-group; not for Triton kernels, which define it.
        arch: the compute capability to compile for, 90 for `sm_90`; by default that of the device.
        constants: arguments by name, and for Triton `num_warps`, `num_stages` and other options.

    Raises:
        KernelError: the kernel cannot be compiled, read, or run.
        UsageError: grid, block or arguments do not match the kernel.
        DeviceError: there is no such device.
    """
    if l2 not in ("kept", "flushed"):
        raise UsageError(f"`l2` is {l2!r}; expected 'kept' or 'flushed'")
    arch = arch or next((own for word, own in _CAPABILITY.items() if word in device), 90)
    scratch = 0
    if _triton.is_kernel(kernel):
        made = _triton.compiled(kernel, tuple(args), constants, arch)
        if block is not None:
            raise UsageError("a Triton kernel defines its work-group size; omit `block`, or set `num_warps`")
        if callable(grid):
            grid = grid(made.call)
        # Plans and reasons name loads by parameters, in the kernel's own names.
        ptx = _ptx.renamed(made.ptx, made.name, made.names)
        entry = _ptx.entry(ptx, made.name)
        values, shared_bytes = made.arguments, made.shared_bytes
        group = entry.group or (32 * made.num_warps, 1, 1)
        scratch = len(entry.sizes) - len(values)
    else:
        if callable(grid):
            raise UsageError("`grid` can be a function for Triton kernels only; pass numbers")
        if constants:
            raise UsageError(f"only Triton kernels take arguments by name: {', '.join(constants)}")
        values, source = list(args), None
        if _numba.is_kernel(kernel):
            ptx, name, values = _numba.compiled(kernel, values, arch)
        elif isinstance(kernel, str) and ".entry" in kernel:
            ptx = kernel
        elif isinstance(kernel, str):
            if kernel.endswith((".cu", ".ptx")):
                raise UsageError(f"{kernel!r} names a file; expected its text: `Path({kernel!r}).read_text()`")
            source = kernel
            ptx = _cuda.compiled(source, arch)
        elif _cuda.is_raw_kernel(kernel):
            source = kernel.code
            ptx = _cuda.compiled(source, arch, tuple(kernel.options or ()))
            name = name or getattr(kernel, "name", None)
        else:
            raise UsageError(f"no kernel: {type(kernel).__name__!r}; expected a Triton, Numba or CuPy kernel, CUDA C, or PTX")
        entry = _ptx.entry(ptx, name)
        if source is not None:
            ptx = _ptx.renamed(ptx, entry.name, _cuda.names(source, entry))
        if block is None and entry.group is None:
            raise UsageError("`block` is missing: the number of work-items in a work-group")
        group = extents("block", block) if block is not None else entry.group or (1, 1, 1)
    parameters, memory = _arguments.laid_out(entry, values, scratch)
    launch = Launch(
        kernel=entry.name,
        ptx=ptx,
        groups=extents("grid", grid),
        group=group,
        parameters=parameters,
        layout=entry.layout,
        memory=memory,
        shared_bytes=shared_bytes,
        capability=arch,
    )
    return report_of(launch, kernel, device, budget, l2, progress)


def extents(what: str, given: Any) -> tuple[int, int, int]:
    """Three numbers, each at least 1.

    Raises:
        UsageError: one is smaller.
    """
    numbers = (given,) if isinstance(given, int) else tuple(given)
    if not 1 <= len(numbers) <= 3 or not all(isinstance(number, int) and number >= 1 for number in numbers):
        raise UsageError(f"`{what}` is {given!r}; expected one to three integers, each at least 1")
    x, y, z = (*numbers, 1, 1)[:3]
    return x, y, z


def report_of(
    launch: Launch,
    kernel: Any,
    device: str,
    budget: float | None,
    l2: str,
    progress: bool | Callable[[str], Any] = False,
) -> Report:
    """Writes a launch, runs the command on it, and reads the answer."""
    kept = tempfile.TemporaryDirectory(prefix="headstart-")
    folder = Path(kept.name) / "launch"
    launch.write(folder)
    timed = [str(folder), "--device", device, "--l2", l2]
    words = ["advise", *timed, "--json", "-"]
    if budget is not None:
        words += ["--budget", str(budget)]
    if progress:
        tell = progress if callable(progress) else functools.partial(print, file=sys.stderr, flush=True)
        answer = _command.followed(words, tell)
    else:
        answer = _command.run(words)
    found = of_advice(kernel, json.loads(answer))
    for warning in found.warnings:
        warnings.warn(f"headstart: {launch.kernel}: {warning}", stacklevel=3)

    # The folder lives as long as the report. Its page is made once: a notebook shows a report repeatedly.
    @functools.cache
    def page() -> str:
        assert kept is not None
        plan = found.plan or "likely"
        words = ["tune", *timed, "--plans", plan, "--html", "-"]
        return _command.run(words)

    @functools.cache
    def module() -> str:
        assert kept is not None
        if found.plan is None:
            return launch.ptx
        output = folder / "planned.ptx"
        _command.run(["tune", *timed, "--plans", found.plan, "--output", str(output)])
        return output.read_text()

    return replace(found, make_page=page, make_module=module)
