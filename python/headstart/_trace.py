"""tritonparse traces as launches for `headstart tune` and `advise`.

A trace is lines of JSON: an event for each compilation, with the PTX, and one for each launch, with its grid and arguments. The
contents of tensors are beside it, if they were requested, in PyTorch's format. Neither `tritonparse` nor PyTorch nor a GPU is
needed. Traces of tritonparse 0.6 are read.
"""

from __future__ import annotations

import gzip
import json
import re
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

from headstart import _arguments, _ptx
from headstart._capture import Launch, Memory
from headstart.errors import KernelError, UsageError

_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
#: Triton's pointers behind an entry's arguments: to global scratch memory, and a profiler's.
_MOST_SCRATCH = 2


@dataclass(frozen=True)
class _Compiled:
    """The contents of a compilation event."""

    ptx: str
    shared_bytes: int
    num_warps: int
    constants: frozenset[int]
    """Arguments that are no parameters, by their number."""


def import_trace(trace: str | Path, folder: str | Path, *, kernel: str | None = None, launch: int | None = None) -> list[Path]:
    """Writes the launches of a tritonparse trace as folders for `headstart tune` and `advise`.

    Args:
        trace: a file of the trace, or a folder of them.
        folder: the parent of the launches' folders, which are named after their kernels; a new or empty folder.
        kernel: a regular expression for kernels' names.
        launch: which launch of each kernel, counted from 0; by default the first with saved tensors.

    Returns:
        The folders.

    Raises:
        UsageError: there is no such trace, or the folder is not empty.
        KernelError: the trace cannot be read, or has no launch that can be imported, with the reason.
    """
    trace, folder = Path(trace), Path(folder)
    if folder.exists() and any(folder.iterdir()):
        raise UsageError(f"{str(folder)!r} is not empty; expected a new or empty folder")
    pattern = re.compile(kernel or "")
    compiled: dict[str, _Compiled] = {}
    launches: dict[str, list[dict[str, Any]]] = {}
    for event in _events(trace):
        if event.get("event_type") == "compilation":
            found = _compiled(event.get("payload"))
            if found is not None:
                compiled[found[0]] = found[1]
        elif event.get("event_type") == "launch" and pattern.search(str(event.get("name", ""))):
            hash_of = str(event.get("compilation_metadata", {}).get("hash", ""))
            launches.setdefault(hash_of, []).append(event)
    if not launches:
        raise KernelError("the trace has no launch of such a kernel; set TRITON_TRACE_LAUNCH=1 to record launches")
    made: list[Path] = []
    refused: list[str] = []
    for hash_of, events in launches.items():
        name = str(events[0].get("name", "kernel"))
        chosen = events if launch is None else events[launch : launch + 1]
        why = f"{name}: there are {len(events)} launches of it"
        for event in chosen:
            try:
                if hash_of not in compiled:
                    raise KernelError("the trace lacks its compilation, or the PTX")
                described = _launch(event, compiled[hash_of], trace if trace.is_dir() else trace.parent)
            except KernelError as error:
                why = f"{name}: {error}"
                continue
            made.append(described.write(_free(folder, name)))
            break
        else:
            refused.append(why)
    if not made:
        raise KernelError("no launch of the trace can be imported: " + "; ".join(refused))
    return made


def _free(folder: Path, name: str) -> Path:
    """A new folder: with this name, or with a number appended."""
    name = re.sub(r"[^A-Za-z0-9_-]", "_", name)[:80] or "kernel"
    numbered = (folder / (name if number == 1 else f"{name}-{number}") for number in range(1, 1 << 16))
    return next(own for own in numbered if not own.exists() and own.name != "buffers")


def _events(trace: Path) -> Iterator[dict[str, Any]]:
    """All events of a trace, in order.

    Raises:
        UsageError: there is not a trace.
        KernelError: it cannot be read.
    """
    files = sorted(own for own in trace.rglob("*.ndjson*") if own.is_file()) if trace.is_dir() else [trace]
    if not files or not all(own.is_file() for own in files):
        raise UsageError(f"{str(trace)!r} is not a trace; expected a `.ndjson` file, or a folder of such files")
    for path in files:
        text = path.read_bytes()
        if text[:4] == _ZSTD:
            raise KernelError(f"{path.name} is compressed by zstd; set TRITON_TRACE_COMPRESSION to gzip or none")
        try:
            # Each event is a separate gzip member.
            plain = gzip.decompress(text) if text[:2] == _GZIP else text
            for number, line in enumerate(plain.decode().splitlines(), 1):
                if not line.strip():
                    continue
                event = json.loads(line)
                if not isinstance(event, dict):
                    raise KernelError(f"{path.name}: line {number} is not a tritonparse event")
                yield event
        except (OSError, EOFError, ValueError) as error:
            raise KernelError(f"{path.name} cannot be read: {error}") from error


