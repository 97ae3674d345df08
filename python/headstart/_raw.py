"""Launches of kernels with plain parameters, those of Numba and CuPy: description, copies, decisions.

A decision is looked up by grid, work-group, integers and addresses of arrays. That takes a few microseconds of a launch, which
takes such a library tens of them.
"""

from __future__ import annotations

import bisect
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from headstart import _answers, _ptx
from headstart._answers import Decision, Settings, Unsuitable
from headstart._capture import Launch, Memory
from headstart._facts import Pointer
from headstart._launches import about

Geometry = tuple[int, int, int]


class Array(NamedTuple):
    """An argument in memory: the address in its parameter, and the memory that it may access there."""

    address: int
    start: int
    end: int


@dataclass(frozen=True)
class Call:
    """Arguments of a launch: an array, an integer, or the bytes of another value for each parameter of the entry."""

    grid: Geometry
    group: Geometry
    shared_bytes: int
    values: tuple[Array | int | bytes, ...]
    token: tuple[Any, ...]
    """All that answers depend on: grid, work-group, shared memory, integers and arrays. Floats decide nothing."""

    @classmethod
    def of(cls, grid: Geometry, group: Geometry, shared_bytes: int, values: Sequence[Array | int | bytes]) -> Call:
        """A launch with these arguments."""
        token = (grid, group, shared_bytes, *[own for own in values if own.__class__ is not bytes])
        return cls(grid, group, shared_bytes, tuple(values), token)


class Parameters:
    """The description of an entry's launches."""

    def __init__(self, ptx: str, entry: _ptx.Entry, read: Callable[[int, int], memoryview]) -> None:
        """`read` copies so many bytes from an address, when the device has finished the earlier launches."""
        self.ptx = ptx
        self.entry = entry
        self.read = read
        self.hash = hashlib.sha256(f"{entry.name}\n{ptx}".encode()).hexdigest()

    @property
    def layout(self) -> Sequence[tuple[int, int]]:
        """Offset and size of each parameter, in bytes."""
        return self.entry.layout

    def check(self, call: Call) -> None:
        """Refuses arguments that do not match the parameters.

        Raises:
            Unsuitable: there are more or fewer, or one has another size.
        """
        if len(call.values) != len(self.entry.sizes):
            raise Unsuitable(f"{len(call.values)} arguments for {len(self.entry.sizes)} parameters")
        for number, value in enumerate(call.values):
            if isinstance(value, Array) and self.entry.sizes[number] != 8:
                raise Unsuitable(f"argument {number} is an array, but its parameter has {self.entry.sizes[number]} bytes")

    def geometry(self, args: Call) -> tuple[Geometry, int]:
        """Work-items of a work-group, and bytes of dynamic shared memory."""
        return args.group, args.shared_bytes

    def regions(self, args: Call) -> list[tuple[int, int]]:
        """Start and end of all accessible memory, in order; overlapping arrays share one region."""
        found: list[tuple[int, int]] = []
        for own in sorted((own.start, own.end) for own in args.values if isinstance(own, Array) and own.end > own.start):
            if found and own[0] < found[-1][1]:
                found[-1] = (found[-1][0], max(found[-1][1], own[1]))
            else:
                found.append(own)
        return found

    def pointers(self, args: Call) -> dict[int, Pointer]:
        """The target of each pointer, by the number of its parameter."""
        regions = self.regions(args)
        starts = [start for start, _ in regions]
        found: dict[int, Pointer] = {}
        for number, own in enumerate(args.values):
            if not isinstance(own, Array):
                continue
            if own.end == own.start:
                found[number] = Pointer(own.address, own.start, own.end)
            else:
                found[number] = Pointer(own.address, *regions[bisect.bisect_right(starts, own.start) - 1])
        return found

    def bytes_reached(self, args: Call) -> int:
        """Bytes of all memory that arguments point to."""
        return sum(end - start for start, end in self.regions(args))

    def parameters(self, args: Call) -> bytes:
        """The bytes of all parameters."""
        words = bytearray()
        for (offset, size), value in zip(self.entry.layout, args.values, strict=True):
            words.extend(bytes(offset - len(words)))
            if isinstance(value, Array):
                words += value.address.to_bytes(8, "little")
            elif isinstance(value, int):
                words += (value & ((1 << 8 * size) - 1)).to_bytes(size, "little")
            else:
                # A library may pass more than the entry takes.
                words += value[:size].ljust(size, b"\0")
        return bytes(words)

    def key(self, grid: Geometry, args: Call, device: str, version: str) -> str:
        """The key of this launch's answer: equal for launches of the kernel of about the same size.

        Grid, sizes and integers count by their number of bits, work-groups and shared memory exactly.
        """
        parts: list[Any] = [version, device, self.hash, [about(own) for own in grid], args.group, args.shared_bytes]
        starts: dict[int, int] = {}
        for number, own in self.pointers(args).items():
            parts.append((number, about(own.end - own.start), starts.setdefault(own.start, number), own.address % 16))
        parts += [(number, about(own)) for number, own in enumerate(args.values) if isinstance(own, int)]
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:32]

    def snapshot(self, grid: Geometry, args: Call, device: str, capability: int) -> Launch:
        """A copy of the launch and of all memory that its arguments point to. Waits for the device."""
        return Launch(
            kernel=self.entry.name,
            ptx=self.ptx,
            groups=grid,
            group=args.group,
            parameters=self.parameters(args),
            layout=self.entry.layout,
            memory=[Memory(start, self.read(start, end - start)) for start, end in self.regions(args)],
            shared_bytes=args.shared_bytes,
            device=device,
            capability=capability,
        )


