"""Arrays that share an allocation: whether they are apart is computed from the bytes that a launch reaches."""

from __future__ import annotations

from typing import Any

import pytest
from test_fast import Launches, Tensor

from headstart import _facts, _reach, _resident
from headstart._facts import Pointer

#: A kernel of `g` groups of 128: each item reads and writes as many elements of 4 bytes as parameter 3 says, or its own alone.
FACTS = (
    "group 128 1 1",
    "apart 0 0 1 0",
    "terms g:0 c:128 mul:0:1 p:3:0:4 min:2:3 c:4 mul:4:5 c:1 sub:6:7 c:0 between:9:8",
    "reach 0 0 10",
    "reach 1 0 10",
)
LAYOUT = ((0, 8), (8, 8), (16, 4), (20, 4))


def parameters(count: int) -> bytes:
    return bytes(20) + count.to_bytes(4, "little")


@pytest.fixture
def library() -> None:
    assert _reach._library() is not None, "the preloaded library is beside the command"


def test_what_a_launch_reaches(library: None) -> None:
    reached = _reach.of_launch(FACTS, parameters(100), LAYOUT, (3, 1, 1))
    assert reached == {0: range(400), 1: range(400)}
    assert _reach.of_launch(FACTS, parameters(1000), LAYOUT, (3, 1, 1))[0] == range(3 * 128 * 4)
    assert not _reach.of_launch(FACTS, parameters(0), LAYOUT, (3, 1, 1))[0], "nothing is reached"
    assert _reach.of_launch(FACTS, parameters(1), LAYOUT[:3], (3, 1, 1)) == {}, "there is no such parameter"
    assert _reach.of_launch(("terms moon:0", "reach 0 0 0"), parameters(1), LAYOUT, (1, 1, 1)) == {}
    assert _reach.of_launch(FACTS[:2], parameters(1), LAYOUT, (1, 1, 1)) == {}


@pytest.mark.parametrize("count", [0, 1, 7])
def test_one_allocation_is_apart_where_its_bytes_are(library: None, count: int) -> None:
    """The comparison with numbers in it says of every distance what the fact itself says."""
    reached = _reach.of_launch(FACTS, parameters(count), LAYOUT, (1, 1, 1))

    def pointers(first: int, second: int) -> dict[int, Pointer]:
        return {number: Pointer(address, 0x1000, 0x1100) for number, address in enumerate((first, second))}

    seen = set()
    for at in range(0x1000, 0x1100, 4):
        own = pointers(0x1080, at)
        met = _facts.unmet(FACTS, (128, 1, 1), 0, own, reached) is None
        assert met == (abs(at - 0x1080) >= 4 * count), hex(at)
        assert _facts.unmet(FACTS, (128, 1, 1), 0, own, {}) == FACTS[1], "nothing is known"
        seen.add(met)
        if not met:
            continue
        # Of a launch that meets it: other launches with the same numbers, wherever their arrays are.
        test = Launches().fast.test(_facts.of_addresses(FACTS, own, reached))
        for other in range(0x1000, 0x1100, 12):
            same = abs(other - 0x1080) >= 4 * count
            assert (test is None and count == 0) or test is not None
            assert test is None or test(Tensor(0x1080, 8), Tensor(other, 8), 8, 0.5) == same
    assert seen == ({True} if count == 0 else {True, False})


def test_numbers_count_where_facts_depend_on_them() -> None:
    assert _facts.are_of_numbers(FACTS)
    assert not _facts.are_of_numbers(FACTS[:2])


def test_what_is_reached_counts_in_different_allocations() -> None:
    """A pointer reaches bytes of its own allocation; where the arithmetic says otherwise, nothing is known."""
    fact = ("apart 0 0 1 0",)
    own = {0: Pointer(0x1100, 0x1000, 0x1100), 1: Pointer(0x1100, 0x1100, 0x1200)}

    def is_met(*reached: range) -> bool:
        return _facts.unmet(fact, (1, 1, 1), 0, own, dict(enumerate(reached))) is None

    # One goes back from the end of its array, where the other one's begins.
    assert is_met(range(-0x100, 0), range(0x100)) and is_met(range(-8, 8), range(0x100))
    assert _facts.unmet(fact, (1, 1, 1), 0, own, {}) is None, "the tensors say which array is whose"
    assert not is_met(range(0x10), range(0x100)), "it reaches the other one's"
    assert not is_met(range(-0x100, 0), range(-0x10, 0)), "and so does this one"
    assert is_met(range(0), range(0x100)), "nothing is reached"


def test_work_groups_are_as_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of functions 1 to 3 a core holds as many work-groups of 64; of the last the driver says nothing."""
    asked: list[tuple[int, int, int]] = []

    class Driver:
        @staticmethod
        def cuOccupancyMaxActiveBlocksPerMultiprocessor(found: Any, function: Any, items: Any, shared: Any) -> int:
            asked.append((function.value, items.value, shared.value))
            found._obj.value = function.value
            return 1 if function.value > 3 else 0

    monkeypatch.setattr(_resident, "_driver", Driver)
    _resident._groups.cache_clear()
    for functions, are in [((1, 2), True), ((2, 2), True), ((3, 2), False), ((3, 4), False), ((4, 3), False)]:
        assert _resident.are_as_many(functions, (32, 2, 1), 128) == are, functions
    assert sorted(asked) == [(number, 64, 128) for number in (1, 2, 3, 4)], "each is asked of once"
    for are in (True, False):
        assert (_facts.unmet(("resident",), (1, 1, 1), 0, {}, {}, lambda are=are: are) is None) == are
    assert _facts.unmet(("resident",), (1, 1, 1), 0, {}, {}) == "resident", "it is not known"
    _resident._groups.cache_clear()
