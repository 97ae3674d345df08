"""The facts that a better kernel assumes, checked for a launch.

Facts are lines of words, as `headstart tune` writes them: `group X Y Z`, `shared BYTES`, `apart I IN J IN`,
`ends I IN LENGTH SIZE`, `aligned I IN BYTES`, `resident`. I and J count the entry's parameters; IN is a byte inside of one.

Two pointers are apart if different bytes are reached through them. The allocation of each is known from its tensor, not from
the address, so that nothing else is reached; which bytes of it, `terms …` and `reach I IN …` say (`_reach`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Pointer:
    """The target of a parameter: its value, and the allocation around it."""

    address: int
    start: int
    end: int


def pointers_of(facts: Sequence[str]) -> set[int]:
    """The parameters whose allocations facts concern."""
    found: set[int] = set()
    for fact in facts:
        kind, *words = fact.split()
        if kind in ("ends", "aligned"):
            found.add(int(words[0]))
        elif kind == "apart":
            found.update((int(words[0]), int(words[2])))
    return found


def are_of_numbers(facts: Sequence[str]) -> bool:
    """Whether they depend on a launch's integers and grid, and not on their sizes alone."""
    return any(fact.startswith("terms ") for fact in facts)


def unmet(
    facts: Sequence[str],
    group: tuple[int, int, int],
    shared_bytes: int,
    pointers: Mapping[int, Pointer],
    reached: Mapping[int, range],
    are_resident: Callable[[], bool] = lambda: False,
) -> str | None:
    """The first fact that a launch violates; `None` if it meets all. A fact that is not understood is violated.

    `reached` are the bytes that are reached through pointers, from where each leads. `are_resident` says whether as many
    work-groups of the better kernel are resident as of the original.
    """
    for fact in facts:
        kind, *words = fact.split()
        if kind in ("reach", "terms"):
            continue
        numbers = [int(word) for word in words]
        if kind == "group":
            met = tuple(numbers) == group
        elif kind == "shared":
            met = numbers == [shared_bytes]
        elif kind == "apart":
            one, other = pointers.get(numbers[0]), pointers.get(numbers[2])
            met = one is not None and other is not None and numbers[1] == numbers[3] == 0
            met = met and _apart(one, other, reached.get(numbers[0]), reached.get(numbers[2]))
        elif kind == "ends":
            own = pointers.get(numbers[0])
            met = own is not None and numbers[1] == 0 and own.address == own.start
            met = met and own is not None and (own.end - own.address) // numbers[3] == numbers[2]
        elif kind == "aligned":
            own = pointers.get(numbers[0])
            met = own is not None and numbers[1] == 0 and own.address % numbers[2] == 0
        elif kind == "resident":
            met = are_resident()
        else:
            met = False
        if not met:
            return fact
    return None


@dataclass(frozen=True)
class Addresses:
    """A fact's condition on addresses, for allocations of known sizes: an expression over `pN`, the value of parameter N."""

    words: str
    numbers: tuple[int, ...]


def of_addresses(facts: Sequence[str], pointers: Mapping[int, Pointer], reached: Mapping[int, range]) -> list[Addresses]:
    """The remaining comparisons of facts that a launch meets, for launches whose tensors have its sizes and offsets.

    Where it needs `reached`, also those launches have its grid and integers.
    """
    found: list[Addresses] = []
    for fact in facts:
        kind, *words = fact.split()
        numbers = [int(word) for word in words if word.isdigit()]
        if kind == "aligned":
            found.append(Addresses(f"not p{numbers[0]} % {numbers[2]}", (numbers[0],)))
        elif kind == "apart":
            i, j = numbers[0], numbers[2]
            one, other = (_extent(pointers[number], None) for number in (i, j))
            if not _apart(pointers[i], pointers[j], None, None):
                # As it is: which part of it is in the allocation depends on the address.
                one, other = (reached.get(number, whole) for number, whole in ((i, one), (j, other)))
            if not one or not other:
                continue
            # Apart means that one ends before the other begins: the distance of the two values decides.
            least, most = one.start - other.stop, one.stop - other.start
            found.append(Addresses(f"not {least} < p{j} - p{i} < {most}", (i, j)))
    return found


def _extent(own: Pointer, reached: range | None) -> range | None:
    """What may be accessed through a pointer, from where it leads: of its allocation what is reached, or all of it.

    `None` if something is reached, and nothing of that is in the allocation: then the pointer is not what it seems.
    """
    if own.address == 0:
        # Nothing is accessed through a null pointer.
        return range(0)
    whole = range(own.start - own.address, own.end - own.address)
    if reached is None or not reached:
        return whole if reached is None else reached
    both = range(max(whole.start, reached.start), min(whole.stop, reached.stop))
    return both or None


def _apart(one: Pointer | None, other: Pointer | None, first: range | None, second: range | None) -> bool:
    """Whether different bytes are reached through two pointers."""
    if one is None or other is None:
        return False
    of_one, of_other = _extent(one, first), _extent(other, second)
    if of_one is None or of_other is None:
        return False
    if not of_one or not of_other:
        return True
    ends = one.address + of_one.stop <= other.address + of_other.start
    return ends or other.address + of_other.stop <= one.address + of_one.start
