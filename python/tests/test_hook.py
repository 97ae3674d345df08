"""What happens at launches, with a kernel that is compiled for real and a driver that only writes down what it launches."""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
import time
import types
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

triton = pytest.importorskip("triton")

import kernels  # noqa: E402

import headstart  # noqa: E402
from headstart import __main__ as main  # noqa: E402
from headstart import _answers, _assembled, _capture, _hook, _inductor, _launches, _search  # noqa: E402
from headstart.cache import Answer, Cache  # noqa: E402

DEVICE = "A GPU 9000"
PTX_OF_A_BAG = ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry bag() { ret; }\n"


class Storage:
    def __init__(self, address: int, data: np.ndarray) -> None:
        self.address, self.data, self.device = address, data, "cuda"

    def data_ptr(self) -> int:
        return self.address

    def nbytes(self) -> int:
        return self.data.nbytes


class Tensor:
    """As much of a tensor as launches look at."""

    def __init__(self, address: int, data: np.ndarray, offset: int = 0) -> None:
        self.storage, self.offset, self.dtype = Storage(address, data), offset, data.dtype

    def data_ptr(self) -> int:
        return self.storage.address + self.offset * self.storage.data.itemsize

    def numel(self) -> int:
        return self.storage.data.size - self.offset

    def storage_offset(self) -> int:
        return self.offset

    def untyped_storage(self) -> Storage:
        return self.storage

    def set_(self, storage: Storage) -> Tensor:
        self.storage = storage
        return self

    def cpu(self) -> Tensor:
        return self

    def numpy(self) -> np.ndarray:
        return self.storage.data


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> Any:
    fake = types.ModuleType("torch")
    fake.capturing = False  # type: ignore[attr-defined]
    fake.uint8 = np.uint8  # type: ignore[attr-defined]
    fake.empty = lambda *_, **__: Tensor(0, np.zeros(0, np.uint8))  # type: ignore[attr-defined]
    fake.cuda = types.SimpleNamespace(  # type: ignore[attr-defined]
        current_device=lambda: 0,
        get_device_name=lambda _: DEVICE,
        is_current_stream_capturing=lambda: fake.capturing,
    )
    monkeypatch.setitem(sys.modules, "torch", fake)
    yield fake
    headstart.uninstall()


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The gather-reduce kernel, compiled; its launcher writes down the functions that it launches."""
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from headstart import _triton

    signature = {
        "indices": "*i32",
        "values": "*fp32",
        "out": "*fp32",
        "n": "i32",
        "count": "i32",
        "BLOCK": "constexpr",
    }
    inner = _triton.unwrapped(kernels.gather_reduce)
    made = triton.compile(ASTSource(fn=inner, signature=signature, constexprs={"BLOCK": 128}), target=GPUTarget("cuda", 90, 32))
    made.launched = []

    def init(self: Any) -> None:
        if self.module is None:
            self._run = lambda x, y, z, stream, function, *rest: self.launched.append(function)
            self.module, self.function = "module", "original"

    monkeypatch.setattr(type(made), "_init_handles", init)
    monkeypatch.setattr(_hook, "loaded", lambda compiled, ptx, device: ("better", "module"))
    return made


def launch(compiled: Any, args: tuple[Any, ...], grid: int = 4) -> str:
    compiled.run(grid, 1, 1, 0, compiled.function, None, None, None, None, *args)
    return compiled.launched[-1]


def forget(compiled: Any) -> None:
    """As a new process has it."""
    compiled.module, compiled._run = None, None


def arguments(values: int = 64, at: int = 0x20_0000) -> tuple[Any, ...]:
    return (
        Tensor(0x10_0000, np.zeros(64, np.int32)),
        Tensor(at, np.zeros(values, np.float32)),
        Tensor(0x30_0000, np.zeros(64, np.float32)),
        64,
        2,
        128,
    )


def answers(monkeypatch: pytest.MonkeyPatch, *facts: str, speedup: float = 1.5) -> list[Any]:
    """Every search finds a plan that rests on these facts; the launches that were searched for."""
    seen: list[Any] = []

    def search(launch: Any, device: str, *_: Any) -> Answer:
        seen.append(launch)
        return Answer(launch.kernel, device, "unroll:2", speedup, "ptx", facts, "because", "")

    monkeypatch.setattr(_answers, "search", search)
    return seen


def test_a_launch_is_tuned_once_and_takes_the_better_kernel(torch, compiled, monkeypatch) -> None:
    seen = answers(monkeypatch, "group 128 1 1")
    headstart.install(mode="now")
    assert [launch(compiled, arguments()) for _ in range(3)] == ["better"] * 3
    assert len(seen) == 1
    own = seen[0]
    assert own.kernel == "gather_reduce" and own.groups == (4, 1, 1) and own.group == (128, 1, 1)
    assert int.from_bytes(own.parameters[8:16], "little") == 0x20_0000
    assert own.parameters[24:32] == bytes([64, 0, 0, 0, 2, 0, 0, 0])
    assert [memoryview(memory.contents).nbytes for memory in own.memory][:3] == [256, 256, 256]
    # Another size is another question; about the same size is not.
    launch(compiled, arguments(values=100))
    assert len(seen) == 1
    launch(compiled, arguments(values=5000))
    assert len(seen) == 2


class Event:
    """An event of a GPU on which kernels take what `times` says, once it is `done`."""

    clock = 0.0
    done = True

    def __init__(self, enable_timing: bool) -> None:
        assert enable_timing
        self.at = 0.0

    def record(self) -> None:
        self.at = Event.clock

    def query(self) -> bool:
        return Event.done

    def elapsed_time(self, end: Event) -> float:
        return end.at - self.at


def in_turns(torch, compiled, monkeypatch, better: float) -> list[str]:
    """The functions of 24 launches, where the better kernel takes so much of the original's time."""
    answers(monkeypatch, "group 128 1 1")
    torch.cuda.Event = Event
    headstart.install(mode="now")

    def timed(x: int, y: int, z: int, stream: Any, function: str, *rest: Any) -> None:
        Event.clock += better if function == "better" else 1.0
        compiled.launched.append(function)

    def init(self: Any) -> None:
        if self.module is None:
            self._run, self.module, self.function = timed, "module", "original"

    # The hook stands around what the first compilation left.
    headstart.uninstall()
    forget(compiled)
    monkeypatch.setattr(type(compiled), "_init_handles", init)
    headstart.install(mode="now")
    return [launch(compiled, arguments()) for _ in range(24)]


