"""The function in a launcher's place: what it looks at, and what it calls."""

from __future__ import annotations

import types
from typing import Any

import pytest

from headstart import _facts, _fast
from headstart._fast import Fast
from headstart._launches import Argument


class Storage:
    def __init__(self, address: int, size: int) -> None:
        self.address, self.size = address, size

    def nbytes(self) -> int:
        return self.size


class Tensor:
    """Floats at an address, so many of them into their storage."""

    def __init__(self, address: int, count: int, offset: int = 0) -> None:
        self.storage, self.offset = Storage(address, 4 * (count + offset)), offset

    def data_ptr(self) -> int:
        return self.storage.address + 4 * self.offset

    def numel(self) -> int:
        return self.storage.size // 4 - self.offset

    def storage_offset(self) -> int:
        return self.offset

    def untyped_storage(self) -> Storage:
        return self.storage


ARGUMENTS = (Argument(0, "*fp32"), Argument(1, "*fp32"), Argument(2, "i32"), Argument(3, "fp32"))


class Launches:
    """A launcher of Triton's kind over functions that write down what is called."""

    def __init__(self, needed: frozenset[int] = frozenset()) -> None:
        self.launched: list[Any] = []
        self.asked = 0
        self.left = [0]
        self.answer: Any = None

        def original(x: int, y: int, z: int, stream: Any, function: Any, *rest: Any) -> None:
            assert rest[:4] == ("metadata", "launch", "enter", "exit")
            self.launched.append(function)

        self.fast = Fast(ARGUMENTS, 4, original, self.other, self.left, of_triton=True)
        self.fast.need(needed)

    def other(self, x: int, y: int, z: int, args: tuple[Any, ...]) -> Any:
        self.asked += 1
        return self.answer

    def __call__(self, *args: Any, grid: int = 1) -> Any:
        self.fast.launch(grid, 1, 1, 0, "original", "metadata", "launch", "enter", "exit", *args)
        return self.launched[-1]


def test_what_is_known_is_not_asked_for_again() -> None:
    own = Launches()
    args = (Tensor(0x1000, 8), Tensor(0x2000, 8), 8, 0.5)
    assert own(*args) == "original" and own.asked == 1
    own.fast.known[own.fast.fingerprint(1, 1, 1, *args)] = ("better", None)
    # Addresses and floats are not looked up.
    assert own(Tensor(0x9000, 8), Tensor(0x8000, 8), 8, 0.25) == "better" and own.asked == 1
    # Grid, integers and sizes are.
    for others in ((args[0], args[1], 9, 0.5), (Tensor(0x1000, 9), args[1], 8, 0.5)):
        assert own(*others) == "original"
    assert own(*args, grid=2) == "original" and own.asked == 4
    own.left[0] = 1
    assert own(*args) == "original" and own.asked == 5


def test_what_facts_are_about_is_looked_up() -> None:
    own = Launches(frozenset({0}))
    args = (Tensor(0x1000, 8), Tensor(0x2000, 8), 8, 0.5)
    own.fast.known[own.fast.fingerprint(1, 1, 1, *args)] = ("better", None)
    assert own(*args) == "better"
    # As many elements in a longer allocation, at its end or at its start.
    within = Tensor(0x1000, 8, offset=2)
    assert own(within, *args[1:]) == "original"
    longer = Tensor(0x1000, 10)
    longer.numel = lambda: 8  # type: ignore[method-assign]
    assert own(longer, *args[1:]) == "original"


def test_what_a_known_launch_asks_of_its_tensors() -> None:
    """Each question takes 40 ns of PyTorch: one of a tensor that no fact is about, four of another."""
    asked: list[str] = []

    class Counted(Tensor):
        def __getattribute__(self, name: str) -> Any:
            if name in ("data_ptr", "numel", "storage_offset", "untyped_storage"):
                asked.append(name)
            return super().__getattribute__(name)

    own = Launches(frozenset({0}))
    args = (Counted(0x1000, 8), Counted(0x2000, 8), 8, 0.5)
    pointers = {0: _facts.Pointer(0x1000, 0x1000, 0x1020)}
    test = own.fast.test(_facts.of_addresses(("aligned 0 0 16",), pointers, {}))
    own.fast.known[own.fast.fingerprint(1, 1, 1, *args)] = ("better", test)
    asked.clear()
    assert own(*args) == "better" and own.asked == 0
    assert sorted(asked) == ["data_ptr", "numel", "storage_offset", "untyped_storage"]


