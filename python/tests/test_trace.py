"""Traces of tritonparse's: their events and tensors as it writes them, imported and tuned."""

from __future__ import annotations

import gzip
import io
import json
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

triton = pytest.importorskip("triton")

import kernels  # noqa: E402

import headstart  # noqa: E402
from headstart import _command, _trace, _triton  # noqa: E402

N, COUNT, VALUES = 512, 8, 1 << 12


@pytest.fixture(scope="module")
def compilation() -> dict[str, Any]:
    """The event of a gather's compilation."""
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    types = {"indices": "*i32", "values": "*fp32", "out": "*fp32", "n": "i32", "count": "i32", "BLOCK": "constexpr"}
    inner = _triton.unwrapped(kernels.gather_reduce)
    made = triton.compile(ASTSource(fn=inner, signature=types, constexprs={"BLOCK": 128}), target=GPUTarget("cuda", 90, 32))
    metadata = {"hash": "abc", "name": made.metadata.name, "num_warps": 4, "shared": int(made.metadata.shared)}
    payload = {
        "metadata": {**metadata, "src_constants": {"(5,)": 128}},
        "file_content": {"gather_reduce.ttir": "…", "gather_reduce.ptx": made.asm["ptx"]},
    }
    return {"event_type": "compilation", "pid": 1, "payload": payload}


def saved(folder: Path, name: str, array: np.ndarray, compressed: bool) -> Path:
    """A tensor as `torch.save` and tritonparse leave it."""
    blob = io.BytesIO()
    with zipfile.ZipFile(blob, "w") as file:
        file.writestr("archive/data.pkl", b"pickled")
        file.writestr("archive/data/0", array.tobytes())
    path = folder / "saved_tensors" / name[:2] / (name + (".bin.gz" if compressed else ".bin"))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(blob.getvalue()) if compressed else blob.getvalue())
    return path