def test_the_first_launches_take_turns(torch, compiled, monkeypatch) -> None:
    launched = in_turns(torch, compiled, monkeypatch, 0.5)
    assert launched == ["original", "better"] * 9 + ["better"] * 6


def test_what_is_slower_here_goes_back(torch, compiled, monkeypatch) -> None:
    launched = in_turns(torch, compiled, monkeypatch, 1.2)
    assert launched == ["original", "better"] * 9 + ["original"] * 6


def test_a_trial_waits_for_nothing(torch, compiled, monkeypatch) -> None:
    monkeypatch.setattr(Event, "done", False)
    launched = in_turns(torch, compiled, monkeypatch, 1.2)
    assert launched[18:] == ["better"] * 6
    monkeypatch.setattr(Event, "done", True)
    assert launch(compiled, arguments()) == "original"


def test_an_answer_survives_the_process(torch, compiled, monkeypatch) -> None:
    seen = answers(monkeypatch, "group 128 1 1")
    headstart.install(mode="now")
    launch(compiled, arguments())
    headstart.uninstall()
    forget(compiled)
    headstart.install(mode="cached")
    assert launch(compiled, arguments()) == "better"
    assert len(seen) == 1
    # What the cache does not have is left as it is.
    assert launch(compiled, arguments(values=5000)) == "original"
    assert len(seen) == 1


def test_a_machine_without_a_driver_is_told_so_once(torch, monkeypatch) -> None:
    from headstart import _tuned

    for has, count in [(False, 1), (True, 0)]:
        monkeypatch.setattr(_tuned, "has_driver", lambda has=has: has)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("default")
            for _ in range(3):
                headstart.install(mode="cached")
        assert len(said) == count, [str(own.message) for own in said]


