"""The function in a launcher's place: the checks of each launch, generated for a kernel's parameters.

It runs at every launch, so it has no loops, no packed arguments and no avoidable calls. A launch is first looked up by its
grid, its integers and the sizes of its tensors. If a better kernel is found, its address conditions are checked, with these
sizes as constants. Everything else goes to `other`.

Triton's own launcher spends more time than that on scratch memory that a kernel does not have. If one trial call shows the
arguments that it passes to its C function, that function is called directly.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from headstart._trial import Turn

if TYPE_CHECKING:
    from headstart._facts import Addresses
    from headstart._launches import Argument

#: The arguments of Triton's launcher between the function and the kernel's own arguments.
HEADS = ("metadata", "launch_metadata", "enter", "exit")

Test = Callable[..., bool]


class Fast:
    """A function `launch`, and its cached decisions.

    `known` maps a `fingerprint` to a better function, or `None` for the original, and a test of addresses or `None`.
    `other` decides for all other launches: the better function, a turn of a trial, or `None`.
    """

    def __init__(
        self,
        arguments: Sequence[Argument],
        count: int,
        original: Any,
        other: Callable[[int, int, int, tuple[Any, ...]], Any],
        left: list[int],
        *,
        of_triton: bool,
    ) -> None:
        """For a launcher `original` of so many arguments.

        Args:
            arguments: those that are parameters of the entry.
            left: above 0 while any thread launches originals only; `other` knows which.
            of_triton: the function to launch is an argument, as for Triton's launchers. Otherwise the function itself is
                called.
        """
        self.arguments = arguments
        self.names = [f"a{index}" for index in range(count)]
        self.of_triton = of_triton
        self.known: dict[tuple[Any, ...], tuple[Any, Test | None]] = {}
        self.space: dict[str, Any] = {
            "known": self.known,
            "other": other,
            "left": left,
            "original": original,
            "Turn": Turn,
        }
        self.call = self._call(original)
        self.needed: frozenset[int] = frozenset()
        self.fingerprint: Callable[..., tuple[Any, ...]] = lambda *_: ()
        self.launch: Any = None
        self.is_undone = False
        self.need(self.needed)

    def _call(self, original: Any) -> Callable[[str], str]:
        """The code that launches a function."""
        own = ", ".join(self.names)
        if not self.of_triton:
            return lambda function: f"{function}(x, y, z, stream, {own})"
        direct = bypass(original, len(self.names))
        if direct is None:
            return lambda function: f"original(x, y, z, stream, {function}, {', '.join(HEADS)}, {own})"
        self.space["direct"] = original.launch
        words, constants = direct
        self.space.update(constants)
        return lambda function: f"direct({', '.join(function if word == 'function' else word for word in words)})"

    def need(self, needed: frozenset[int]) -> None:
        """From now on the fingerprint includes sizes and offsets of these parameters' allocations.

        For other tensors only the number of elements counts. Floats do not count: no answer depends on them.
        """
        self.needed = needed
        first, parts = self._looked_at()
        key = ", ".join(["x", "y", "z", *parts])
        names = ", ".join(self.names)
        plain = "function" if self.of_triton else "original"
        head = ", ".join(["x", "y", "z", "stream", *(("function", *HEADS) if self.of_triton else ())])
        again = f"other(x, y, z, ({names},))" if names else "other(x, y, z, ())"
        source = f"""
def launch({head}, {names}):
    try:
        {first}
        better, test = known[{key}]
        if left[0] or (test is not None and not test({names})):
            better = {again}
    except (KeyError, TypeError, AttributeError):
        better = {again}
    if better is None:
        return {self.call(plain)}
    if type(better) is Turn:
        with better:
            better = better.function
            if better is None:
                return {self.call(plain)}
            return {self.call("better")}
    return {self.call("better")}

def fingerprint(x, y, z, {names}):
    {first}
    return ({key},)

