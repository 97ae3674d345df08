"""Launches the operators' kernels, and copies the first launch of each that has no `tl.dot`.

    python launch.py FOLDER [NAME …]

Several processes share the work: who creates `FOLDER/calls/NUMBER` makes that call, who creates `FOLDER/kernels/DIGEST` copies
that kernel's launch into `FOLDER/launches/DIGEST`, with what else is known of it in `note.json`. Kernels with `tl.dot` are neither
compiled nor launched: what they would have written are random numbers, as everything that is made empty. Without a GPU nothing
is launched, but all is compiled for sm_90 and copied: `EVERY_COMPILE_ONLY=1`.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import json
import os
import re
import sys
import textwrap
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
import triton
from headstart._answers import Unsuitable
from headstart._assembled import assembler
from headstart._capture import Launch
from headstart._launches import Shape
from headstart.errors import HeadstartError
from triton.compiler.compiler import CompiledKernel
from triton.runtime.autotuner import Autotuner
from triton.runtime.jit import JITFunction

from headstart import _launches

COMPILE_ONLY = bool(os.environ.get("EVERY_COMPILE_ONLY"))
#: A launch that reaches more memory is not copied.
MOST_BYTES = 1 << 30
#: Configurations of an autotuner that are tried.
MOST_CONFIGURATIONS = 1 if COMPILE_ONLY else 3


def claimed(path: Path) -> bool:
    """Whether nobody has claimed it before."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    except FileExistsError:
        return False
    return True


def bare(ptx: str) -> str:
    """A module without places of the source: kernels that differ in those alone are one."""
    text = ptx.split("\t.section\t.debug", 1)[0]
    text = re.sub(r"(?m)^\s*(\.loc|\.file)\b.*\n", "", text)
    return re.sub(
        r"(?m)\s*//.*$|^\$L__(tmp|func_begin|func_end)\d+:$|^\t\.(section|b8|b32|b64)\b.*$", "", text
    )


_dots: dict[int, bool] = {}


def has_dot(function: Any) -> bool:
    """Whether a kernel multiplies matrices, itself or in a function that it calls."""
    while not isinstance(function, JITFunction):
        function = getattr(function, "fn", None)
        if function is None:
            return False
    if id(function) in _dots:
        return _dots[id(function)]
    _dots[id(function)] = False
    # Without comments and text.
    tree = ast.parse(textwrap.dedent(getattr(function, "_src", None) or getattr(function, "src", "")))
    text = re.sub(r"'[^'\n]*'|\"[^\"\n]*\"", "", ast.unparse(tree))
    found = re.search(r"\btl\.dot|\bdot\(|dot_scaled|wgmma|tcgen05", text) is not None
    if not found:
        names = set(re.findall(r"\b([A-Za-z_]\w*)\s*\(", text))
        own = getattr(function, "__globals__", None) or function.fn.__globals__
        called = [own[name] for name in names if isinstance(own.get(name), JITFunction)]
        found = any(has_dot(other) for other in called if other is not function)
    _dots[id(function)] = found
    return found


def flat(signature: dict[Any, Any], args: tuple[Any, ...]) -> tuple[dict[str, str], list[Any]]:
    """Types and arguments, those of tuples one after the other."""
    kinds: list[str] = []
    values: list[Any] = []

    def add(kind: Any, value: Any) -> None:
        if isinstance(kind, tuple):
            for own in zip(kind, value, strict=True):
                add(*own)
        else:
            kinds.append(kind)
            values.append(value)

    for kind, value in zip(signature.values(), args, strict=True):
        add(kind, value)
    return {str(number): kind for number, kind in enumerate(kinds)}, values


