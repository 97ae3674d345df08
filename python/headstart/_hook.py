"""Triton's kernels, looked at as they are launched: `install` and `tuned`.

A compiled kernel of Triton's has a launcher, `CompiledKernel._run`, which gets the function to launch among its arguments.
The launcher is wrapped: for a launch that meets what a better kernel rests on, that kernel's function is handed over in the
place of the original's. Triton's own caches see nothing of it: the better kernel is assembled by Triton's assembler and
loaded beside the original, and neither is ever found under the other's key.

What a launch is decided by is looked up by its grid, its integers, and sizes and addresses of the tensors that facts are about
(`_fast`); what is not found there, by the sizes of its answer (`Launcher.other`); only then is the launch described.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

from headstart import _capture, _facts, _inductor
from headstart._assembled import assembler, loaded
from headstart._fast import Fast
from headstart._launches import Shape, Unsuitable
from headstart._search import left, search
from headstart._trial import LIMIT, Trial
from headstart.cache import Answer, Cache
from headstart.errors import CacheError, HeadstartError, UsageError
from headstart.report import Report, of_tune

log = logging.getLogger("headstart")

#: Part of every key: an answer of another version is not used.
VERSION = "1"
#: Launches whose decision is remembered, per compiled kernel.
REMEMBERED = 4096
MODES = ("now", "background", "cached", "collect", "off")

_Kernel = TypeVar("_Kernel")


@dataclass(frozen=True)
class Settings:
    """How kernels are looked at."""

    mode: str = "now"
    cache: Cache = field(default_factory=Cache)
    budget: float = 120.0
    """Seconds after which a search begins no further plan."""
    max_bytes: int = 4 << 30
    """A launch that reaches more memory is left as it is."""
    least: float = 1.05
    """A better kernel is taken from this speedup on."""


@dataclass
class Kernel:
    """What is known of an answer in this process: the loaded function, and what it rests on."""

    answer: Answer
    function: Any = None
    trial: Trial | None = None
    """Of the first launches, in turns with the original."""
    is_slower: bool = False
    """The trial said so: the original is launched again."""


@dataclass(frozen=True)
class _Decision:
    """What launches of a size take."""

    better: Any = None
    """A better function, or nothing for the original."""
    test: Callable[..., bool] | None = None
    """Of their arguments: whether their addresses meet what it rests on."""
    is_met: bool = True
    """Whether the launch met what its answer rests on."""


_ORIGINAL = _Decision()
_UNMET = _Decision(is_met=False)


class _State:
    def __init__(self) -> None:
        self.settings: Settings | None = None
        """Of all kernels, where `install` was called."""
        self.marked: dict[int, Settings] = {}
        """Of single kernels, by the `id` of their function, which `kept` keeps."""
        self.kept: list[Any] = []
        self.originals: list[tuple[Any, str, Any]] = []
        self.trials = threading.local()
        self.left = [0]
        """How many trials are under way in all threads: one number to look at for each launch."""
        self.reports: dict[str, list[Report]] = {}
        self.lock = threading.Lock()
        self.launchers: weakref.WeakSet[Launcher] = weakref.WeakSet()


_state = _State()


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
    _state.settings = _settings(mode, cache, budget, max_bytes, least)
    _patch()


def uninstall() -> None:
    """Leaves Triton as it was. Kernels that were already looked at launch their originals."""
    _state.settings = None
    _state.marked.clear()
    _state.kept.clear()
    _inductor.unpatch()
    for owner, name, original in reversed(_state.originals):
        setattr(owner, name, original)
    _state.originals.clear()
    for launcher in list(_state.launchers):
        launcher.undo()


def tuned(
    kernel: Any = None,
    *,
    mode: str = "now",
    cache: str | None = None,
    budget: float = 120.0,
    max_bytes: int = 4 << 30,
    least: float = 1.05,
) -> Any:
    """Has one kernel of Triton's looked at: `@headstart.tuned` above `@triton.jit`, above or below `@triton.autotune`.

    The kernel itself is returned, and is launched as before. In Triton's interpreter nothing happens. Arguments are those of
    `install`; the first launch of its size waits for its answer unless `mode` says otherwise.

    Raises:
        UsageError: it is no kernel of Triton's; what `install` raises.
    """
    if kernel is None:
        return lambda own: tuned(own, mode=mode, cache=cache, budget=budget, max_bytes=max_bytes, least=least)
    kinds = {kind.__name__ for kind in type(kernel).__mro__}
    if "InterpretedFunction" in kinds or os.environ.get("HEADSTART") == "off":
        return kernel
    inner = kernel
    while not hasattr(inner, "device_caches") and hasattr(inner, "fn"):
        inner = inner.fn
    if "InterpretedFunction" in {kind.__name__ for kind in type(inner).__mro__}:
        return kernel
    if not hasattr(inner, "device_caches"):
        raise UsageError(
            f"`headstart.tuned` is for kernels of Triton's, and this is {type(kernel).__name__!r}; put it above `@triton.jit`"
        )
    _state.marked[id(inner)] = _settings(mode, cache, budget, max_bytes, least)
    _state.kept.append(inner)
    _patch()
    return kernel


def reports(kernel: str | None = None) -> list[Report]:
    """What was found in this process, of a kernel of this name or of all."""
    with _state.lock:
        if kernel is not None:
            return list(_state.reports.get(kernel, []))
        return [report for own in _state.reports.values() for report in own]


def _settings(mode: str, cache: str | None, budget: float, max_bytes: int, least: float) -> Settings:
    if mode not in MODES:
        raise UsageError(f"no mode {mode!r}; there are {', '.join(MODES)}")
    folder = Cache(cache)
    if cache is not None and mode in ("now", "background", "collect"):
        folder.check_writable()
    return Settings(mode, folder, budget, max_bytes, least)


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
            with left_alone():
                return original(self, *args, **kwargs)

        return _bench

    replace(CompiledKernel, "_init_handles", with_launcher)
    replace(Autotuner, "_bench", as_trial)
    _inductor.patch(replace, as_trial)


def settings_of(function: Any) -> Settings | None:
    """How a kernel is looked at, by its `JITFunction`; nothing where it is not."""
    return _state.marked.get(id(function), _state.settings)


@contextlib.contextmanager
def left_alone() -> Iterator[None]:
    """Launches of this thread are the originals inside of it, and nothing is looked at: for trials of whatever kind."""
    trials = _state.trials
    trials.depth = getattr(trials, "depth", 0) + 1
    with _state.lock:
        _state.left[0] += 1
    try:
        yield
    finally:
        trials.depth -= 1
        with _state.lock:
            _state.left[0] -= 1


def _wrapped(compiled: Any, settings: Settings) -> Any:
    """The launcher in the place of `compiled._run`; that itself, where the kernel is left as it is."""
    original = compiled._run
    launcher = made_for(compiled, settings, original, len(compiled.src.signature), of_triton=True)
    if launcher is None:
        return original
    launcher.restore = lambda: setattr(compiled, "_run", original)
    return launcher.fast.launch


def made_for(compiled: Any, settings: Settings, original: Any, count: int, *, of_triton: bool) -> Launcher | None:
    """A launcher of a compiled kernel, whose `fast.launch` stands in the place of `original`.

    It takes `count` arguments, and with `of_triton` the function to launch before them. Nothing where the kernel is not looked
    at.
    """
    try:
        return Launcher(compiled, Shape.of(compiled), settings, original, count, of_triton=of_triton)
    except (Unsuitable, HeadstartError) as why:
        log.info("kernel %s is left as it is: %s", compiled.name, why)
        return None


class Launcher:
    """Decides for launches of a compiled kernel: the original, or a better one.

    `compiled` is a `CompiledKernel` of Triton's, or has what of it is used: `name`, `asm`, `metadata`, `src`.
    """

    def __init__(self, compiled: Any, shape: Shape, settings: Settings, original: Any, count: int, *, of_triton: bool) -> None:
        self.compiled = compiled
        self.shape = shape
        self.settings = settings
        self.name = shape.entry.name
        self.device, self.device_number, self.capability = _device(compiled)
        if settings.mode == "cached":
            try:
                settings.cache.check_device(self.device)
            except CacheError as error:
                # With one message for all kernels, `warnings` shows it once.
                warnings.warn(f"headstart: {error}", stacklevel=2)
        self.answers: dict[str, Kernel] = {}
        self.busy: set[str] = set()
        self.fast = Fast(shape.arguments, count, original, self.other, _state.left, of_triton=of_triton)
        self.decided: dict[tuple[Any, ...], _Decision] = {}
        """What was decided, for launches that differ in integers or addresses from what `fast` knows."""
        self.coarse = shape.coarse(frozenset())
        self.adapted: Callable[[Any], Any] = lambda function: function
        """What `look` gives for a better function."""
        self.restore: Callable[[], None] = lambda: None
        """Puts the original where others look for it."""
        _state.launchers.add(self)

    def other(self, x: int, y: int, z: int, args: tuple[Any, ...]) -> Any:
        """The function for a launch that `fast` does not know, or its turn in a trial; nothing for the original."""
        if getattr(_state.trials, "depth", 0):
            return None
        try:
            decision = self.decided[self.coarse(x, y, z, args)]
        except (KeyError, TypeError, AttributeError):
            return self.look(x, y, z, args)
        self._remember(x, y, z, args, decision)
        return decision.better

    def look(self, x: int, y: int, z: int, args: tuple[Any, ...]) -> Any:
        """The function for a launch that was not seen before, or its turn in a trial; nothing for the original."""
        if _is_capturing():
            return None
        grid = (int(x), int(y), int(z))
        if 0 in grid:
            return None
        try:
            key = self.shape.key(grid, args, self.device, VERSION)
            kernel = self._answer(key, grid, args)
            decision = self._decided(kernel, args)
        except (Unsuitable, HeadstartError) as why:
            log.info("a launch of %s is left as it is: %s", self.name, why)
            return None
        if decision.better is not None and kernel.trial is not None:
            if turn := kernel.trial.turn(decision.better):
                return turn
            ratio = kernel.trial.ratio()
            if ratio is None:
                return decision.better
            if ratio > LIMIT:
                kernel.is_slower, decision = True, _ORIGINAL
                log.info(
                    "kernel %s: %s takes %.2f times as long as the original here, which is launched again",
                    self.name,
                    kernel.answer.plan,
                    ratio,
                )
        if len(self.decided) >= REMEMBERED:
            self.decided.clear()
        with contextlib.suppress(TypeError, AttributeError):
            self.decided[self.coarse(x, y, z, args)] = decision
        self._remember(x, y, z, args, decision)
        # The answer may have come in the meantime.
        if self.answers.get(key, kernel) is not kernel:
            self._forget()
        return decision.better

    def _remember(self, x: int, y: int, z: int, args: tuple[Any, ...], decision: _Decision) -> None:
        """Has launches of these sizes decided by `fast`; not where this one does not meet what its answer rests on."""
        if not decision.is_met:
            return
        known = self.fast.known
        if len(known) >= REMEMBERED:
            known.clear()
        with contextlib.suppress(TypeError, AttributeError):
            known[self.fast.fingerprint(x, y, z, *args)] = (decision.better, decision.test)

    def _forget(self) -> None:
        self.decided.clear()
        self.fast.known.clear()

    def undo(self) -> None:
        """The original is launched from now on."""
        self.fast.undo()
        self.restore()

    def _answer(self, key: str, grid: tuple[int, int, int], args: tuple[Any, ...]) -> Kernel:
        """The answer of this key: to leave the kernel as it is while it is looked for."""
        if key in self.answers:
            return self.answers[key]
        if key in self.busy:
            return Kernel(left(self.name, self.device, "it is being tuned"))
        settings = self.settings
        if found := settings.cache.get(self.device, key):
            return self._learn(key, found)
        if settings.mode == "cached":
            return self._learn(key, left(self.name, self.device, "the cache has no answer for it"))
        reached = self.shape.bytes_reached(args)
        if reached > settings.max_bytes:
            why = f"it reaches {reached} bytes, more than `max_bytes`"
            return self._learn(key, left(self.name, self.device, why))
        launch = self.shape.snapshot(grid, args, self.device, self.capability)
        if settings.mode == "collect":
            folder = settings.cache.folder / "pending" / key / "launch"
            launch.write(folder)
            note = {"device": self.device, "key": key, **assembler(self.compiled)}
            (folder / "note.json").write_text(json.dumps(note))
            return self._learn(key, left(self.name, self.device, "it is collected, and not tuned yet"))
        if settings.mode == "now":
            return self._learn(key, self._tuned(key, launch))
        self.busy.add(key)
        threading.Thread(target=self._in_background, args=(key, launch), daemon=True).start()
        return Kernel(left(self.name, self.device, "it is being tuned"))

    def _in_background(self, key: str, launch: _capture.Launch) -> None:
        try:
            found = self._tuned(key, launch)
        except Exception as error:  # A thread has nobody else to tell.
            log.warning("kernel %s could not be tuned: %s", self.name, error)
            found = left(self.name, self.device, str(error))
        self._learn(key, found)
        self.busy.discard(key)

    def _tuned(self, key: str, launch: _capture.Launch) -> Answer:
        """Looks for an answer, with nobody else looking for it, and keeps it."""
        cache = self.settings.cache
        try:
            with cache.lock(self.device, key):
                if found := cache.get(self.device, key):
                    return found
                answer = search(
                    launch,
                    self.device,
                    f"cuda:{self.device_number}",
                    self.settings.budget,
                    assembler(self.compiled),
                )
                cache.put(self.device, key, answer)
                return answer
        except CacheError as error:
            warnings.warn(
                f"headstart: {error}; answers are lost with this process. Name a folder in HEADSTART_PYTHON_CACHE, "
                'or use only what there is: mode="cached"',
                stacklevel=2,
            )
            device = f"cuda:{self.device_number}"
            return search(launch, self.device, device, self.settings.budget, assembler(self.compiled))

    def _learn(self, key: str, answer: Answer) -> Kernel:
        kernel = Kernel(answer)
        if answer.ptx is not None and answer.speedup >= self.settings.least:
            needed = self.fast.needed | _facts.pointers_of(answer.facts)
            if needed != self.fast.needed:
                self.coarse = self.shape.coarse(needed)
                self.fast.need(needed)
        log.info("kernel %s: %s", self.name, answer.plan or answer.why)
        self.answers[key] = kernel
        # What is known is no longer so: launches of a kernel that was being tuned took the original.
        self._forget()
        if answer.report:
            with _state.lock:
                own = getattr(self.compiled.src, "fn", self.compiled)
                found = of_tune(own, json.loads(answer.report))
                _state.reports.setdefault(self.name, []).append(found)
        return kernel

    def _decided(self, kernel: Kernel, args: tuple[Any, ...]) -> _Decision:
        """The better function, where there is one and this launch meets what it rests on."""
        answer = kernel.answer
        if answer.ptx is None or answer.speedup < self.settings.least or kernel.is_slower:
            return _ORIGINAL
        pointers = self.shape.pointers(args)
        unmet = _facts.unmet(answer.facts, self.shape.group, self.shape.shared_bytes, pointers)
        if unmet is not None:
            log.info("a launch of %s does not meet `%s`, and takes the original", self.name, unmet)
            return _UNMET
        if kernel.function is None:
            kernel.function = loaded(self.compiled, answer.ptx, self.device_number)
            kernel.trial = Trial.new()
        test = self.fast.test(_facts.of_addresses(answer.facts, pointers))
        return _Decision(self.adapted(kernel.function[0]), test)


def _device(compiled: Any) -> tuple[str, int, int]:
    import torch

    number = torch.cuda.current_device()
    return torch.cuda.get_device_name(number), number, int(compiled.metadata.target.arch)


def _is_capturing() -> bool:
    import torch

    return torch.cuda.is_current_stream_capturing()
