"""The facts that a better kernel assumes, checked for a launch.

Facts are lines of words, as `headstart tune` writes them: `group X Y Z`, `shared BYTES`, `apart I IN J IN`,
`ends I IN LENGTH SIZE`, `aligned I IN BYTES`. I and J count the entry's parameters; IN is a byte inside of one. What a kernel
reaches in memory that several pointers lead into, `terms …` and `reach I IN …`, is not needed here: tensors say themselves
how long they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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


def unmet(facts: Sequence[str], group: tuple[int, int, int], shared_bytes: int, pointers: Mapping[int, Pointer]) -> str | None:
    """The first fact that a launch violates; `None` if it meets all. A fact that is not understood is violated."""
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
            # Nothing is accessed through a null pointer.
            met = met and _apart(one, other)
        elif kind == "ends":
            own = pointers.get(numbers[0])
            met = own is not None and numbers[1] == 0 and own.address == own.start
            met = met and own is not None and (own.end - own.address) // numbers[3] == numbers[2]
        elif kind == "aligned":
            own = pointers.get(numbers[0])
            met = own is not None and numbers[1] == 0 and own.address % numbers[2] == 0
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


def of_addresses(facts: Sequence[str], pointers: Mapping[int, Pointer]) -> list[Addresses]:
    """The remaining comparisons of facts that a launch meets, for launches whose tensors have its sizes and offsets."""
    found: list[Addresses] = []
    for fact in facts:
        kind, *words = fact.split()
        numbers = [int(word) for word in words if word.isdigit()]
        if kind == "aligned":
            found.append(Addresses(f"not p{numbers[0]} % {numbers[2]}", (numbers[0],)))
        elif kind == "apart":
            i, j = numbers[0], numbers[2]
            one, other = pointers[i], pointers[j]
            # Apart means that one ends before the other begins: the distance of the two values decides.
            inside = (one.address - one.start, other.address - other.start)
            least = inside[1] - inside[0] - (other.end - other.start)
            most = inside[1] - inside[0] + (one.end - one.start)
            found.append(Addresses(f"not {least} < p{j} - p{i} < {most}", (i, j)))
    return found


def _apart(one: Pointer | None, other: Pointer | None) -> bool:
    if one is None or other is None:
        return False
    return one.address == 0 or other.address == 0 or one.end <= other.start or other.end <= one.start
