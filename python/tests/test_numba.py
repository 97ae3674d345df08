"""Numba's kernels, looked at as they are launched: over the test driver, so that all of it runs without a GPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from needed import DRIVER, needs_driver, needs_numba

import headstart
from headstart import __main__ as main
from headstart import _numba_hook
from headstart._answers import Unsuitable
from headstart._raw import Array

PROGRAM = Path(__file__).parent / "gathers_by_numba.py"


def ran(folder: Path, *words: str) -> dict[str, Any]:
    """What the program found, run where the driver is the simulator's."""
    libraries = folder / "driver"
    libraries.mkdir(exist_ok=True)
    link = libraries / "libcuda.so.1"
    if not link.exists():
        link.symlink_to(Path(DRIVER).resolve())
    environment = {**os.environ, "LD_LIBRARY_PATH": str(libraries), "HEADSTART_TEST_MODEL": "h200"}
    words = (sys.executable, str(PROGRAM), *words)
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@needs_numba
@needs_driver
def test_a_kernel_of_numba_s_goes_all_the_way(tmp_path: Path, own_cache: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Collected, tuned on the simulated GPU, launched in its better form by Numba, with the same bits."""
    found = ran(tmp_path, "collect")
    assert found["same"] == [True] * 3 and not any(found["better"] + found["others"]), found
    assert any("`cuda.to_device`" in line for line in found["said"])
    # Of three launches on the device: other work-groups and shared memory are other questions.
    assert len(list((own_cache / "pending").iterdir())) == 3
    words = [str(own_cache), "--device", "sim:h200", "--budget", "60", "--plans", "unroll:2"]
    assert main.tune_cache(words) == 0
    assert "gather: unroll:2, " in capfd.readouterr().out
    found = ran(tmp_path, "cached", "20")
    assert found["same"] == [True] * 21
    # In turns with the original, and after these the better one, which the simulator's clock says is faster.
    assert found["better"] == [False, True] * 9 + [True] * 2
    linked = ran(tmp_path, "cached", "20", "lto")
    assert (linked["same"], linked["better"]) == (found["same"], found["better"]), linked
    plan, speedup, is_own = found["report"]
    assert plan == "unroll:2" and speedup > 1.05 and is_own
    # Those on the host, in a trial, and after `uninstall` are the originals.
    assert [found["others"][number] for number in (1, 3, 4)] == [False] * 3


@needs_numba
def test_arguments_are_flattened_as_numba_does() -> None:
    from numba import types

    class OnDevice:
        def __init__(self, strides: tuple[int, ...] | None) -> None:
            self.__cuda_array_interface__ = {
                "shape": (3, 4),
                "strides": strides,
                "typestr": "<f4",
                "data": (4096, False),
                "version": 3,
            }

    values: list[Any] = []
    kinds = (types.Array(types.float32, 2, "C"), types.int32, types.float64, types.boolean, types.UniTuple(types.int64, 2))
    for kind, value in zip(kinds, (OnDevice(None), -3, 0.5, True, (7, 8)), strict=True):
        _numba_hook._flatten(kind, value, values)
    assert values[:4] == [0, 0, 12, 4] and values[4] == Array(4096, 4096, 4096 + 48)
    assert values[5:9] == [3, 4, 16, 4] and values[9] == -3 and values[11:] == [1, 7, 8]
    values.clear()
    _numba_hook._flatten(kinds[0], OnDevice((-16, 8)), values)
    # From the start of the last row to the last element of the first.
    assert values[4] == Array(4096, 4096 - 32, 4096 + 24 + 4)
    with pytest.raises(Unsuitable, match=r"cuda\.to_device"):
        _numba_hook._flatten(kinds[0], [1.0], values)
    with pytest.raises(Unsuitable, match="argument of type"):
        _numba_hook._flatten(types.CPointer(types.int32), 4096, values)


@needs_numba
def test_the_parameters_of_numba_s_own_arrays_are_kept() -> None:
    import numpy as np

    class Own:
        __cuda_ndarray__ = True
        shape, strides, dtype, device_ctypes_pointer = (4,), (8,), np.dtype("f4"), 4096

    class Foreign:
        def __init__(self) -> None:
            interface = {"shape": (4,), "strides": None, "typestr": "<f4", "data": (4096, False), "version": 3}
            self.__cuda_array_interface__ = interface

    own, other, foreign = Own(), Own(), Foreign()
    kept = _numba_hook._parameters(own)
    assert kept.values == [0, 0, 4, 4, Array(4096, 4096, 4096 + 28), 4, 8]
    assert _numba_hook._parameters(own) is kept and _numba_hook._parameters(other) is not kept
    # Another library's array may move.
    assert _numba_hook._parameters(foreign) is not _numba_hook._parameters(foreign)


@needs_numba
def test_a_kernel_that_is_off_is_numba_s_own() -> None:
    from numba import cuda

    @cuda.jit
    def nothing(out):
        out[0] = 0

    assert headstart.tuned(nothing, mode="off") is nothing
    with pytest.raises(headstart.UsageError, match="unknown mode 'soon'"):
        headstart.tuned(nothing, mode="soon")
    headstart.uninstall()
