"""`examples/python/every`: kernels compared with their original, over the test driver, and the table of what was found."""

from __future__ import annotations

import importlib.util
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from needed import DRIVER, needs_driver

from headstart._capture import Launch, Memory

EVERY = Path(__file__).resolve().parents[2] / "examples" / "python" / "every"

#: `out[i] = in[i] + ADDED` for 32 items.
ADDS = """.version 8.0
.target sm_80
.address_size 64
.visible .entry adds(.param .u64 in, .param .u64 out)
{
.reg .b32 %r<3>; .reg .b64 %rd<6>;
ld.param.u64 %rd1, [in]; ld.param.u64 %rd2, [out]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd3, %r1, 4;
add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3; ld.global.u32 %r2, [%rd4]; add.s32 %r2, %r2, ADDED;
st.global.u32 [%rd5], %r2; ret;
}
"""


@needs_driver
def test_kernels_are_compared_on_the_memory_of_their_launch(tmp_path: Path) -> None:
    numbers = b"".join(number.to_bytes(4, "little") for number in range(64))
    # The output is the second half of the input's allocation, in another place than where it was copied.
    memory = [Memory(0x10_0000, numbers)]
    parameters = (0x10_0000).to_bytes(8, "little") + (0x10_0080).to_bytes(8, "little")
    text = ADDS.replace("ADDED", "1")
    Launch("adds", text, (1, 1, 1), (32, 1, 1), parameters, ((0, 8), (8, 8)), memory).write(tmp_path / "launch")
    codes = {}
    for name, added in (("original", 1), ("again", 1), ("tuned", 2)):
        codes[name] = str(tmp_path / f"{name}.ptx")
        Path(codes[name]).write_text(ADDS.replace("ADDED", str(added)))
    broken = tmp_path / "broken.ptx"
    broken.write_text("nonsense")
    (tmp_path / "libcuda.so.1").symlink_to(Path(DRIVER).resolve())
    job = {"digest": "ab", "folder": str(tmp_path), "pointers": [0, 1], "codes": codes}
    begun: list[Any] = []
    environment = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path)}
    comparer = part("compare").Comparer(environment, subprocess.DEVNULL, begun.append)
    found = comparer.compared(job)
    assert comparer.device and len(begun) == 1
    assert found["repeats"] and found["changed"] and found["original"]["verified"] > 0
    assert found["again"]["differ"] == 0 and found["again"]["chosen_by"] > 0
    # One more in each of 32 numbers below 64: a byte of each.
    assert found["tuned"]["differ"] == 32
    assert [(own["memory"], own["bytes"], own["first"]) for own in found["tuned"]["places"]] == [(0, 32, 128)]
    # A module that fails ends its process, and is named; the others have their answers from other processes.
    found = comparer.compared({**job, "codes": {**codes, "broken": str(broken)}})
    assert "cuModuleLoadData" in found["broken"]["error"]
    assert found["again"]["differ"] == 0 and found["tuned"]["differ"] == 32
    assert len(begun) == 2
    assert "FileNotFoundError" in comparer.compared({**job, "folder": "/nowhere"})["error"]
    comparer.end()


def test_an_address_at_the_end_of_one_piece_of_memory_is_the_start_of_the_next() -> None:
    moved = part("measure").moved
    places = [(0x1000, 0x200, 0x90_0000), (0x1200, 0x100, 0x50_0000)]
    assert moved(0x1200, places) == 0x50_0000
    assert moved(0x1200, places[::-1]) == 0x50_0000
    assert moved(0x11FF, places) == 0x90_01FF
    # Where nothing follows, the end belongs to what it ends: a pointer one past the last element.
    assert moved(0x1300, places) == 0x50_0100
    assert moved(0x1301, places) is None


def part(name: str) -> Any:
    """A module of `examples/python/every`."""
    spec = importlib.util.spec_from_file_location(f"every_{name}", EVERY / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def every() -> Any:
    return part("__main__")


def row(again: float, tuned: float | None, verified: float, *, differ: int = 0, plan_differs: int = 0) -> dict[str, Any]:
    """A row with times, as multiples of the original's, and bytes that are not the same."""
    measured: dict[str, Any] = {
        "repeats": True,
        "original": {"chosen_by": 10.0, "verified": 10.0},
        "again": {"differ": differ, "chosen_by": 10 * again, "verified": 10 * again},
    }
    if tuned is not None:
        measured["tuned"] = {"differ": plan_differs, "chosen_by": 10 * tuned, "verified": 10 * verified}
    return {"kernel": "k", "digest": "ab", "read": True, "grid": [1, 1, 1], "group": [32, 1, 1], "measured": measured}


def test_a_plan_is_judged_by_a_comparison_that_did_not_choose_it(every: Any) -> None:
    assert every.gain(row(1.0, 0.5, 0.8)) == pytest.approx(1.25)
    assert every.gain(row(1.0, 0.97, 1.1)) == pytest.approx(1 / 1.1), "what was chosen shows what it is"
    assert every.gain(row(1.0, 0.99, 0.5)) == 1.0, "a gain within the noise is none"
    assert every.gain(row(1.0, 0.5, 0.5, plan_differs=3)) == 1.0, "other bits are never chosen"
    assert every.gain(row(1.0, None, 1.0)) == 1.0
    assert every.gain({"kernel": "k"}) is None
    assert [every.bits(own) for own in (row(1, None, 1), row(1, None, 1, differ=4), {"kernel": "k"})] == ["same", "OTHER", "-"]
    said = every.line(row(1.0, 0.5, 0.5, plan_differs=3))
    assert "THE PLAN'S BITS DIFFER" in said and "same" in said
    counts = "\n".join(every.summary([row(1.0, 0.5, 0.8), row(1.02, None, 1.0, differ=1), {**row(1, None, 1), "read": False}]))
    assert "2 read, 1 refused" in counts and "1 OTHER, 1 same" in counts and "1 gain 5 % or more" in counts
