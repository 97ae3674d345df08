"""The parts of a module's text that are needed here: its entries, and their parameters in order."""

from __future__ import annotations

import re
from dataclasses import dataclass

from headstart.errors import KernelError

_ENTRY = re.compile(r"\.entry\s+([A-Za-z_$%][\w$]*)\s*(?:\(([^)]*)\))?([^{;]*)", re.DOTALL)
_PARAMETER = re.compile(r"\.param\s+(?:\.align\s+\d+\s+)?\.(\w+)\b([^\[\],]*)(?:\[(\d+)\])?")
_BITS = re.compile(r"(\d+)$")


@dataclass(frozen=True)
class Entry:
    """An entry of a module: its name, and size in bytes of each parameter."""

    name: str
    sizes: tuple[int, ...]
    group: tuple[int, int, int] | None
    """Work-items of a work-group, where the module requires so many (`.reqntid`)."""
    integers: frozenset[int] = frozenset()
    """The parameters that are integers by their type, by number; others may be."""

    @property
    def layout(self) -> list[tuple[int, int]]:
        """Offset and size of each parameter in bytes, each at a multiple of its size."""
        layout: list[tuple[int, int]] = []
        end = 0
        for size in self.sizes:
            align = size if size in (1, 2, 4, 8) else 8
            end = -(-end // align) * align
            layout.append((end, size))
            end += size
        return layout


#: PTX keywords that no parameter can have as its name.
_RESERVED = frozenset(
    """abs activemask add addc alloca and applypriority atom bar barrier bfe bfi bfind bmsk bra brev brkpt brx call clz cnot
    copysign cos cp createpolicy cvt cvta discard div dp2a dp4a elect ex2 exit fence fma fns getctarank griddepcontrol isspacep
    istypep ld ldmatrix ldu lg2 lop3 mad mad24 madc mapa match max mbarrier membar min mma mov movmatrix mul mul24 multimem
    nanosleep neg not or pmevent popc prefetch prefetchu prmt rcp red redux rem ret rsqrt sad selp set setmaxnreg setp shf shfl
    shl shr sin slct sqrt st stackrestore stacksave stmatrix sub subc suld suq sured sust szext tanh tcgen05 tensormap testp tex
    tld4 trap txq vote wgmma wmma xor global shared local param const generic""".split()  # noqa: SIM905
)


def renamed(text: str, name: str, parameters: list[str]) -> str:
    """The module with these names for the entry's parameters instead of `<name>_param_0` and so on, if possible."""
    for number, new in enumerate(parameters):
        if re.fullmatch(r"[A-Za-z_]\w*", new) and new not in _RESERVED and not re.search(rf"[\w$%.]*\b{new}\b", text):
            text = re.sub(rf"\b{re.escape(name)}_param_{number}\b", new, text)
    return text


def shortened(text: str, name: str, short: str) -> tuple[str, str]:
    """The module with its entry `name` renamed to `short`, and the new name; both unchanged if that is impossible."""
    if not re.fullmatch(r"[A-Za-z_]\w*", short) or short in _RESERVED or re.search(rf"(?<![\w$]){short}(?![\w$])", text):
        return text, name
    return text.replace(name, short), short


def entries(text: str) -> list[Entry]:
    """All entries of a module."""
    plain = re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL)
    plain = re.sub(r"//[^\n]*", "", plain)
    found: list[Entry] = []
    for name, parameters, directives in _ENTRY.findall(plain):
        sizes: list[int] = []
        integers: set[int] = set()
        for kind, _, length in _PARAMETER.findall(parameters):
            # An `.u16` may have a half's bits, and an `.u64` a pointer's.
            integers.update({len(sizes)} if kind in ("u32", "s32") else ())
            bits = _BITS.search(kind)
            sizes.append((int(bits[1]) // 8 if bits else 1) * (int(length) if length else 1))
        group = None
        if required := re.search(r"\.reqntid\s+(\d+)(?:\s*,\s*(\d+))?(?:\s*,\s*(\d+))?", directives):
            x, y, z = (int(number or 1) for number in required.groups())
            group = (x, y, z)
        found.append(Entry(name, tuple(sizes), group, frozenset(integers)))
    return found


def entry(text: str, name: str | None = None) -> Entry:
    """The entry of this name, or the only one.

    Raises:
        KernelError: there is none, or there are several and no name was given.
    """
    found = entries(text)
    if name is not None:
        # C++ mangles names: `gather` is in `_Z6gatherPKiPf`.
        exact = [own for own in found if own.name == name]
        found = exact or [own for own in found if f"{len(name)}{name}" in own.name]
    if len(found) == 1:
        return found[0]
    names = ", ".join(own.name for own in entries(text)) or "none"
    what = f"no kernel {name!r}" if name else "several kernels, or none"
    raise KernelError(f"the module has {what}; accepted for `name=`: {names}")