def _compiled(payload: Any) -> tuple[str, _Compiled] | None:
    """A compilation's hash and contents; `None` if it has no PTX."""
    if isinstance(payload, str):
        payload = json.loads(payload)
    if not isinstance(payload, Mapping):
        return None
    metadata, files = payload.get("metadata", {}), payload.get("file_content", {})
    text = next((text for name, text in files.items() if name.endswith(".ptx")), None)
    if text is None or ".entry" not in text or "hash" not in metadata:
        return None
    # Constants are named by paths, `(5,)` for the sixth argument.
    paths = [re.findall(r"\d+", str(path)) for path in metadata.get("src_constants", {})]
    constants = frozenset(int(path[0]) for path in paths if len(path) == 1)
    own = _Compiled(text, int(metadata.get("shared", 0)), int(metadata.get("num_warps", 4)), constants)
    return str(metadata["hash"]), own


def _launch(event: dict[str, Any], compiled: _Compiled, beside: Path) -> Launch:
    """A launch of a trace.

    Raises:
        KernelError: a part is missing, or is not supported.
    """
    arguments = event.get("extracted_args", {})
    if "_note" in arguments or not arguments:
        raise KernelError(str(arguments.get("_note", "its arguments were not recorded")))
    grid = [*map(int, event.get("grid", ())), 1, 1][:3]
    entry = _ptx.entry(compiled.ptx, str(event.get("compilation_metadata", {}).get("name") or event["name"]))
    own = [(name, value) for number, (name, value) in enumerate(arguments.items()) if number not in compiled.constants]
    if not 0 <= len(entry.sizes) - len(own) <= _MOST_SCRATCH:
        raise KernelError(f"its entry has {len(entry.sizes)} parameters, and the launch {len(own)} matching arguments")
    words = bytearray()
    regions: list[tuple[int, bytes]] = []
    for number, (offset, size) in enumerate(entry.layout):
        words.extend(bytes(offset - len(words)))
        if number >= len(own):
            # Triton's scratch pointers are not followed here.
            address = 0x10_0000_0000 + (number << 24)
            regions.append((address, bytes(128)))
            words += address.to_bytes(size, "little")
            continue
        name, value = own[number]
        if value.get("type") == "tensor":
            address = int(str(value["data_ptr"]), 16)
            words += address.to_bytes(8, "little")
            if value.get("numel", 0):
                regions.append((address, _contents(name, value, beside)))
        elif value.get("type") in ("int", "float", "bool"):
            words += _arguments.packed(value["value"], size, number)
        elif value.get("type") == "NoneType":
            words += bytes(size)
        else:
            raise KernelError(f"argument `{name}` is of type {value.get('type')}, which is not supported")
    target = re.search(r"\.target\s+sm_(\d+)", compiled.ptx)
    return Launch(
        kernel=entry.name,
        ptx=compiled.ptx,
        groups=(grid[0], grid[1], grid[2]),
        group=entry.group or (32 * compiled.num_warps, 1, 1),
        parameters=bytes(words),
        layout=entry.layout,
        memory=[Memory(address, contents) for address, contents in _merged(regions)],
        shared_bytes=compiled.shared_bytes,
        capability=int(target[1]) if target else 90,
    )


def _contents(name: str, value: dict[str, Any], beside: Path) -> bytes:
    """A tensor's memory, from its first to its last element.

    Raises:
        KernelError: it was not saved, or has gaps.
    """
    if not value.get("blob_path"):
        why = value.get("error") or "it was not asked for: TRITONPARSE_SAVE_TENSOR_BLOBS=1"
        raise KernelError(f"the contents of tensor `{name}` were not saved ({why})")
    # PyTorch saves a copy in the same order without gaps: a tensor without gaps is saved as it was in memory.
    size, end = int(value["element_size"]), 1
    for stride, extent in sorted(
        (int(stride), int(extent)) for stride, extent in zip(value["stride"], value["shape"], strict=True)
    ):
        if extent > 1 and stride != end:
            raise KernelError(f"tensor `{name}` is a view with gaps in memory, which is not supported")
        end *= extent
    path = Path(value["blob_path"])
    if not path.is_file():
        # A copied trace: its blobs are below it as before.
        path = next(iter(beside.rglob(path.name)), path)
    try:
        blob = path.read_bytes()
        with zipfile.ZipFile(BytesIO(gzip.decompress(blob) if blob[:2] == _GZIP else blob)) as saved:
            own = next(own for own in saved.namelist() if own.endswith("/data/0"))
            contents = saved.read(own)
    except (OSError, EOFError, StopIteration, zipfile.BadZipFile) as error:
        raise KernelError(f"the contents of tensor `{name}` cannot be read: {error or 'not saved by PyTorch'}") from error
    if len(contents) != size * end:
        raise KernelError(f"tensor `{name}` has {size * end} bytes, and {len(contents)} were saved")
    return contents


def _merged(regions: list[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
    """The same memory, with overlapping parts merged."""
    merged: list[tuple[int, bytes]] = []
    for address, contents in sorted(regions, key=lambda own: (own[0], -len(own[1]))):
        if merged and address < merged[-1][0] + len(merged[-1][1]):
            start, before = merged[-1]
            merged[-1] = (start, before + contents[len(before) - (address - start) :])
        else:
            merged.append((address, contents))
    return merged
