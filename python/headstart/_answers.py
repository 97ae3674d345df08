"""Which function a launch takes: the original, or a better one of which there is an answer.

Answers are looked for once for each launch's size, in the cache or on the GPU. This is the same for kernels of all libraries;
how their launches are described is a `Shape`, and how they reach the GPU a `Gpu`.
"""

from __future__ import annotations

import contextlib
import json
import logging
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from headstart import _capture, _facts
from headstart._facts import Pointer
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


class Unsuitable(Exception):
    """A launch that is left as it is: why."""


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

    @classmethod
    def of(cls, mode: str, cache: str | None, budget: float, max_bytes: int, least: float) -> Settings:
        """What a user gave.

        Raises:
            UsageError: there is no such mode.
            CacheError: the folder was named, and nothing can be written there.
        """
        if mode not in MODES:
            raise UsageError(f"no mode {mode!r}; there are {', '.join(MODES)}")
        folder = Cache(cache)
        if cache is not None and mode in ("now", "background", "collect"):
            folder.check_writable()
        return cls(mode, folder, budget, max_bytes, least)


class Gpu(Protocol):
    """The GPU that a kernel runs on, as its library reaches it."""

    name: str
    number: int
    capability: int
    """90 for 9.0."""

    def assembler(self) -> dict[str, str]:
        """The assembler that searches use, as the command is told of it; nothing where any will do."""
        ...

    def loaded(self, ptx: str) -> Any:
        """What is launched in the original's place, of a module with a better entry."""
        ...

    def is_capturing(self) -> bool:
        """Whether launches are recorded, not run."""
        ...

    def trial(self) -> Trial | None:
        """A trial of a better kernel, where there are events to time it with."""
        ...


class Shape(Protocol):
    """How launches of a kernel are described."""

    def geometry(self, args: Any) -> tuple[tuple[int, int, int], int]:
        """Work-items of a work-group, and bytes of dynamic shared memory."""
        ...

    def key(self, grid: tuple[int, int, int], args: Any, device: str, version: str) -> str:
        """The name of a launch's answer: equal for launches that are about as large."""
        ...

    def pointers(self, args: Any) -> Mapping[int, Pointer]:
        """Where each pointer leads, by the number of its parameter."""
        ...

    def bytes_reached(self, args: Any) -> int:
        """Bytes of all memory that arguments lead into."""
        ...

    def snapshot(self, grid: tuple[int, int, int], args: Any, device: str, capability: int) -> _capture.Launch:
        """A copy of the launch and of all memory that its arguments reach."""
        ...


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
class Decision:
    """What launches of a size take."""

    better: Any = None
    """A better function, or nothing for the original."""
    test: Callable[..., bool] | None = None
    """Of their arguments: whether their addresses meet what it rests on."""
    is_met: bool = True
    """Whether the launch met what its answer rests on."""


_ORIGINAL = Decision()
_UNMET = Decision(is_met=False)


class _State:
    def __init__(self) -> None:
        self.trials = threading.local()
        self.left = [0]
        """How many trials are under way in all threads: one number to look at for each launch."""
        self.reports: dict[str, list[Report]] = {}
        self.lock = threading.Lock()
        self.launchers: weakref.WeakSet[Launcher] = weakref.WeakSet()


_state = _State()
LEFT = _state.left


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


def is_left_alone() -> bool:
    """Whether this thread's launches are."""
    return getattr(_state.trials, "depth", 0) > 0


def reports(kernel: str | None = None) -> list[Report]:
    """What was found in this process, of a kernel of this name or of all."""
    with _state.lock:
        if kernel is not None:
            return list(_state.reports.get(kernel, []))
        return [report for own in _state.reports.values() for report in own]


def undo() -> None:
    """All kernels launch their originals from now on."""
    for launcher in list(_state.launchers):
        launcher.undo()