def undone({head}, {names}):
    return {self.call(plain)}
"""
        exec(compile(source, "<headstart>", "exec"), self.space)
        self.fingerprint = self.space["fingerprint"]
        self.known.clear()
        if self.launch is None:
            self.launch = self.space["launch"]
        elif not self.is_undone:
            # Others hold a reference to the function: it stays, and does something else.
            self.launch.__code__ = self.space["launch"].__code__

    def _looked_at(self) -> tuple[str, list[str]]:
        """An initial statement, and the looked-up values of the arguments."""
        first, parts = [], []
        for number, argument in enumerate(self.arguments):
            own = self.names[argument.index]
            if argument.kind[0] != "*":
                if argument.is_integer:
                    parts.append(own)
            elif number in self.needed:
                first.append(f"s{number} = {own}.untyped_storage()")
                parts += [f"s{number}.nbytes()", f"{own}.storage_offset()"]
            else:
                parts.append(f"{own}.numel()")
        return "; ".join(first) or "pass", parts

    def test(self, conditions: Sequence[Addresses]) -> Test | None:
        """A function of a launch's arguments: whether addresses meet these conditions."""
        if not conditions:
            return None
        name = {number: self.names[argument.index] for number, argument in enumerate(self.arguments)}
        numbers = sorted({number for condition in conditions for number in condition.numbers})
        # A pointer of Triton's own, without an argument, points nowhere.
        lines = [f"p{number} = {name[number]}.data_ptr()" if number in name else f"p{number} = 0" for number in numbers]
        holds = " and ".join(condition.words for condition in conditions)
        space: dict[str, Any] = {}
        source = f"def test({', '.join(self.names)}):\n    {'; '.join(lines)}\n    return {holds}\n"
        exec(compile(source, "<headstart>", "exec"), space)
        return space["test"]

    def undo(self) -> None:
        """From now on the function launches the original without checks."""
        self.is_undone = True
        self.launch.__code__ = self.space["undone"].__code__


def bypass(launcher: Any, count: int) -> tuple[list[str], dict[str, Any]] | None:
    """The arguments that Triton's launcher passes to its C function: an expression for each, and constants by name.

    A copy of it is called once, with a function that records its arguments. `None` if one of them is not understood; then the
    launcher is called as it is.
    """
    kind = type(launcher)
    if f"{kind.__module__}.{kind.__name__}" != "triton.backends.nvidia.driver.CudaLauncher":
        return None
    # A wrapper around it wants to be called.
    if getattr(kind.__call__, "__module__", "") != kind.__module__ or not callable(vars(launcher).get("launch")):
        return None
    heads = {name: object() for name in ("x", "y", "z", "stream", "function", *HEADS)}
    own = tuple(object() for _ in range(count))
    written: list[tuple[Any, ...]] = []
    try:
        probe = copy.copy(launcher)
        probe.launch = lambda *words: written.append(words)
        probe(*heads.values(), *own)
    except Exception:  # A change in Triton must not stop it from working.
        return None
    if len(written) != 1:
        return None
    names = {id(value): name for name, value in heads.items()}
    names |= {id(value): f"a{index}" for index, value in enumerate(own)}
    settings = [value for name, value in vars(launcher).items() if name != "launch"]
    words: list[str] = []
    used: list[str] = []
    constants: dict[str, Any] = {}
    for value in written[0]:
        if id(value) in names:
            words.append(names[id(value)])
            used.append(words[-1])
        elif type(value) is tuple and len(value) == count and all(one is other for one, other in zip(value, own, strict=True)):
            words.append(f"({', '.join(names[id(one)] for one in own)},)" if own else "()")
            used += [names[id(one)] for one in own]
        elif value is None or any(value is setting for setting in settings):
            name = f"c{len(constants)}"
            constants[name] = value
            words.append(name)
        else:
            return None
    return (words, constants) if sorted(used) == sorted(names.values()) else None