@pytest.mark.parametrize("places", [(0x1000, 0), (0x1000, 5), (0x1080, 3)])
def test_addresses_are_compared_as_facts_are(places: tuple[int, int]) -> None:
    """The comparison with numbers in it says of every distance what the fact itself says."""
    start, offset = places
    fact = "apart 0 0 1 0"

    def pointer(tensor: Tensor) -> _facts.Pointer:
        storage = tensor.storage
        return _facts.Pointer(tensor.data_ptr(), storage.address, storage.address + storage.size)

    one, other = Tensor(start, 8, offset), Tensor(0x4000, 12, 1)
    pointers = {0: pointer(one), 1: pointer(other)}
    assert _facts.unmet((fact,), (1, 1, 1), 0, pointers, {}) is None
    test = Launches().fast.test(_facts.of_addresses((fact, "ends 0 0 8 4", "group 1 1 1"), pointers, {}))
    assert test is not None
    seen = set()
    for address in range(start - 80, start + 80, 4):
        moved = Tensor(address, 12, 1)
        met = _facts.unmet((fact,), (1, 1, 1), 0, {0: pointer(one), 1: pointer(moved)}, {}) is None
        assert test(one, moved, 8, 0.5) == met, hex(address)
        seen.add(met)
    assert seen == {True, False}


def test_alignment_and_triton_s_own_pointers() -> None:
    pointers = {0: _facts.Pointer(0x1000, 0x1000, 0x1020), 4: _facts.Pointer(0, 0, 0)}
    fast = Launches().fast
    test = fast.test(_facts.of_addresses(("aligned 0 0 32", "apart 0 0 4 0"), pointers, {}))
    assert test is not None
    args = (Tensor(0x2000, 8), 8, 0.5)
    assert test(Tensor(0x1000, 8), *args) and not test(Tensor(0x1010, 8), *args)
    assert fast.test([]) is None


def test_an_undone_function_stays_so() -> None:
    own = Launches()
    args = (Tensor(0x1000, 8), Tensor(0x2000, 8), 8, 0.5)
    own.answer = "better"
    assert own(*args) == "better"
    own.fast.undo()
    # An answer that comes late changes nothing.
    own.fast.need(frozenset({1}))
    assert own(*args) == "original" and own.asked == 1


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Triton's module for NVIDIA's driver, where there is none."""
    found = pytest.importorskip("triton.backends.nvidia.driver")
    from triton.runtime import driver as active

    monkeypatch.setattr(active, "_active", types.SimpleNamespace())
    return found


def launcher_of(driver: Any, **settings: Any) -> tuple[Any, list[tuple[Any, ...]]]:
    """Triton's own launcher, without the driver that it is made with; what its C function gets."""
    own = object.__new__(driver.CudaLauncher)
    called: list[tuple[Any, ...]] = []
    vars(own).update(
        num_ctas=1,
        launch=lambda *words: called.append(words),
        global_scratch_size=0,
        global_scratch_align=1,
        profile_scratch_size=0,
        profile_scratch_align=1,
        launch_cooperative_grid=False,
        launch_pdl=False,
        # Those of newer versions.
        gsan_enabled=False,
        arg_annotations=("O", "i"),
        kernel_signature=b"sig",
    )
    vars(own).update(settings)
    return own, called


def test_triton_s_c_function_gets_what_its_launcher_hands_on(driver) -> None:
    own, called = launcher_of(driver)
    found = _fast.bypass(own, 4)
    assert found is not None and called == []
    args = (Tensor(0x1000, 8), Tensor(0x2000, 8), 8, 0.5)
    heads = (3, 2, 1, 77, "function", "metadata", None, None, None)
    own(*heads, *args)
    fast = Fast(ARGUMENTS, 4, own, lambda *_: None, [0], of_triton=True)
    fast.launch(*heads, *args)
    fast.known[fast.fingerprint(3, 2, 1, *args)] = ("better", None)
    fast.launch(*heads, *args)
    first, second, third = called
    assert first == second
    assert third == tuple("better" if word == "function" else word for word in first)


def test_what_is_not_understood_is_called_as_it_is(driver, monkeypatch: pytest.MonkeyPatch) -> None:
    own, _ = launcher_of(driver, global_scratch_size=4096)
    assert _fast.bypass(own, 4) is None
    own, _ = launcher_of(driver)
    stranger = types.SimpleNamespace(launch=own.launch)
    assert _fast.bypass(stranger, 4) is None
    # A profiler has put itself around Triton's launcher.
    kind = type(own)
    monkeypatch.setattr(kind, "__call__", lambda self, *words: None)
    assert _fast.bypass(own, 4) is None
