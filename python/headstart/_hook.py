"""Triton's kernels, watched as they are launched.

A compiled Triton kernel has a launcher, `CompiledKernel._run`, which gets the function to launch among its arguments. The
launcher is wrapped: a launch that meets a better kernel's assumptions gets that kernel's function in place of the original's.
Triton's own caches are not affected: the better kernel is assembled by Triton's assembler and loaded beside the original, and
neither is ever found under the other's key.

A decision is looked up by grid, integers, and sizes and addresses of the tensors that facts concern (`_fast`); if it is not
found there, by the sizes in the answer's key (`TritonLauncher.other`); only then is the launch described.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Mapping
from typing import Any

from headstart import _answers, _facts, _inductor
from headstart._answers import Decision, Settings, Unsuitable
from headstart._assembled import assembler, loaded
from headstart._facts import Pointer
from headstart._fast import Fast
from headstart._launches import Shape
from headstart._trial import Trial
from headstart.errors import HeadstartError, UsageError

log = logging.getLogger("headstart")


class _State:
    def __init__(self) -> None:
        self.settings: Settings | None = None
        """Of all kernels, where `install` was called."""
        self.marked: dict[int, Settings] = {}
        """Of single kernels, by the `id` of their function, which `kept` keeps."""
        self.kept: list[Any] = []
        self.originals: list[tuple[Any, str, Any]] = []


_state = _State()


def install(settings: Settings) -> None:
    """Watches every kernel that this process compiles from now on.

    Raises:
        UsageError: Triton is missing, or older than 3.5.
    """
    _state.settings = settings
    _patch()


def uninstall() -> None:
    """Restores Triton."""
    _state.settings = None
    _state.marked.clear()
    _state.kept.clear()
    _inductor.unpatch()
    for owner, name, original in reversed(_state.originals):
        setattr(owner, name, original)
    _state.originals.clear()


def unwrapped(kernel: Any) -> Any:
    """The `JITFunction` below decorators; `None` if there is none, as in Triton's interpreter."""
    inner = kernel
    while not hasattr(inner, "device_caches") and hasattr(inner, "fn"):
        inner = inner.fn
    return inner if hasattr(inner, "device_caches") else None


def is_interpreted(kernel: Any) -> bool:
    """Whether a kernel, with its decorators, is one of Triton's interpreter."""
    while True:
        if "InterpretedFunction" in {kind.__name__ for kind in type(kernel).__mro__}:
            return True
        if not hasattr(kernel, "fn"):
            return False
        kernel = kernel.fn


def mark(function: Any, settings: Settings) -> None:
    """Watches one `JITFunction`.

    Raises:
        UsageError: as for `install`.
    """
    _state.marked[id(function)] = settings
    _state.kept.append(function)
    _patch()