def test_facts_are_looked_at_for_each_launch(torch, compiled, monkeypatch) -> None:
    answers(monkeypatch, "ends 1 0 64 4", "apart 1 0 2 0")
    headstart.install(mode="now")
    assert launch(compiled, arguments()) == "better"
    # The memory is longer, the view begins inside, both are one allocation: with the same address.
    assert launch(compiled, arguments(values=65)) == "original"
    assert launch(compiled, arguments()) == "better"
    inside = list(arguments())
    inside[1] = Tensor(0x20_0000 - 4, np.zeros(65, np.float32), offset=1)
    assert launch(compiled, tuple(inside)) == "original"
    shared = list(arguments())
    shared[2] = shared[1]
    assert launch(compiled, tuple(shared)) == "original"
    assert launch(compiled, arguments(at=0x50_0000)) == "better"


def test_tensors_of_one_storage_take_the_better_kernel_where_their_bytes_are_apart(torch, compiled, monkeypatch) -> None:
    """Facts with arithmetic: each integer of a launch matters, and not how large it is alone."""
    from test_reach import FACTS

    # Parameters of the kernel are `indices`, `values`, `out`, `n`, `count`.
    facts = [fact.replace("p:3:0:4", "p:4:0:4").replace("0 0 1 0", "1 0 2 0") for fact in FACTS]
    facts[3:] = ["reach 1 0 10", "reach 2 0 10"]
    answers(monkeypatch, *facts)
    headstart.install(mode="now")
    monkeypatch.setattr("headstart._trial.Trial.new", staticmethod(lambda: None))
    whole = Storage(0x20_0000, np.zeros(4096, np.float32))

    def args(at: int, count: int) -> tuple[Any, ...]:
        own = [Tensor(0, np.zeros(0, np.float32)) for _ in range(2)]
        own[0].storage = own[1].storage = whole
        own[1].offset = at
        return (arguments()[0], *own, 64, count, 128)

    # So many elements are read and written, of `grid` times 128 at most.
    for at, count, grid, taken in [
        (1000, 1000, 64, True),
        (1000, 1001, 64, False),
        (1000, 1000, 64, True),
        (1000, 1003, 64, False),
        (1000, 1003, 7, True),
        (1003, 1003, 64, True),
        (1002, 1003, 64, False),
        (0, 0, 64, True),
        (0, 1, 64, False),
    ]:
        for _ in range(2):
            found = launch(compiled, args(at, count), grid=grid)
            assert found == ("better" if taken else "original"), (at, count, grid)


def test_a_launch_is_described_once(torch, compiled, monkeypatch) -> None:
    answers(monkeypatch, "ends 1 0 64 4", "apart 1 0 2 0")
    described = []
    key = _launches.Shape.key
    monkeypatch.setattr(_launches.Shape, "key", lambda *words: described.append(1) or key(*words))
    headstart.install(mode="now")
    assert [launch(compiled, arguments()) for _ in range(24)][-1] == "better"
    count = len(described)
    # Other addresses, an integer of the same number of bits, and a grid of it.
    assert launch(compiled, arguments(at=0x90_0000)) == "better"
    others = list(arguments())
    others[3] = 65
    assert [launch(compiled, tuple(others)) for _ in range(2)] == ["better", "better"]
    assert [launch(compiled, arguments(), grid=number) for number in (64, 65, 64)] == ["better"] * 3
    assert len(described) == count + 1
    # A new answer makes all be looked at again.
    assert launch(compiled, arguments()) == "better"
    # Memory that overlaps is looked at each time, and described once.
    shared = list(arguments())
    shared[2] = Tensor(0x20_0080, np.zeros(64, np.float32))
    assert [launch(compiled, tuple(shared)) for _ in range(3)] == ["original"] * 3
    assert launch(compiled, arguments()) == "better"
    assert len(described) == count + 3