def tensor(array: np.ndarray, address: int, blob: Path | None) -> dict[str, Any]:
    own = {
        "type": "tensor",
        "shape": list(array.shape),
        "stride": [own // array.itemsize for own in array.strides],
        "numel": array.size,
        "element_size": array.itemsize,
        "data_ptr": hex(address),
    }
    return own if blob is None else {**own, "blob_path": str(blob)}


@pytest.fixture
def launch(tmp_path: Path) -> dict[str, Any]:
    random = np.random.default_rng(5)
    arrays = {
        "indices": random.integers(0, VALUES, N * COUNT, dtype=np.int32),
        "values": random.random(VALUES, dtype=np.float32),
        "out": np.zeros(N, np.float32),
    }
    arguments: dict[str, Any] = {
        name: tensor(array, 0x7F0000000000 + (number << 24), saved(tmp_path, name, array, number == 1))
        for number, (name, array) in enumerate(arrays.items())
    }
    arguments |= {name: {"type": "int", "value": value} for name, value in (("n", N), ("count", COUNT), ("BLOCK", 128))}
    return {
        "event_type": "launch",
        "name": "gather_reduce",
        "grid": [N // 128],
        "compilation_metadata": {"hash": "abc", "name": "gather_reduce"},
        "extracted_args": arguments,
    }


def written(folder: Path, *events: dict[str, Any], zipped: bool = False) -> Path:
    lines = [(json.dumps(event) + "\n").encode() for event in events]
    path = folder / "trace" / ("log.bin.ndjson" if zipped else "log.ndjson")
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"".join(gzip.compress(line) if zipped else line for line in lines))
    return path


def test_a_trace_is_imported_and_tuned(tmp_path: Path, compilation, launch) -> None:
    # The first launch was recorded into a graph: its arguments were not written.
    graph = {**launch, "extracted_args": {"_note": "argument extraction skipped"}}
    trace = written(tmp_path, compilation, graph, launch, zipped=True)
    out = tmp_path / "launches"
    words = ["capture", "--import", str(trace.parent), "-o", str(out)]
    this = {"HEADSTART_PYTHON": sys.executable}
    assert f"Next: headstart tune {out / 'gather_reduce'}" in _command.run(words, environment=this)
    # A folder with something in it is left alone.
    with pytest.raises(headstart.UsageError, match="is not empty"):
        _command.run(words, environment=this)
    with pytest.raises(headstart.UsageError, match="scripts/wheel"):
        _command.run(words, environment={"HEADSTART_PYTHON": "/nowhere/python3"})
    with pytest.raises(headstart.KernelError, match="no launch of such a kernel"):
        _command.run([*words[:-1], str(tmp_path / "none"), "--kernel", "nothing"], environment=this)
    folder = out / "gather_reduce"
    report = tmp_path / "report.json"
    words = ["tune", str(folder), "--device", "sim:h200", "--plans", "unroll:2", "--json", str(report)]
    _command.run(words)
    found = json.loads(report.read_text())
    assert found["kernel"] == "gather_reduce"
    assert [own["status"] for own in found["trials"]] == ["ok", "ok"]
    text = (folder / "launch.toml").read_text()
    assert "groups = [4, 1, 1]" in text and "group = [128, 1, 1]" in text
    assert f"bytes = {4 * N * COUNT}" in text


def test_what_was_not_saved_is_named(tmp_path: Path, compilation, launch) -> None:
    def refused(message: str, *events: dict[str, Any], **more: Any) -> None:
        trace = written(tmp_path, *events)
        with pytest.raises(headstart.KernelError, match=message):
            headstart.import_trace(trace, tmp_path / "out", **more)

    def changed(name: str, **values: Any) -> dict[str, Any]:
        arguments = dict(launch["extracted_args"])
        arguments[name] = {**arguments[name], **values}
        return {**launch, "extracted_args": arguments}

    refused("TRITON_TRACE_LAUNCH=1", compilation)
    refused("TRITON_TRACE_LAUNCH=1", compilation, launch, kernel="scatter")
    refused("lacks its compilation", launch)
    refused("there are 1 launches", compilation, launch, launch=1)
    refused("`values` were not saved .*SAVE_TENSOR_BLOBS=1", compilation, changed("values", blob_path=None))
    refused("over the quota", compilation, changed("values", blob_path=None, error="over the quota"))
    refused("`out` is a view with gaps", compilation, changed("out", stride=[2]))
    refused(f"has {8 * N} bytes, and {4 * N} were saved", compilation, changed("out", shape=[2 * N], numel=2 * N))
    refused("`n` is of type TensorDescriptor", compilation, changed("n", type="TensorDescriptor"))
    refused("cannot be read", compilation, changed("out", blob_path=str(tmp_path / "nowhere.bin")))
    several = {**launch, "extracted_args": {**launch["extracted_args"], **{f"more{number}": {} for number in range(9)}}}
    refused("launch 14 matching arguments", compilation, several)
    with pytest.raises(headstart.UsageError, match="is not a trace"):
        headstart.import_trace(tmp_path / "missing.ndjson", tmp_path / "out")
    path = tmp_path / "bad.ndjson"
    for text, message in (
        (b"{]\n", "cannot be read"),
        (b"7\n", "line 1 is not a tritonparse event"),
        (b"\x28\xb5\x2f\xfd", "zstd"),
    ):
        path.write_bytes(text)
        with pytest.raises(headstart.KernelError, match=message):
            headstart.import_trace(path, tmp_path / "out")


def test_a_trace_that_was_copied_finds_its_tensors(tmp_path: Path, compilation, launch) -> None:
    arguments = launch["extracted_args"]
    for name in ("indices", "values", "out"):
        arguments[name]["blob_path"] = "/elsewhere/" + Path(arguments[name]["blob_path"]).name
    trace = written(tmp_path, compilation, launch)
    trace.rename(tmp_path / "log.ndjson")
    (folder,) = headstart.import_trace(tmp_path / "log.ndjson", tmp_path / "out")
    assert folder.name == "gather_reduce"


def test_memory_that_overlaps_is_one() -> None:
    assert _trace._merged([(8, b"efgh"), (0, b"abcd"), (4, b"1234ef"), (5, b"23")]) == [(0, b"abcd"), (4, b"1234efgh")]
