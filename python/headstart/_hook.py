"""Triton's kernels, looked at as they are launched.

A compiled kernel of Triton's has a launcher, `CompiledKernel._run`, which gets the function to launch among its arguments.
The launcher is wrapped: for a launch that meets what a better kernel rests on, that kernel's function is handed over in the
place of the original's. Triton's own caches see nothing of it: the better kernel is assembled by Triton's assembler and
loaded beside the original, and neither is ever found under the other's key.

What a launch is decided by is looked up by its grid, its integers, and sizes and addresses of the tensors that facts are about
(`_fast`); what is not found there, by the sizes of its answer (`TritonLauncher.other`); only then is the launch described.
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
    """Looks at every kernel that this process compiles from now on.

    Raises:
        UsageError: Triton is not there, or older than 3.5.
    """
    _state.settings = settings
    _patch()


def uninstall() -> None:
    """Leaves Triton as it was."""
    _state.settings = None
    _state.marked.clear()
    _state.kept.clear()
    _inductor.unpatch()
    for owner, name, original in reversed(_state.originals):
        setattr(owner, name, original)
    _state.originals.clear()


def unwrapped(kernel: Any) -> Any:
    """The `JITFunction` below decorators; nothing where there is none. Triton's interpreter has none."""
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
    """Has one `JITFunction` looked at.

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
        raise UsageError(f"Triton 3.5 or later is needed: {error}; `pip install triton`") from error
    if not hasattr(CompiledKernel, "_init_handles"):
        raise UsageError("this Triton is not known: its compiled kernels have no `_init_handles`; 3.5 to 3.9 are")

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
    """How a kernel is looked at, by its `JITFunction`; nothing where it is not."""
    return _state.marked.get(id(function), _state.settings)


def _wrapped(compiled: Any, settings: Settings) -> Any:
    """The launcher in the place of `compiled._run`; that itself, where the kernel is left as it is."""
    original = compiled._run
    launcher = made_for(compiled, settings, original, len(compiled.src.signature), of_triton=True)
    if launcher is None:
        return original
    launcher.restore = lambda: setattr(compiled, "_run", original)
    return launcher.fast.launch


def made_for(compiled: Any, settings: Settings, original: Any, count: int, *, of_triton: bool) -> TritonLauncher | None:
    """A launcher of a compiled kernel, whose `fast.launch` stands in the place of `original`.

    It takes `count` arguments, and with `of_triton` the function to launch before them. Nothing where the kernel is not looked
    at.
    """
    try:
        return TritonLauncher(compiled, Shape.of(compiled), settings, original, count, of_triton=of_triton)
    except (Unsuitable, HeadstartError) as why:
        log.info("kernel %s is left as it is: %s", compiled.name, why)
        return None


class _Gpu:
    """The GPU as PyTorch and Triton reach it, for a compiled kernel."""

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

    def is_capturing(self) -> bool:
        import torch

        return torch.cuda.is_current_stream_capturing()

    def trial(self) -> Trial | None:
        return Trial.new()


class TritonLauncher(_answers.Launcher):
    """Decides for launches of a compiled kernel of Triton's.

    `compiled` is a `CompiledKernel`, or has what of it is used: `name`, `asm`, `metadata`, `src`.
    """

    shape: Shape

    def __init__(self, compiled: Any, shape: Shape, settings: Settings, original: Any, count: int, *, of_triton: bool) -> None:
        own = getattr(compiled.src, "fn", compiled)
        super().__init__(shape.entry.name, shape, settings, _Gpu(compiled), own)
        self.fast = Fast(shape.arguments, count, original, self.other, _answers.LEFT, of_triton=of_triton)
        self.coarse = shape.coarse(frozenset())
        """What tells launches apart that `fast` does not know: those that differ in integers or addresses."""
        self.adapt: Callable[[Any], Any] = lambda function: function
        self.restore: Callable[[], None] = lambda: None
        """Puts the original where others look for it."""

    def other(self, x: int, y: int, z: int, args: tuple[Any, ...]) -> Any:
        """The function for a launch that `fast` does not know, or its turn in a trial; nothing for the original."""
        if _answers.is_left_alone():
            return None
        try:
            decision = self.decided[self.coarse(x, y, z, args)]
        except (KeyError, TypeError, AttributeError):
            return self.look((int(x), int(y), int(z)), args)
        self._remember((x, y, z), args, decision)
        return decision.better

    def remember(self, grid: tuple[int, int, int], args: tuple[Any, ...], decision: Decision) -> None:
        """Has launches that are alike decided in the same way, without a look."""
        with contextlib.suppress(TypeError, AttributeError):
            self.decided[self.coarse(*grid, args)] = decision
        self._remember(grid, args, decision)

    def _remember(self, grid: tuple[int, int, int], args: tuple[Any, ...], decision: Decision) -> None:
        """Has launches of these sizes decided by `fast`; not where this one does not meet what its answer rests on."""
        if not decision.is_met:
            return
        known = self.fast.known
        if len(known) >= _answers.REMEMBERED:
            known.clear()
        with contextlib.suppress(TypeError, AttributeError):
            known[self.fast.fingerprint(*grid, *args)] = (decision.better, decision.test)

    def needs(self, pointers: set[int]) -> None:
        """From now on facts are about the memory of these parameters, too."""
        needed = self.fast.needed | pointers
        if needed != self.fast.needed:
            self.coarse = self.shape.coarse(needed)
            self.fast.need(needed)

    def forget(self) -> None:
        """What was decided is looked at again."""
        super().forget()
        self.fast.known.clear()

    def test(self, facts: tuple[str, ...], pointers: Mapping[int, Pointer]) -> Callable[..., bool] | None:
        """A function of other launches' arguments, with tensors of the same sizes: whether addresses meet the facts."""
        return self.fast.test(_facts.of_addresses(facts, pointers))

    def adapted(self, function: Any) -> Any:
        """What `look` gives for a better function."""
        return self.adapt(function)

    def undo(self) -> None:
        """The original is launched from now on."""
        self.fast.undo()
        self.restore()