class Launcher:
    """Decides for launches of a compiled kernel: the original, or a better one."""

    def __init__(self, name: str, shape: Shape, settings: Settings, gpu: Gpu, kernel: Any) -> None:
        """For a kernel of this name; `kernel` is what reports have as theirs."""
        self.name = name
        self.shape = shape
        self.settings = settings
        self.gpu = gpu
        self.kernel = kernel
        if settings.mode == "cached":
            try:
                settings.cache.check_device(gpu.name)
            except CacheError as error:
                # With one message for all kernels, `warnings` shows it once.
                warnings.warn(f"headstart: {error}", stacklevel=2)
        self.answers: dict[str, Kernel] = {}
        self.busy: set[str] = set()
        self.decided: dict[tuple[Any, ...], Decision] = {}
        """What was decided, by what tells launches apart."""
        _state.launchers.add(self)

    def remember(self, grid: tuple[int, int, int], args: Any, decision: Decision) -> None:
        """Has launches that are alike decided in the same way, without a look."""
        raise NotImplementedError

    def needs(self, pointers: set[int]) -> None:
        """From now on facts are about the memory of these parameters, too."""

    def forget(self) -> None:
        """What was decided is looked at again."""
        self.decided.clear()

    def undo(self) -> None:
        """The original is launched from now on."""
        raise NotImplementedError

    def test(self, facts: tuple[str, ...], pointers: Mapping[int, Pointer]) -> Callable[..., bool] | None:
        """A function of other launches' arguments, where decisions are remembered for launches with other addresses."""
        return None

    def adapted(self, function: Any) -> Any:
        """What `look` gives for a better function."""
        return function

    def look(self, grid: tuple[int, int, int], args: Any) -> Any:
        """The function for a launch that was not seen before, or its turn in a trial; nothing for the original."""
        if 0 in grid or self.gpu.is_capturing():
            return None
        try:
            key = self.shape.key(grid, args, self.gpu.name, VERSION)
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
        self.remember(grid, args, decision)
        # The answer may have come in the meantime.
        if self.answers.get(key, kernel) is not kernel:
            self.forget()
        return decision.better

    def _answer(self, key: str, grid: tuple[int, int, int], args: Any) -> Kernel:
        """The answer of this key: to leave the kernel as it is while it is looked for."""
        device = self.gpu.name
        if key in self.answers:
            return self.answers[key]
        if key in self.busy:
            return Kernel(left(self.name, device, "it is being tuned"))
        settings = self.settings
        if found := settings.cache.get(device, key):
            return self._learn(key, found)
        if settings.mode == "cached":
            return self._learn(key, left(self.name, device, "the cache has no answer for it"))
        reached = self.shape.bytes_reached(args)
        if reached > settings.max_bytes:
            why = f"it reaches {reached} bytes, more than `max_bytes`"
            return self._learn(key, left(self.name, device, why))
        launch = self.shape.snapshot(grid, args, device, self.gpu.capability)
        if settings.mode == "collect":
            folder = settings.cache.folder / "pending" / key / "launch"
            launch.write(folder)
            note = {"device": device, "key": key, **self.gpu.assembler()}
            (folder / "note.json").write_text(json.dumps(note))
            return self._learn(key, left(self.name, device, "it is collected, and not tuned yet"))
        if settings.mode == "now":
            return self._learn(key, self._tuned(key, launch))
        self.busy.add(key)
        threading.Thread(target=self._in_background, args=(key, launch), daemon=True).start()
        return Kernel(left(self.name, device, "it is being tuned"))

    def _in_background(self, key: str, launch: _capture.Launch) -> None:
        try:
            found = self._tuned(key, launch)
        except Exception as error:  # A thread has nobody else to tell.
            log.warning("kernel %s could not be tuned: %s", self.name, error)
            found = left(self.name, self.gpu.name, str(error))
        self._learn(key, found)
        self.busy.discard(key)

    def _tuned(self, key: str, launch: _capture.Launch) -> Answer:
        """Looks for an answer, with nobody else looking for it, and keeps it."""
        cache, device = self.settings.cache, self.gpu.name

        def found_now() -> Answer:
            return search(launch, device, f"cuda:{self.gpu.number}", self.settings.budget, self.gpu.assembler())

        try:
            with cache.lock(device, key):
                if found := cache.get(device, key):
                    return found
                answer = found_now()
                cache.put(device, key, answer)
                return answer
        except CacheError as error:
            warnings.warn(
                f"headstart: {error}; answers are lost with this process. Name a folder in HEADSTART_PYTHON_CACHE, "
                'or use only what there is: mode="cached"',
                stacklevel=2,
            )
            return found_now()

    def _learn(self, key: str, answer: Answer) -> Kernel:
        kernel = Kernel(answer)
        if answer.ptx is not None and answer.speedup >= self.settings.least:
            self.needs(_facts.pointers_of(answer.facts))
        log.info("kernel %s: %s", self.name, answer.plan or answer.why)
        self.answers[key] = kernel
        # What is known is no longer so: launches of a kernel that was being tuned took the original.
        self.forget()
        if answer.report:
            with _state.lock:
                found = of_tune(self.kernel, json.loads(answer.report))
                _state.reports.setdefault(self.name, []).append(found)
        return kernel

    def _decided(self, kernel: Kernel, args: Any) -> Decision:
        """The better function, where there is one and this launch meets what it rests on."""
        answer = kernel.answer
        if answer.ptx is None or answer.speedup < self.settings.least or kernel.is_slower:
            return _ORIGINAL
        pointers = self.shape.pointers(args)
        unmet = _facts.unmet(answer.facts, *self.shape.geometry(args), pointers)
        if unmet is not None:
            log.info("a launch of %s does not meet `%s`, and takes the original", self.name, unmet)
            return _UNMET
        if kernel.function is None:
            kernel.function = self.gpu.loaded(answer.ptx)
            kernel.trial = self.gpu.trial()
        return Decision(self.adapted(kernel.function), self.test(answer.facts, pointers))