class Copies:
    """Copies launches, once for each kernel of all processes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.call = ""
        self.is_trying = False

    def seen(
        self, compiled: Any, grid: tuple[int, int, int], args: tuple[Any, ...], run: Callable[[], Any]
    ) -> Any:
        """Makes a launch, and copies it."""
        ptx = compiled.asm.get("ptx")
        if self.is_trying or not ptx or 0 in grid:
            return run()
        function = compiled.src.fn
        name = f"{function.fn.__module__}.{function.fn.__qualname__}"
        digest = hashlib.sha256(f"{name}\n{bare(ptx)}".encode()).hexdigest()[:16]
        if (self.folder / "kernels" / digest).exists() or not claimed(self.folder / "kernels" / digest):
            return run()
        note: dict[str, Any] = {"kernel": name, "call": self.call, "grid": grid, "digest": digest}
        place = self.folder / "launches" / f".{digest}"
        place.mkdir(parents=True)
        launch, shape = None, None
        try:
            signature, args = flat(compiled.src.signature, args)
            own = SimpleNamespace(
                asm=compiled.asm, metadata=compiled.metadata, src=SimpleNamespace(signature=signature)
            )
            shape = Shape.of(own)
            launch = self.before(shape, compiled, grid, args)
        except (Unsuitable, HeadstartError, OSError, OverflowError, ValueError) as why:
            note["left"] = str(why).strip() or type(why).__name__
        made = run()
        if launch is not None and shape is not None:
            note |= self.copied(shape, launch, compiled, args, place)
        (place / "note.json").write_text(json.dumps(note))
        place.rename(place.with_name(digest))
        return made

    def before(
        self, shape: Shape, compiled: Any, grid: tuple[int, int, int], args: tuple[Any, ...]
    ) -> Launch:
        """The launch, with what its memory has before it."""
        reached = shape.bytes_reached(args)
        if reached > MOST_BYTES:
            raise Unsuitable(f"the launch reaches {reached >> 20} MB")
        device, capability = "none", 90
        if not COMPILE_ONLY:
            device = torch.cuda.get_device_name()
            capability = int(compiled.metadata.target.arch)
        return shape.snapshot(grid, args, device, capability)

    def copied(
        self, shape: Shape, launch: Launch, compiled: Any, args: tuple[Any, ...], place: Path
    ) -> dict[str, Any]:
        """Writes the launch, with what it has left."""
        left: dict[int, memoryview] = {}
        for argument in shape.arguments:
            if argument.kind[0] == "*" and not COMPILE_ONLY:
                storage = args[argument.index].untyped_storage()
                whole = torch.tensor([], dtype=torch.uint8, device=storage.device).set_(storage)
                left[storage.data_ptr()] = memoryview(whole.cpu().numpy())
        memory = [
            own if COMPILE_ONLY else replace(own, after=left.get(own.address, own.contents))
            for own in launch.memory
        ]
        # What it has left is needed where the text leaves sums to the assembler, and costs a run on the simulator elsewhere.
        ran = replace(launch, memory=memory).write(place / "ran")
        (place / "launch").mkdir()
        (place / "launch" / "module.ptx").write_text(launch.ptx)
        manifest = (ran / "launch.toml").read_text()
        (place / "launch" / "launch.toml").write_text(re.sub(r"(?m)^after = .*\n", "", manifest))
        if code := compiled.asm.get("cubin"):
            (place / "original.cubin").write_bytes(code)
        reached = sum(memoryview(own.contents).nbytes for own in launch.memory)
        pointers = [
            number
            for number, (_, size) in enumerate(launch.layout)
            if number in shape.pointers(args) and size == 8
        ]
        return {
            "entry": launch.kernel,
            "group": launch.group,
            "bytes": reached,
            "pointers": pointers,
            "assembler": assembler(compiled),
            "loops": len(re.findall(r"(?m)^\s*(?:@!?%p\d+\s+)?bra(?:\.uni)?\s", launch.ptx)),
        }


def watch(copies: Copies) -> None:
    """Kernels without `tl.dot` are seen by `copies` when they are launched; the others do nothing."""
    run_function, run_autotuner, init = JITFunction.run, Autotuner.run, CompiledKernel._init_handles

    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        if has_dot(self):
            name = f"{self.fn.__module__}.{self.fn.__qualname__}"
            claimed(copies.folder / "dots" / name)
            return None
        return run_function(self, *args, **kwargs)

    def run_tuned(self: Any, *args: Any, **kwargs: Any) -> Any:
        if has_dot(self.fn):
            claimed(copies.folder / "dots" / f"{self.base_fn.__module__}.{self.base_fn.__qualname__}")
            return None
        if len(self.configs) > MOST_CONFIGURATIONS:
            step = len(self.configs) / MOST_CONFIGURATIONS
            self.configs = [self.configs[int(step * number)] for number in range(MOST_CONFIGURATIONS)]
        self.cache_results = False
        return run_autotuner(self, *args, **kwargs)

    def bench(_: Any) -> Callable[..., list[float]]:
        def timed(call: Callable[[], object], quantiles: Any = None) -> list[float]:
            copies.is_trying = True
            try:
                return 3 * [quickly(call)]
            finally:
                copies.is_trying = False

        return timed

    def _init_handles(self: Any) -> None:
        fresh = self.module is None
        if COMPILE_ONLY:
            self.module, self.function, own = "none", 0, lambda *_: None
        else:
            init(self)
            own = self._run
        if not fresh:
            return

        def launch(x: int, y: int, z: int, stream: int, function: int, *rest: Any) -> Any:
            run = lambda: own(x, y, z, stream, function, *rest)
            return copies.seen(self, (int(x), int(y), int(z)), rest[4:], run)

        self._run = launch

    JITFunction.run, Autotuner.run, Autotuner.do_bench = run, run_tuned, property(bench)  # type: ignore[method-assign,assignment]
    CompiledKernel._init_handles = _init_handles  # type: ignore[method-assign]


def quickly(call: Callable[[], object]) -> float:
    """Milliseconds of a launch: the autotuner's choice need not be exact."""
    call()
    if COMPILE_ONLY:
        return 1.0
    torch.cuda.synchronize()
    times = []
    for _ in range(5):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        call()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end))
    return sorted(times)[2]


