"""Which function a launch uses: the original, or a better one from an answer.

An answer is looked up once per launch size, in the cache or by a search on the GPU. This module serves kernels of all
libraries; a `Shape` describes their launches, a `Gpu` runs them.
"""

from __future__ import annotations

import contextlib
import json
import logging
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from headstart import _capture, _facts, _reach, _resident
from headstart._facts import Pointer
from headstart._search import left, search
from headstart._trial import LIMIT, Trial
from headstart.cache import Answer, Cache
from headstart.errors import CacheError, HeadstartError, UsageError
from headstart.report import Report, of_tune

log = logging.getLogger("headstart")

#: Part of every key: answers of other versions are not used.
VERSION = "1"
#: Decisions kept per compiled kernel, by launch.
REMEMBERED = 4096
MODES = ("now", "background", "cached", "collect", "off")


class Unsuitable(Exception):
    """A launch that keeps the original kernel, with the reason."""


@dataclass(frozen=True)
class Settings:
    """How kernels are watched."""

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
        """The user's settings.

        Raises:
            UsageError: there is no such mode.
            CacheError: the folder was named, and cannot be written.
        """
        if mode not in MODES:
            raise UsageError(f"unknown mode {mode!r}; accepted: {', '.join(MODES)}")
        folder = Cache(cache)
        if cache is not None and mode in ("now", "background", "collect"):
            folder.check_writable()
        return cls(mode, folder, budget, max_bytes, least)


class Gpu(Protocol):
    """The GPU that runs a kernel, through the kernel's library."""

    name: str
    number: int
    capability: int
    """90 for 9.0."""

    def assembler(self) -> dict[str, str]:
        """The assembler for searches, in the command's form; `None` if any will do."""
        ...

    def loaded(self, ptx: str) -> Any:
        """Loads a module with a better entry; gives the function to launch in place of the original."""
        ...

    def functions(self, better: Any) -> tuple[int, int] | None:
        """The driver's handles of the original and of a better function; `None` if they cannot be had."""
        ...

    def is_capturing(self) -> bool:
        """Whether launches are being recorded instead of run."""
        ...

    def trial(self) -> Trial | None:
        """A trial of a better kernel, if there are events to time it with."""
        ...


class Shape(Protocol):
    """The description of a kernel's launches."""

    def geometry(self, args: Any) -> tuple[tuple[int, int, int], int]:
        """Work-items of a work-group, and bytes of dynamic shared memory."""
        ...

    @property
    def layout(self) -> Sequence[tuple[int, int]]:
        """Offset and size of each parameter, in bytes."""
        ...

    def parameters(self, args: Any) -> bytes:
        """The bytes of all parameters."""
        ...

    def key(self, grid: tuple[int, int, int], args: Any, device: str, version: str) -> str:
        """The key of a launch's answer: equal for launches of about the same size."""
        ...

    def pointers(self, args: Any) -> Mapping[int, Pointer]:
        """The target of each pointer, by the number of its parameter."""
        ...

    def bytes_reached(self, args: Any) -> int:
        """Bytes of all memory that arguments point to."""
        ...

    def snapshot(self, grid: tuple[int, int, int], args: Any, device: str, capability: int) -> _capture.Launch:
        """A copy of the launch and of all memory that its arguments point to."""
        ...


@dataclass
class Kernel:
    """An answer in this process: the loaded function, and the facts that it assumes."""

    answer: Answer
    function: Any = None
    trial: Trial | None = None
    """Of the first launches, in turns with the original."""
    is_slower: bool = False
    """The trial said so: the original is launched again."""


@dataclass(frozen=True)
class Decision:
    """The choices for launches of a size."""

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
    """Inside, this thread launches original kernels, and nothing is watched: for any kind of trial."""
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
    """Whether this thread launches original kernels only."""
    return getattr(_state.trials, "depth", 0) > 0


def reports(kernel: str | None = None) -> list[Report]:
    """The answers found in this process, for a kernel of this name or for all."""
    with _state.lock:
        if kernel is not None:
            return list(_state.reports.get(kernel, []))
        return [report for own in _state.reports.values() for report in own]


def undo() -> None:
    """From now on all kernels launch their originals."""
    for launcher in list(_state.launchers):
        launcher.undo()