def test_inductor_s_kernels_are_launched_by_their_own_launcher(torch, compiled, monkeypatch, tmp_path) -> None:
    """As `torch.compile` has them: machine code in Triton's cache, and a `run` that gets no function."""
    answers(monkeypatch, "ends 1 0 64 4", "apart 1 0 2 0")
    code = tmp_path / "gather_reduce.cubin"
    code.with_suffix(".ptx").write_text(compiled.asm["ptx"])
    metadata = compiled.metadata._asdict()
    target = metadata["target"]
    metadata["target"] = {"backend": target.backend, "arch": target.arch, "warp_size": target.warp_size}
    code.with_suffix(".json").write_text(json.dumps(metadata, default=str))

    class Kernel:
        name, cubin_path, full_constexprs, function = "gather_reduce", str(code), {5: 128}, "original"
        arg_names = ("indices", "values", "out", "n", "count", "BLOCK")

        def run(self, x: int, y: int, z: int, stream: Any, *args: Any) -> None:
            assert len(args) == 5
            launched.append(self.function)

    launched: list[str] = []
    signature = dict(compiled.src.signature)
    result = types.SimpleNamespace(kernel=Kernel(), compile_meta={"signature": signature})
    assert _inductor._wrapped(result) is None
    headstart.install(mode="now")
    run = _inductor._wrapped(result)
    assert run is not None
    for _ in range(3):
        run(4, 1, 1, 0, *arguments()[:5])
    run(4, 1, 1, 0, *arguments(values=65)[:5])
    with headstart.left_alone():
        run(4, 1, 1, 0, *arguments()[:5])
    assert launched == ["better"] * 3 + ["original"] * 2
    headstart.uninstall()
    run(4, 1, 1, 0, *arguments()[:5])
    assert launched[-1] == "original"


@pytest.mark.parametrize("fact", ["group 64 1 1", "shared 8", "aligned 1 0 4194304", "moon full"])
def test_what_is_not_met_or_not_understood_takes_the_original(torch, compiled, monkeypatch, fact) -> None:
    if fact.startswith("moon"):
        fact = "moon 1"
    answers(monkeypatch, fact)
    headstart.install(mode="now")
    assert launch(compiled, arguments()) == "original"


def test_trials_and_captures_are_left_alone(torch, compiled, monkeypatch) -> None:
    seen = answers(monkeypatch)
    headstart.install(mode="now")
    with headstart.left_alone():
        assert launch(compiled, arguments()) == "original"
    torch.capturing = True
    assert launch(compiled, arguments()) == "original"
    assert seen == []
    torch.capturing = False
    assert launch(compiled, arguments()) == "better"
    with headstart.left_alone():
        assert launch(compiled, arguments()) == "original"


def test_a_gain_that_is_too_small_is_left(torch, compiled, monkeypatch) -> None:
    answers(monkeypatch, speedup=1.01)
    headstart.install(mode="now")
    assert launch(compiled, arguments()) == "original"


def test_background_launches_the_original_meanwhile(torch, compiled, monkeypatch) -> None:
    answers(monkeypatch)
    headstart.install(mode="background")
    taken = launch(compiled, arguments())
    for _ in range(200):
        if taken == "better":
            break
        time.sleep(0.01)
        taken = launch(compiled, arguments())
    assert compiled.launched[0] == "original" and taken == "better"


def test_uninstall_leaves_the_original(torch, compiled, monkeypatch) -> None:
    answers(monkeypatch)
    headstart.install(mode="now")
    assert launch(compiled, arguments()) == "better"
    taken = compiled.run
    headstart.uninstall()
    assert launch(compiled, arguments()) == "original"
    assert compiled.run is not taken
    # Whoever has taken hold of the launcher launches the original, too.
    taken(4, 1, 1, 0, compiled.function, None, None, None, None, *arguments())
    assert compiled.launched[-1] == "original"


def test_only_marked_kernels_are_looked_at(torch, compiled, monkeypatch) -> None:
    seen = answers(monkeypatch)
    headstart.tuned(kernels.spmv)
    assert launch(compiled, arguments()) == "original" and seen == []
    forget(compiled)
    assert headstart.tuned(kernels.gather_reduce, mode="now") is kernels.gather_reduce
    assert launch(compiled, arguments()) == "better"


def test_what_is_no_tensor_takes_the_original(torch, compiled, monkeypatch) -> None:
    answers(monkeypatch)
    headstart.install(mode="now")
    raw = list(arguments())
    raw[0] = types.SimpleNamespace(data_ptr=lambda: 0x10_0000)
    assert launch(compiled, tuple(raw)) == "original"


