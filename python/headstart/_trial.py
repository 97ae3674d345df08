"""The first launches of a better kernel: alternating with the original, each timed in the program itself.

A search measures a copy of one launch. In the program, caches, clocks and sizes differ, so the faster kernel there can be
slower here: then the original is launched again. Both compute the same, and nothing waits for the GPU.
"""

from __future__ import annotations

import statistics
import sys
import threading
from typing import Any

#: Launches of each kernel, the first of which is not counted: it loads code.
ROUNDS = 9
#: A better kernel has to take less than this multiple of the original's time: a gain within the noise is none.
LIMIT = 0.98


class Turn:
    """One launch of a trial: a context around it, and the function to launch; `None` for the original."""

    __slots__ = ("end", "function", "start")

    def __init__(self, function: Any, start: Any, end: Any) -> None:
        self.function = function
        self.start = start
        self.end = end

    def __enter__(self) -> None:
        self.start.record()

    def __exit__(self, *_: object) -> None:
        self.end.record()


class Trial:
    """The timed launches of a better kernel and its original."""

    def __init__(self, event: Any) -> None:
        self.event = event
        self.turns: list[Turn] = []
        self.lock = threading.Lock()
        self.found: float | None = None

    @staticmethod
    def new() -> Trial | None:
        """A trial, if PyTorch has events to time it with."""
        torch = sys.modules.get("torch")
        event = getattr(getattr(torch, "cuda", None), "Event", None)
        return None if event is None else Trial(event)

    def turn(self, better: Any) -> Turn | None:
        """The next launch of the trial; `None` after the last."""
        with self.lock:
            count = len(self.turns)
            if self.found is not None or count >= 2 * ROUNDS:
                return None
            function = better if count % 2 else None
            start, end = self.event(enable_timing=True), self.event(enable_timing=True)
            self.turns.append(Turn(function, start, end))
            return self.turns[-1]

    def ratio(self) -> float | None:
        """The better kernel's time, as a multiple of the original's; `None` while launches are in flight."""
        with self.lock:
            if self.found is None:
                if len(self.turns) < 2 * ROUNDS or not all(turn.end.query() for turn in self.turns):
                    return None
                times = [turn.start.elapsed_time(turn.end) for turn in self.turns]
                original, better = (statistics.median(times[first::2]) for first in (2, 3))
                self.found = better / original if original > 0 else 1.0
                # The events are no longer needed.
                self.turns.clear()
            return self.found
