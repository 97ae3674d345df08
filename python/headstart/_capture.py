"""Launches as the folders that `headstart tune`, `advise` and `run` read: a manifest, the module, memory.

`docs/programs.md` describes the format. A launch written here has run if the contents of all its memory after it
are known.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

_MAGIC = b"HSMEM001"
_BLOCK = 4 << 20
_PLAIN = 1 << 31


@dataclass(frozen=True)
class Memory:
    """An allocation that a launch can access: its address, its contents before the launch, and after it if they are known."""

    address: int
    contents: bytes | bytearray | memoryview
    after: bytes | bytearray | memoryview | None = None


@dataclass(frozen=True)
class Launch:
    """A launch of an entry of a PTX module."""

    kernel: str
    """The entry's name in its module."""
    ptx: str
    groups: tuple[int, int, int]
    group: tuple[int, int, int]
    """Work-items of a work-group."""
    parameters: bytes
    """All parameters, one after the other, each at its offset."""
    layout: Sequence[tuple[int, int]]
    """Offset and size of each, in bytes."""
    memory: Sequence[Memory] = field(default_factory=tuple)
    shared_bytes: int = 0
    """Dynamic shared memory of a work-group."""
    device: str = "none"
    capability: int = 90
    """Compute capability: 90 for 9.0."""
    driver: int = 0
    cooperative: bool = False

    def write(self, folder: Path) -> Path:
        """Writes the launch to `folder`, its memory to `buffers` beside it, and returns `folder`."""
        folder.mkdir(parents=True, exist_ok=True)
        buffers = folder.parent / "buffers"
        buffers.mkdir(exist_ok=True)
        lines = [
            "# A launch, written by the Python package of Headstart.",
            "format = 1",
            f"kernel = {_text(self.kernel)}",
            f"image = {_text(hashlib.blake2b(self.ptx.encode(), digest_size=16).hexdigest())}",
            "launch = 0",
            "process = 0",
            f"device = {_text(self.device)}",
            f"capability = {self.capability}",
            f"driver = {self.driver}",
            f"groups = {list(self.groups)}",
            f"group = {list(self.group)}",
            f"shared_bytes = {self.shared_bytes}",
            f"cooperative = {str(self.cooperative).lower()}",
            "",
            "[parameters]",
            f"bytes = {_text(self.parameters.hex())}",
            f"layout = {[list(place) for place in self.layout]}",
        ]
        for own in self.memory:
            name = _store(buffers, own.contents)
            lines += [
                "",
                "[[memory]]",
                f"address = {own.address}",
                f"bytes = {len(memoryview(own.contents).cast('B'))}",
                'kind = "device"',
                f"before = {_text(name)}",
            ]
            if own.after is not None:
                lines.append(f"after = {_text(_store(buffers, own.after))}")
        (folder / "module.ptx").write_text(self.ptx)
        (folder / "launch.toml").write_text("\n".join(lines) + "\n")
        return folder


def _text(text: str) -> str:
    # A JSON string in ASCII is also a TOML string.
    return json.dumps(text)


def _store(folder: Path, contents: bytes | bytearray | memoryview) -> str:
    """Writes memory to files named by their contents; an all-zero block takes four bytes."""
    view = memoryview(contents).cast("B")
    name = hashlib.blake2b(view, digest_size=16).hexdigest()
    path = folder / name
    if path.exists():
        return name
    zeros = bytes(_BLOCK)
    with path.open("wb") as file:
        file.write(_MAGIC + struct.pack("<Q", len(view)))
        for start in range(0, len(view), _BLOCK):
            block = view[start : start + _BLOCK]
            if block == zeros[: len(block)]:
                file.write(struct.pack("<I", 0))
            else:
                file.write(struct.pack("<I", _PLAIN | len(block)))
                file.write(block)
    return name


def kernel_of(folder: Path) -> str:
    """The entry's name of a launch that was written to `folder`."""
    lines = (folder / "launch.toml").read_text().splitlines()
    return next((str(json.loads(line[9:])) for line in lines if line.startswith("kernel = ")), folder.name)


def tuned_facts(folder: Path) -> dict[str, str | list[str]]:
    """The contents of `headstart tune`'s `tuned.toml`: kernel, plan, and the facts that are checked at each launch.

    The file has strings and lists of strings, a form in which TOML and JSON agree except for the last comma.
    """
    found: dict[str, str | list[str]] = {}
    text = (folder / "tuned.toml").read_text()
    lines = iter(text.splitlines())
    for line in lines:
        name, equals, value = line.partition(" = ")
        if not equals or line.startswith("#"):
            continue
        if value == "[":
            items: list[str] = []
            for item in lines:
                if item.strip() == "]":
                    break
                items.append(json.loads(item.strip().removesuffix(",")))
            found[name] = items
        elif value.startswith('"'):
            found[name] = json.loads(value)
        else:
            found[name] = value
    return found