class Launcher:
    """Decides for the launches of a compiled kernel: the original, or a better one."""

    def __init__(self, name: str, shape: Shape, settings: Settings, gpu: Gpu, kernel: Any) -> None:
        """For a kernel of this name; `kernel` is its name in reports."""
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
        """Reuses the decision for equal launches, without a check."""
        raise NotImplementedError

    def needs(self, pointers: set[int], are_of_numbers: bool) -> None:
        """From now on facts also concern the memory of these parameters, and each number instead of about how large it is."""

    def forget(self) -> None:
        """Decisions are made anew."""
        self.decided.clear()

    def undo(self) -> None:
        """From now on the original is launched."""
        raise NotImplementedError

    def test(
        self, facts: tuple[str, ...], pointers: Mapping[int, Pointer], reached: Mapping[int, range]
    ) -> Callable[..., bool] | None:
        """A function of other launches' arguments, if decisions are kept for launches with other addresses."""
        return None

    def adapted(self, function: Any) -> Any:
        """The result of `look` for a better function."""
        return function

    def look(self, grid: tuple[int, int, int], args: Any) -> Any:
        """The function for a new launch, or its turn in a trial; `None` for the original."""
        if 0 in grid or self.gpu.is_capturing():
            return None
        try:
            key = self.shape.key(grid, args, self.gpu.name, VERSION)
            kernel = self._answer(key, grid, args)
            decision = self._decided(kernel, grid, args)
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
        # The answer may have arrived in the meantime.
        if self.answers.get(key, kernel) is not kernel:
            self.forget()
        return decision.better

    def _answer(self, key: str, grid: tuple[int, int, int], args: Any) -> Kernel:
        """The answer of this key; while it is being searched for, one that keeps the original kernel."""
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
        except Exception as error:  # A thread can report an exception to nobody else.
            log.warning("kernel %s could not be tuned: %s", self.name, error)
            found = left(self.name, self.gpu.name, str(error))
        self._learn(key, found)
        self.busy.discard(key)

    def _tuned(self, key: str, launch: _capture.Launch) -> Answer:
        """Searches for an answer under a lock, and stores it."""
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
                'or use only cached answers: mode="cached"',
                stacklevel=2,
            )
            return found_now()

    def _learn(self, key: str, answer: Answer) -> Kernel:
        kernel = Kernel(answer)
        if answer.ptx is not None and answer.speedup >= self.settings.least:
            self.needs(_facts.pointers_of(answer.facts), _facts.are_of_numbers(answer.facts))
        log.info("kernel %s: %s", self.name, answer.plan or answer.why)
        self.answers[key] = kernel
        # The cached decisions are out of date: launches of a kernel that was being tuned used the original.
        self.forget()
        if answer.report:
            with _state.lock:
                found = of_tune(self.kernel, json.loads(answer.report))
                _state.reports.setdefault(self.name, []).append(found)
        return kernel

    def _load(self, kernel: Kernel, ptx: str) -> None:
        if kernel.function is None:
            kernel.function = self.gpu.loaded(ptx)
            kernel.trial = self.gpu.trial()

    def _decided(self, kernel: Kernel, grid: tuple[int, int, int], args: Any) -> Decision:
        """The better function, if there is one and this launch meets its assumptions."""
        answer = kernel.answer
        if answer.ptx is None or answer.speedup < self.settings.least or kernel.is_slower:
            return _ORIGINAL
        pointers = self.shape.pointers(args)
        reached: Mapping[int, range] = {}
        if _facts.are_of_numbers(answer.facts):
            reached = _reach.of_launch(answer.facts, self.shape.parameters(args), self.shape.layout, grid)
        group, shared_bytes = self.shape.geometry(args)

        def are_resident() -> bool:
            self._load(kernel, answer.ptx or "")
            functions = self.gpu.functions(kernel.function)
            return functions is not None and _resident.are_as_many(functions, group, shared_bytes)

        unmet = _facts.unmet(answer.facts, group, shared_bytes, pointers, reached, are_resident)
        if unmet is not None:
            log.info("a launch of %s does not meet `%s`, and takes the original", self.name, unmet)
            return _UNMET
        self._load(kernel, answer.ptx)
        return Decision(self.adapted(kernel.function), self.test(answer.facts, pointers, reached))