def fill_what_is_empty() -> None:
    """Memory that nobody has written has random numbers, or zeros, so that what reads it reads the same in every run."""

    def filled(value: Any) -> Any:
        if isinstance(value, torch.Tensor) and value.numel():
            with torch.no_grad():
                if value.is_floating_point() and value.element_size() > 1:
                    value.normal_()
                else:
                    value.zero_()
        return value

    def wrapped(original: Any) -> Any:
        return lambda *args, **named: filled(original(*args, **named))

    for name in ("empty", "empty_like"):
        setattr(torch, name, wrapped(getattr(torch, name)))
    for name in ("new_empty",):
        setattr(torch.Tensor, name, wrapped(getattr(torch.Tensor, name)))


@contextlib.contextmanager
def without_a_gpu() -> Iterator[None]:
    """A driver for Triton that compiles for sm_90, and tensors of the host in the place of a GPU's."""
    from triton.backends.compiler import GPUTarget

    properties = {
        "multiprocessor_count": 132,
        "max_shared_mem": 232_448,
        "max_num_regs": 65_536,
        "warpSize": 32,
        "sm_clock_rate": 1_980_000,
        "mem_clock_rate": 3_201_000,
        "mem_bus_width": 6144,
    }
    own = SimpleNamespace(
        get_current_device=lambda: 0,
        get_current_stream=lambda *_: 0,
        get_current_target=lambda: GPUTarget("cuda", 90, 32),
        get_active_torch_device=lambda: torch.device("cpu"),
        get_device_interface=lambda: torch.cuda,
        utils=SimpleNamespace(get_device_properties=lambda *_: properties),
        launcher_cls=None,
    )
    triton.runtime.driver.set_active(own)
    shown = SimpleNamespace(
        name="NVIDIA H200",
        major=9,
        minor=0,
        multi_processor_count=132,
        shared_memory_per_block=49_152,
        shared_memory_per_block_optin=232_448,
        total_memory=1 << 37,
        L2_cache_size=50 << 20,
        warp_size=32,
        max_threads_per_multi_processor=2048,
        regs_per_multiprocessor=65_536,
    )
    for name, value in {
        "get_device_properties": lambda *_: shown,
        "get_device_capability": lambda *_: (9, 0),
        "get_device_name": lambda *_: shown.name,
        "current_device": lambda: 0,
        "device_count": lambda: 1,
        "is_available": lambda: True,
        "synchronize": lambda *_: None,
        "is_current_stream_capturing": lambda: False,
        "device": lambda *_: contextlib.nullcontext(),
        "device_of": lambda *_: contextlib.nullcontext(),
        "get_rng_state": lambda *_: torch.get_rng_state(),
        "current_stream": lambda *_: SimpleNamespace(cuda_stream=0),
        "mem_get_info": lambda *_: (1 << 36, 1 << 37),
    }.items():
        setattr(torch.cuda, name, value)
    torch.Tensor.is_cuda = property(lambda _: True)  # type: ignore[assignment]
    torch.Tensor.get_device = lambda _: 0  # type: ignore[method-assign]
    _launches.DEVICES = ("cpu",)  # type: ignore[assignment]
    yield


def main() -> None:
    folder, only = Path(sys.argv[1]), sys.argv[2:]
    copies = Copies(folder)
    with without_a_gpu() if COMPILE_ONLY else contextlib.nullcontext():
        import calls

        if COMPILE_ONLY:
            calls.DEVICE = "cpu"
        calls.TOKENS = int(os.environ.get("EVERY_TOKENS", calls.TOKENS))
        calls.ROWS = min(calls.ROWS, calls.TOKENS)
        watch(copies)
        made = calls.calls()
        fill_what_is_empty()
        for number, (name, make) in enumerate(made.items()):
            if (only and not any(word in name for word in only)) or not claimed(
                folder / "calls" / str(number)
            ):
                continue
            # Whoever watches this process sees what it is at, and since when.
            (folder / "calls" / f"at-{os.getpid()}").write_text(f"{time.time()} {name}")
            copies.call = name
            torch.manual_seed(1)
            start, why = time.monotonic(), None
            try:
                make()()
                if not COMPILE_ONLY:
                    torch.cuda.synchronize()
            except Exception as error:  # noqa: BLE001 - a call of theirs that goes wrong is a line of the result
                said = str(error).strip().splitlines()
                why = f"{type(error).__name__}: {said[0][:200] if said else ''}"
                if os.environ.get("EVERY_TRACE"):
                    traceback.print_exc()
            row = {"call": name, "seconds": round(time.monotonic() - start, 2), "error": why}
            with (folder / "calls.jsonl").open("a") as file:
                file.write(json.dumps(row) + "\n")
            if why and "CUDA error" in why:
                # Its context is of no use any more; the parent starts another process.
                sys.exit(3)


if __name__ == "__main__":
    main()
