"""CuPy's kernels, looked at as they are launched: its own compiler makes their text, and launches are written down."""

from __future__ import annotations

import importlib.util
import types
from typing import Any

import numpy as np
import pytest
from needed import needs

import headstart
from headstart import _answers, _cupy
from headstart._answers import Unsuitable
from headstart.cache import Answer

pytestmark = needs("python-cuda", importlib.util.find_spec("cupy") is not None, "CuPy")

SOURCE = """
extern "C" __global__ void gather(const int* indices, const float* values, float* out, int n, float scale) {
    int item = blockIdx.x * blockDim.x + threadIdx.x;
    if (item < n) out[item] = scale * values[indices[item]] + 1.0f;
}
template <typename T> __global__ void twice(T* out) { out[threadIdx.x] *= 2; }
"""


class Kernel:
    """What a `RawKernel` has. Its launches are written down."""

    code: str | None = SOURCE
    name, options, backend, file_path = "gather", ("-DX=1",), "nvrtc", None
    enable_cooperative_groups = False
    max_dynamic_shared_size_bytes, preferred_shared_memory_carveout = 49152, -1

    def __init__(self, launched: list[Any], what: str = "original") -> None:
        self.launched, self.what = launched, what

    def __call__(self, grid: Any, block: Any, args: Any, *, shared_mem: int = 0) -> None:
        self.launched.append((self.what, grid, block, shared_mem))


class Array:
    """An array of CuPy's in a chunk of its pool."""

    def __init__(self, chunk: int, size: int, offset: int = 0) -> None:
        memory = types.SimpleNamespace(ptr=chunk, size=size)
        self.data = types.SimpleNamespace(ptr=chunk + offset, mem=memory)


