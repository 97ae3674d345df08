"""Outside tools that tests need."""

from __future__ import annotations

import os

import pytest


def needs(what: str, there: bool, name: str) -> pytest.MarkDecorator:
    """Skips a test without an outside tool; fails where HEADSTART_NEED asks for it."""
    is_asked_for = what in os.environ.get("HEADSTART_NEED", "").split()
    assert there or not is_asked_for, f"{name} is not there; HEADSTART_NEED asks for {what}"
    return pytest.mark.skipif(not there, reason=f"needs {name}")


def numba() -> bool:
    try:
        from numba import cuda, types

        cuda.compile_ptx(lambda out: None, types.void(types.float32[::1]), cc=(9, 0))
    except Exception:
        return False
    return True


needs_numba = needs("python-cuda", numba(), "Numba with its CUDA target and NVVM")

#: `libcuda.so.1` over the simulator.
DRIVER = os.environ.get("HEADSTART_TEST_DRIVER", "")
needs_driver = needs("python-cuda", os.path.isfile(DRIVER), "the test driver, which HEADSTART_TEST_DRIVER names,")