class RawLauncher(_answers.Launcher):
    """Decides for a kernel's launches by a token of each, which includes its addresses."""

    shape: Parameters

    def __init__(self, parameters: Parameters, settings: Settings, gpu: _answers.Gpu, kernel: Any) -> None:
        super().__init__(parameters.entry.name, parameters, settings, gpu, kernel)
        self.is_undone = False

    def token(self, launch: tuple[Any, ...]) -> tuple[Any, ...] | None:
        """What tells a launch apart, without its parameters; `None` if it takes those.

        `launch` are the arguments of `for_launch`, as the library has them.
        """
        raise NotImplementedError

    def described(self, launch: tuple[Any, ...]) -> Call | None:
        """A launch's parameters; `None` for one that the library itself refuses.

        Raises:
            Unsuitable: it cannot be described.
        """
        raise NotImplementedError

    def for_launch(self, *launch: Any) -> Any:
        """The better function for a launch, or its turn in a trial; `None` for the original."""
        if self.is_undone or _answers.is_left_alone():
            return None
        token = self.token(launch)
        if token is not None and (known := self.decided.get(token)) is not None:
            return known.better
        try:
            call = self.described(launch)
            if call is None:
                return None
            decision = self.decided.get(call.token)
            if decision is None:
                self.shape.check(call)
        except Unsuitable as why:
            _answers.log.info("a launch of %s is left as it is: %s", self.name, why)
            return None
        if decision is None:
            better = self.look(call.grid, call)
            decision = self.decided.get(call.token)
        else:
            better = decision.better
        # The library's token costs less than the launch's own.
        if token is not None and decision is not None and len(self.decided) < _answers.REMEMBERED:
            self.decided[token] = decision
        return better

    def remember(self, grid: Geometry, args: Call, decision: Decision) -> None:
        """Reuses the decision for equal launches, without a check."""
        self.decided[args.token] = decision

    def undo(self) -> None:
        """From now on the original is launched."""
        self.is_undone = True


def three(numbers: int | Sequence[int]) -> Geometry:
    """Three extents, from one to three given ones."""
    if type(numbers) is tuple and len(numbers) == 3:
        return numbers
    own = (numbers,) if isinstance(numbers, int) else tuple(int(number) for number in numbers)
    x, y, z = (*own, 1, 1)[:3]
    return x, y, z