class Event:
    def record(self) -> None:
        pass

    def query(self) -> bool:
        return True

    def elapsed_time(self, end: Event) -> float:
        return 1.0


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A GPU of which only the name is there."""
    import cupy

    class Gpu:
        name, number, capability, capturing = "A GPU 9000", 0, 90, False
        loads: list[str] = []  # noqa: RUF012 - all are of one test

        def __init__(self, kernel: Any, number: int) -> None:
            self.kernel = kernel

        def assembler(self) -> dict[str, str]:
            return {}

        def loaded(self, ptx: str) -> Kernel:
            self.loads.append(ptx)
            return Kernel(self.kernel.launched, "better")

        def is_capturing(self) -> bool:
            return self.capturing

        def trial(self) -> None:
            return None

        def read(self, start: int, size: int) -> memoryview:
            return memoryview(np.zeros(size, np.uint8))

    Gpu.loads.clear()
    monkeypatch.setattr(_cupy, "_Gpu", Gpu)
    monkeypatch.setattr(cupy.cuda.runtime, "getDevice", lambda: 0)
    yield Gpu
    headstart.uninstall()


def answers(monkeypatch: pytest.MonkeyPatch, *facts: str) -> list[Any]:
    seen: list[Any] = []

    def search(launch: Any, device: str, *_: Any) -> Answer:
        seen.append(launch)
        return Answer(launch.kernel, device, "unroll:2", 1.5, "better text", facts, "because", "")

    monkeypatch.setattr(_answers, "search", search)
    return seen


def arguments(at: int = 0x20_0000, n: int = 100) -> tuple[Any, ...]:
    return Array(0x10_0000, 512), Array(at, 1024), Array(0x30_0000, 512), np.int32(n), np.float32(0.5)


def test_launches_are_described_as_cupy_makes_them(gpu: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = answers(monkeypatch, "group 64 1 1", "apart 1 0 2 0", "ends 1 0 256 4")
    launched: list[Any] = []
    kernel = headstart.tuned(Kernel(launched))
    kernel((2,), (64,), arguments())
    assert launched == [("better", (2,), (64,), 0)]
    (own,) = seen
    assert own.kernel == "gather" and own.groups == (2, 1, 1) and own.group == (64, 1, 1)
    assert [(memory.address, len(memory.contents)) for memory in own.memory] == [
        (0x10_0000, 512),
        (0x20_0000, 1024),
        (0x30_0000, 512),
    ]
    assert own.parameters[8:16] == (0x20_0000).to_bytes(8, "little")
    assert own.parameters[24:] == (100).to_bytes(4, "little") + np.float32(0.5).tobytes()
    # CuPy's options: NVRTC fuses, and flushes subnormal numbers, as CuPy has it do.
    assert "fma.rn.ftz.f32" in own.ptx and gpu.loads == ["better text"]
    # Another float and other memory of these sizes are no other question.
    more = (*arguments(at=0x50_0000)[:4], 7.5)
    kernel((2,), (64,), more)
    assert launched[-1][0] == "better" and len(seen) == 1 and len(gpu.loads) == 1
    # Memory that begins inside, or is one with another; another work-group; a recording; a trial.
    inside = list(arguments())
    inside[1] = Array(0x20_0000, 1024, 256)
    shared = list(arguments())
    shared[2] = shared[1]
    for args, block in ((inside, 64), (shared, 64), (arguments(), 32)):
        kernel((2,), (block,), tuple(args))
        assert launched[-1][0] == "original"
    gpu.capturing = True
    kernel((3,), (64,), arguments())
    assert launched[-1][0] == "original"
    gpu.capturing = False
    with headstart.left_alone():
        kernel((2,), (64,), arguments())
    assert launched[-1][0] == "original"
    kernel((2,), (64,), arguments(), shared_mem=16)
    assert launched[-1] == ("better", (2,), (64,), 16)
    kernel((2,), (64,), (*arguments()[:4], object()))
    assert launched[-1][0] == "original"
    headstart.uninstall()
    kernel((2,), (64,), arguments())
    assert launched[-1][0] == "original"


def test_wrong_launches_are_cupy_s_to_refuse(gpu: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    answers(monkeypatch, "group 64 1 1")
    launched: list[Any] = []
    kernel = headstart.tuned(Kernel(launched))
    for grid, block in ((None, (64,)), ("two", (64,)), ((2,), None)):
        kernel(grid, block, arguments())
    # Arrays of the host, and too few arguments.
    kernel((2,), (64,), (np.zeros(128, np.int32), *arguments()[1:]))
    kernel((2,), (64,), arguments()[:3])
    assert [what for what, *_ in launched] == ["original"] * 5
    assert launched[0][1:3] == (None, (64,)) and launched[2][1:3] == ((2,), None)


def test_a_tuned_kernel_is_asked_as_the_kernel_is() -> None:
    own = Kernel([])
    kernel = headstart.tuned(own)
    assert kernel.code == SOURCE and kernel.name == "gather"
    kernel.max_dynamic_shared_size_bytes = 1 << 16
    assert own.max_dynamic_shared_size_bytes == 1 << 16
    assert headstart.tuned(kernel) is kernel
    assert headstart.tuned(own, mode="off") is own
    with pytest.raises(AttributeError, match="no_such"):
        _ = kernel.no_such


def test_modules_give_tuned_kernels(gpu: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import cupy

    seen = answers(monkeypatch)
    launched: list[Any] = []

    class Module:
        code, name_expressions = SOURCE, ("twice<int>", "twice<float>")

        def get_function(self, name: str) -> Kernel:
            assert name == "twice<float>"
            return Kernel(launched)

    module = headstart.tuned(Module())
    module.get_function("twice<float>")((1,), (32,), (Array(0x10_0000, 512),))
    assert launched == [("better", (1,), (32,), 0)] and seen[0].kernel.startswith("_Z5twiceIf")
    # CuPy's own types are known as well.
    real = headstart.tuned(cupy.RawModule(code=SOURCE))
    assert isinstance(real, _cupy.TunedModule) and real.code == SOURCE
    assert isinstance(headstart.tuned(cupy.RawKernel(SOURCE, "gather")), _cupy.TunedKernel)


def test_what_does_not_come_from_source_is_left(tmp_path: Any) -> None:
    own = Kernel([])
    own.enable_cooperative_groups = True
    with pytest.raises(Unsuitable, match="wait for each other"):
        _cupy.text_of(own, "gather", (), 90)
    own.enable_cooperative_groups, own.options = False, ("-rdc=true",)
    with pytest.raises(Unsuitable, match="linked"):
        _cupy.text_of(own, "gather", (), 90)
    own.options, own.backend = (), "nvcc"
    with pytest.raises(Unsuitable, match="compiled by nvcc"):
        _cupy.text_of(own, "gather", (), 90)
    own.backend, own.code = "nvrtc", SOURCE.replace("float* out", "flat* out")
    with pytest.raises(headstart.KernelError, match="flat"):
        _cupy.text_of(own, "gather", (), 90)
    code, text = tmp_path / "own.cubin", tmp_path / "own.ptx"
    code.write_bytes(b"\x7fELF\xff")
    text.write_text(".visible .entry gather() { ret; }")
    own.code, own.file_path = None, str(code)  # type: ignore[assignment]
    with pytest.raises(Unsuitable, match="is machine code"):
        _cupy.text_of(own, "gather", (), 90)
    own.file_path = str(text)  # type: ignore[assignment]
    assert _cupy.text_of(own, "gather", (), 90) == (text.read_text(), "gather")