def test_tensors_of_the_host_are_left_to_triton(torch, compiled, monkeypatch) -> None:
    """Triton refuses them; nothing is searched for before."""
    seen = answers(monkeypatch)
    headstart.install(mode="now")
    args = arguments()
    args[1].storage.device = "cpu"
    assert launch(compiled, args) == "original" and seen == []
    assert launch(compiled, arguments()) == "better"


def test_launches_are_collected(torch, compiled, monkeypatch, own_cache: Path) -> None:
    headstart.install(mode="collect")
    assert launch(compiled, arguments()) == "original"
    (folder,) = (own_cache / "pending").iterdir()
    assert json.loads((folder / "launch" / "note.json").read_text())["device"] == DEVICE
    assert (folder / "launch" / "launch.toml").is_file()


def test_what_was_collected_is_tuned_later(torch, compiled, monkeypatch, own_cache: Path, capfd) -> None:
    """All the way, on a simulated GPU: a launch is written, searched for, and launched in its better form."""
    n, count, values = 512, 32, 1 << 20
    random = np.random.default_rng(1)

    args = (
        Tensor(0x10_0000, random.integers(0, values, n * count, dtype=np.int32)),
        Tensor(0x20_0000, np.ones(values, np.float32)),
        Tensor(0x90_0000, np.zeros(n, np.float32)),
        n,
        count,
        128,
    )
    headstart.install(mode="collect")
    assert launch(compiled, args) == "original"
    (pending,) = (own_cache / "pending").iterdir()
    plan = "unroll:16"
    words = [str(own_cache), "--device", "sim:h200", "--budget", "60", "--plans", plan]
    assert main.tune_cache(words) == 0
    assert "gather_reduce: " in capfd.readouterr().out and not pending.exists()
    headstart.uninstall()
    forget(compiled)
    headstart.install(mode="cached")
    assert launch(compiled, args) == "better"
    (report,) = headstart.reports("gather_reduce")[-1:]
    assert report.plan and report.speedup > 1.05 and report.kernel is compiled.src.fn
    assert report.choices and "gather_reduce" in str(report)


def test_a_read_only_cache_is_refused_by_name_and_warned_of_otherwise(torch, compiled, monkeypatch, tmp_path) -> None:
    # A file where the folder should be: root may write into folders without a write bit.
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(headstart.CacheError, match="HEADSTART_PYTHON_CACHE"):
        headstart.install(cache=str(blocked / "cache"))
    headstart.install(cache=str(blocked / "cache"), mode="cached")
    assert launch(compiled, arguments()) == "original"
    headstart.uninstall()
    forget(compiled)
    answers(monkeypatch)
    monkeypatch.setenv("HEADSTART_PYTHON_CACHE", str(blocked / "cache"))
    headstart.install(mode="now")
    with pytest.warns(UserWarning, match="answers are lost"):
        assert launch(compiled, arguments()) == "better"


def test_a_cache_on_a_read_only_disk_has_its_answers(torch, compiled, monkeypatch, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(disk)], capture_output=True, check=False)
    if mounted.returncode != 0:
        pytest.skip("no file system can be mounted here")
    try:
        answers(monkeypatch)
        headstart.install(mode="now", cache=str(disk))
        assert launch(compiled, arguments()) == "better"
        headstart.uninstall()
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        forget(compiled)
        with pytest.raises(headstart.CacheError, match=r'Read-only file system.*mode="cached"'):
            headstart.install(mode="now", cache=str(disk))
        headstart.install(mode="cached", cache=str(disk))
        assert launch(compiled, arguments()) == "better"
        headstart.uninstall()
        # One that is not named: answers are found all the same, for this process.
        forget(compiled)
        monkeypatch.setenv("HEADSTART_PYTHON_CACHE", str(disk))
        headstart.install(mode="now")
        with pytest.warns(UserWarning, match="answers are lost"):
            assert launch(compiled, arguments(values=4096)) == "better"
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_launch_without_work_groups_is_left_to_triton(torch, compiled, monkeypatch) -> None:
    """No grid of a search: nothing would be launched there."""
    seen = answers(monkeypatch)
    headstart.install(mode="now")
    assert launch(compiled, arguments(), grid=0) == "original" and seen == []
    assert launch(compiled, arguments()) == "better" and len(seen) == 1