def _patch() -> None:
    if _state.originals:
        return
    try:
        from triton.compiler.compiler import CompiledKernel
        from triton.runtime.autotuner import Autotuner
    except ImportError as error:
        raise UsageError(f"Triton 3.5 or later is required: {error}; `pip install triton`") from error
    if not hasattr(CompiledKernel, "_init_handles"):
        raise UsageError(
            "this version of Triton is not supported: its compiled kernels have no `_init_handles`; accepted: 3.5 to 3.9"
        )

    def replace(owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        original = getattr(owner, name)
        _state.originals.append((owner, name, original))
        setattr(owner, name, make(original))

    def with_launcher(original: Any) -> Any:
        def _init_handles(self: Any) -> None:
            fresh = self.module is None
            original(self)
            if fresh and self.module is not None:
                settings = settings_of(getattr(self.src, "fn", None))
                if settings is not None and settings.mode != "off":
                    self._run = _wrapped(self, settings)

        return _init_handles

    def as_trial(original: Any) -> Any:
        def _bench(self: Any, *args: Any, **kwargs: Any) -> Any:
            with _answers.left_alone():
                return original(self, *args, **kwargs)

        return _bench

    replace(CompiledKernel, "_init_handles", with_launcher)
    replace(Autotuner, "_bench", as_trial)
    _inductor.patch(replace, as_trial)


def settings_of(function: Any) -> Settings | None:
    """The settings for a kernel, by its `JITFunction`; `None` if it is not watched."""
    return _state.marked.get(id(function), _state.settings)


def _wrapped(compiled: Any, settings: Settings) -> Any:
    """The launcher in place of `compiled._run`; that one itself if the kernel is not watched."""
    original = compiled._run
    launcher = made_for(compiled, settings, original, len(compiled.src.signature), of_triton=True)
    if launcher is None:
        return original
    launcher.restore = lambda: setattr(compiled, "_run", original)
    return launcher.fast.launch


def made_for(compiled: Any, settings: Settings, original: Any, count: int, *, of_triton: bool) -> TritonLauncher | None:
    """A launcher of a compiled kernel, whose `fast.launch` replaces `original`.

    It takes `count` arguments, and with `of_triton` the function to launch before them. `None` if the kernel is not watched.
    """
    try:
        return TritonLauncher(compiled, Shape.of(compiled), settings, original, count, of_triton=of_triton)
    except (Unsuitable, HeadstartError) as why:
        log.info("kernel %s is left as it is: %s", compiled.name, why)
        return None


class _Gpu:
    """The GPU of a compiled kernel, through PyTorch and Triton."""

    def __init__(self, compiled: Any) -> None:
        import torch

        self.compiled = compiled
        self.modules: list[Any] = []
        """Of better kernels: functions are theirs."""
        self.number = torch.cuda.current_device()
        self.name = torch.cuda.get_device_name(self.number)
        self.capability = int(compiled.metadata.target.arch)

    def assembler(self) -> dict[str, str]:
        return assembler(self.compiled)

    def loaded(self, ptx: str) -> Any:
        function, module = loaded(self.compiled, ptx, self.number)
        self.modules.append(module)
        return function

    def functions(self, better: Any) -> tuple[int, int] | None:
        original = getattr(self.compiled, "function", None)
        return (original, better) if isinstance(original, int) and isinstance(better, int) else None

    def is_capturing(self) -> bool:
        import torch

        return torch.cuda.is_current_stream_capturing()

    def trial(self) -> Trial | None:
        return Trial.new()


class TritonLauncher(_answers.Launcher):
    """Decides for the launches of a compiled Triton kernel.

    `compiled` is a `CompiledKernel`, or has the attributes used here: `name`, `asm`, `metadata`, `src`.
    """

    shape: Shape

    def __init__(self, compiled: Any, shape: Shape, settings: Settings, original: Any, count: int, *, of_triton: bool) -> None:
        own = getattr(compiled.src, "fn", compiled)
        super().__init__(shape.entry.name, shape, settings, _Gpu(compiled), own)
        self.fast = Fast(shape.arguments, count, original, self.other, _answers.LEFT, of_triton=of_triton)
        self.are_of_numbers = False
        self.coarse = shape.coarse(frozenset())
        """What tells launches apart that `fast` does not know: those that differ in integers or addresses."""
        self.adapt: Callable[[Any], Any] = lambda function: function
        self.restore: Callable[[], None] = lambda: None
        """Puts the original where others look for it."""

    def other(self, x: int, y: int, z: int, args: tuple[Any, ...]) -> Any:
        """The function for a launch that `fast` does not know, or its turn in a trial; `None` for the original."""
        if _answers.is_left_alone():
            return None
        try:
            decision = self.decided[self.coarse(x, y, z, args)]
        except (KeyError, TypeError, AttributeError):
            return self.look((int(x), int(y), int(z)), args)
        self._remember((x, y, z), args, decision)
        return decision.better

    def remember(self, grid: tuple[int, int, int], args: tuple[Any, ...], decision: Decision) -> None:
        """Reuses the decision for equal launches, without a check."""
        with contextlib.suppress(TypeError, AttributeError):
            self.decided[self.coarse(*grid, args)] = decision
        self._remember(grid, args, decision)

    def _remember(self, grid: tuple[int, int, int], args: tuple[Any, ...], decision: Decision) -> None:
        """Lets `fast` decide for launches of these sizes, unless this one violates its answer's assumptions."""
        if not decision.is_met:
            return
        known = self.fast.known
        if len(known) >= _answers.REMEMBERED:
            known.clear()
        with contextlib.suppress(TypeError, AttributeError):
            known[self.fast.fingerprint(*grid, *args)] = (decision.better, decision.test)

    def needs(self, pointers: set[int], are_of_numbers: bool) -> None:
        """From now on facts also concern the memory of these parameters, and each number instead of about how large it is."""
        needed = self.fast.needed | pointers
        if needed != self.fast.needed or are_of_numbers > self.are_of_numbers:
            self.are_of_numbers |= are_of_numbers
            self.coarse = self.shape.coarse(needed, are_of_numbers=self.are_of_numbers)
            self.fast.need(needed)

    def forget(self) -> None:
        """Decisions are made anew."""
        super().forget()
        self.fast.known.clear()

    def test(
        self, facts: tuple[str, ...], pointers: Mapping[int, Pointer], reached: Mapping[int, range]
    ) -> Callable[..., bool] | None:
        """A function of other launches' arguments, with tensors of the same sizes: whether addresses meet the facts."""
        return self.fast.test(_facts.of_addresses(facts, pointers, reached))

    def adapted(self, function: Any) -> Any:
        """The result of `look` for a better function."""
        return self.adapt(function)

    def undo(self) -> None:
        """From now on the original is launched."""
        self.fast.undo()
        self.restore()
