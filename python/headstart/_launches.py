"""Launches of Triton's compiled kernels: their arguments, and copies of them.

A launch is described by the entry's parameters in order. A tensor is known by the allocation around it, its storage.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from headstart import _ptx
from headstart._answers import Unsuitable
from headstart._capture import Launch, Memory
from headstart._facts import Pointer

_FORMATS = {"fp32": "<f", "fp64": "<d", "fp16": "<e"}
_INTEGERS = {"i1": 1, "u1": 1, "i8": 1, "u8": 1, "i16": 2, "u16": 2, "i32": 4, "u32": 4, "i64": 8, "u64": 8}


#: Where the tensors of watched launches lie.
DEVICES = ("cuda",)


@dataclass(frozen=True)
class Argument:
    """An argument that is a parameter of the entry."""

    index: int
    """Where it stands among the arguments."""
    kind: str
    """Triton's type: `*fp32`, `i32`, …"""

    @property
    def is_integer(self) -> bool:
        """Whether it is an integer: its size is part of a launch's key."""
        return self.kind in _INTEGERS


@dataclass(frozen=True)
class Shape:
    """A compiled kernel's parameters."""

    ptx: str
    hash: str
    entry: _ptx.Entry
    arguments: tuple[Argument, ...]
    shared_bytes: int
    group: tuple[int, int, int]

    @classmethod
    def of(cls, compiled: Any) -> Shape:
        """Of a compiled Triton kernel.

        Raises:
            Unsuitable: it has no PTX, or parameters that are not supported.
        """
        ptx = compiled.asm.get("ptx") if hasattr(compiled.asm, "get") else None
        if not ptx:
            raise Unsuitable("it has no PTX")
        metadata = compiled.metadata
        if getattr(metadata, "num_ctas", 1) != 1:
            raise Unsuitable("it has clusters of work-groups")
        if getattr(metadata, "launch_cooperative_grid", False) or getattr(metadata, "launch_pdl", False):
            raise Unsuitable("its launch depends on others on the device")
        if getattr(metadata, "global_scratch_size", 0) or getattr(metadata, "profile_scratch_size", 0):
            raise Unsuitable("it uses Triton's scratch memory")
        entry = _ptx.entry(ptx, metadata.name)
        arguments: list[Argument] = []
        for index, kind in enumerate(compiled.src.signature.values()):
            if kind == "constexpr":
                continue
            if not isinstance(kind, str) or not (kind[0] == "*" or kind in _FORMATS or kind in _INTEGERS):
                raise Unsuitable(f"it has a parameter of type {kind}")
            arguments.append(Argument(index, kind))
        if len(entry.sizes) < len(arguments):
            raise Unsuitable("its entry has fewer parameters than arguments")
        group = entry.group or (32 * int(metadata.num_warps), 1, 1)
        digest = hashlib.sha256(ptx.encode()).hexdigest()
        return cls(ptx, digest, entry, tuple(arguments), int(metadata.shared), group)

    def geometry(self, args: Sequence[Any]) -> tuple[tuple[int, int, int], int]:
        """Work-items of a work-group, and bytes of dynamic shared memory: the same for all launches."""
        return self.group, self.shared_bytes

    @property
    def layout(self) -> Sequence[tuple[int, int]]:
        """Offset and size of each parameter, in bytes."""
        return self.entry.layout

    def coarse(
        self, needed: frozenset[int], *, are_of_numbers: bool = False
    ) -> Callable[[int, int, int, tuple[Any, ...]], tuple[Any, ...]]:
        """A function of grid and arguments: equal results mean one answer, and equal facts.

        `needed` are the parameters whose allocations facts concern; for other tensors only the number of elements counts.
        Grid and integers count as they do for keys; with `are_of_numbers`, facts depend on each of them.
        """
        number_of = "" if are_of_numbers else "about"
        parts = [f"{number_of}({own})" for own in "xyz"]
        for number, argument in enumerate(self.arguments):
            own = f"a[{argument.index}]"
            if argument.is_integer:
                parts.append(f"{number_of}({own})")
            elif argument.kind[0] == "*" and number not in needed:
                parts.append(f"{own}.numel()")
            elif argument.kind[0] == "*":
                # The memory's start follows from address and offset, its end from its size.
                parts += [f"{own}.data_ptr()", f"{own}.storage_offset()", f"{own}.untyped_storage().nbytes()"]
        return eval(f"lambda x, y, z, a: ({', '.join(parts)},)", {"about": about})

    def pointers(self, args: Sequence[Any]) -> dict[int, Pointer]:
        """The target of each pointer, by the number of its parameter.

        Raises:
            Unsuitable: an argument is not a tensor on a GPU.
        """
        found: dict[int, Pointer] = {}
        for number, argument in enumerate(self.arguments):
            if argument.kind[0] != "*":
                continue
            value = args[argument.index]
            if not hasattr(value, "untyped_storage"):
                raise Unsuitable(f"argument {argument.index} is a pointer without a known tensor")
            storage = value.untyped_storage()
            if not str(storage.device).startswith(DEVICES):
                # Triton reports it itself, in its users' terms.
                raise Unsuitable(f"argument {argument.index} is on {storage.device}, not on a GPU")
            start = storage.data_ptr()
            found[number] = Pointer(value.data_ptr(), start, start + storage.nbytes())
        for number in range(len(self.arguments), len(self.entry.sizes)):
            found[number] = Pointer(0, 0, 0)
        return found

    def bytes_reached(self, args: Sequence[Any]) -> int:
        """Bytes of all allocations that arguments point to."""
        found = {own.start: own.end - own.start for own in self.pointers(args).values()}
        return sum(found.values())

    def parameters(self, args: Sequence[Any]) -> bytes:
        """The bytes of all parameters."""
        words = bytearray()
        for number, (offset, size) in enumerate(self.entry.layout):
            words.extend(bytes(offset - len(words)))
            if number >= len(self.arguments):
                words += bytes(size)
                continue
            argument = self.arguments[number]
            value = args[argument.index]
            if argument.kind[0] == "*":
                words += value.data_ptr().to_bytes(8, "little")
            elif argument.kind in _FORMATS:
                words += struct.pack(_FORMATS[argument.kind], float(value))
            else:
                count = _INTEGERS[argument.kind]
                words += (int(value) & ((1 << 8 * count) - 1)).to_bytes(size, "little")
        return bytes(words)

    def key(self, grid: tuple[int, int, int], args: Sequence[Any], device: str, version: str) -> str:
        """The key of this launch's answer: equal for launches of the kernel of about the same size.

        Grid, sizes and scalars count by their number of bits.
        """
        parts: list[Any] = [version, device, self.hash, [about(own) for own in grid]]
        starts: dict[int, int] = {}
        for number, own in self.pointers(args).items():
            parts.append((number, about(own.end - own.start), starts.setdefault(own.start, number), own.address % 16))
        for argument in self.arguments:
            if argument.kind in _INTEGERS:
                parts.append((argument.index, about(int(args[argument.index]))))
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:32]

    def snapshot(self, grid: tuple[int, int, int], args: Sequence[Any], device: str, capability: int) -> Launch:
        """A copy of the launch and of all memory that its arguments point to. Waits for the device.

        Call it before the launch, so that memory that the kernel updates in place is copied unchanged.
        """
        import torch

        memory: dict[int, Memory] = {}
        for argument in self.arguments:
            if argument.kind[0] != "*":
                continue
            storage = args[argument.index].untyped_storage()
            if storage.nbytes() and storage.data_ptr() not in memory:
                whole = torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)
                memory[storage.data_ptr()] = Memory(storage.data_ptr(), memoryview(whole.cpu().numpy()))
        parameters = bytearray(self.parameters(args))
        # Triton's scratch pointers, which are not followed here, get allocations of their own.
        for number in range(len(self.arguments), len(self.entry.sizes)):
            offset, size = self.entry.layout[number]
            address = 0x10_0000_0000 + (number << 24)
            parameters[offset : offset + size] = address.to_bytes(size, "little")
            memory[address] = Memory(address, bytes(128))
        return Launch(
            kernel=self.entry.name,
            ptx=self.ptx,
            groups=grid,
            group=self.group,
            parameters=bytes(parameters),
            layout=self.entry.layout,
            memory=[memory[address] for address in sorted(memory)],
            shared_bytes=self.shared_bytes,
            device=device,
            capability=capability,
        )


def about(number: int) -> int:
    """A number for keys: itself if it is small, otherwise its number of bits."""
    return number if -16 <= number <= 16 else 1000 + number.bit_length() if number > 0 else -1000 - number.bit_length()