def test_a_cache_of_another_gpu_is_warned_of_where_it_is_all_there_is(torch, compiled, own_cache: Path) -> None:
    Cache().put("NVIDIA H200", "ab", Answer("k", "NVIDIA H200", None, 1.0, None, (), "", ""))
    headstart.install(mode="cached")
    with pytest.warns(UserWarning, match=f"has answers for nvidia-h200, and none for {DEVICE}, which is here; tune here"):
        assert launch(compiled, arguments()) == "original"


def test_a_cache_of_another_gpu_says_so(own_cache: Path) -> None:
    cache = Cache()
    cache.put("NVIDIA H200", "ab", Answer("k", "NVIDIA H200", None, 1.0, None, (), "", ""))
    cache.check_device("NVIDIA H200")
    with pytest.raises(headstart.CacheError, match="nvidia-h200, and none for NVIDIA A100"):
        cache.check_device("NVIDIA A100")


def test_an_answer_that_is_cut_off_is_looked_for_again(own_cache: Path) -> None:
    cache = Cache()
    cache.put("d", "k", Answer("k", "d", "unroll:2", 1.5, "ptx", ("group 1 1 1",), "", ""))
    found = cache.get("d", "k")
    assert found is not None and found.facts == ("group 1 1 1",)
    path = own_cache / "d" / "k.json"
    path.write_text(path.read_text()[:40])
    assert cache.get("d", "k") is None


def test_a_search_names_an_assembler_and_its_time(compiled, monkeypatch, tmp_path: Path) -> None:
    """A kernel with thousands of instructions must not keep a search for minutes, whoever compiles it."""
    program, told = tmp_path / "headstart", tmp_path / "told"
    program.write_text(
        f"#!/bin/sh\necho $HEADSTART_PTXAS $HEADSTART_PTXAS_LIMIT >{told}\necho 'headstart: no GPU' >&2\nexit 3\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("HEADSTART_COMMAND", str(program))
    launch = _capture.Launch("bag", PTX_OF_A_BAG, (1, 1, 1), (32, 1, 1), b"", ())
    folder = launch.write(tmp_path / "launch")
    own = _assembled.assembler(compiled)
    assert "ptxas" in Path(own["HEADSTART_PTXAS"]).name
    answer = _search.search_in(folder, "a GPU", "cuda:0", 8.0, own)
    assert (answer.kernel, answer.plan, answer.why) == ("bag", None, "no GPU")
    assert told.read_text().split() == [own["HEADSTART_PTXAS"], "16.0"]
    # The assembler of another machine is not here.
    _search.search_in(folder, "a GPU", "cuda:0", 2.0, {**own, "HEADSTART_PTXAS": "/elsewhere/ptxas"})
    name, limit = told.read_text().split()
    assert os.access(name, os.X_OK) and limit == "10.0"


def _looks(folder: str, out: Any) -> None:
    cache = Cache(folder)
    with cache.lock("d", "k"):
        if cache.get("d", "k") is None:
            time.sleep(0.2)
            cache.put("d", "k", Answer(str(os.getpid()), "d", None, 1.0, None, (), "", ""))
            out.put(os.getpid())


def test_processes_do_not_look_for_the_same_answer_twice(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    out = context.Queue()
    all_of_them = [context.Process(target=_looks, args=(str(tmp_path), out)) for _ in range(6)]
    for process in all_of_them:
        process.start()
    for process in all_of_them:
        process.join()
    assert out.get(timeout=5) and out.empty()


def test_interpreted_functions_and_strangers(monkeypatch) -> None:
    class InterpretedFunction:
        pass

    own = InterpretedFunction()
    assert headstart.tuned(own) is own
    with pytest.raises(headstart.UsageError, match=r"above `@triton\.jit` or `@cuda\.jit`"):
        headstart.tuned(len)
    with pytest.raises(headstart.UsageError, match="unknown mode 'soon'"):
        headstart.install(mode="soon")
