"""Which bytes a launch reaches: the preloaded library computes it for `headstart exec`, and is asked, so that there is one way.

A kernel's facts have the arithmetic, `terms …`, and the term of each pointer, `reach I IN TERM`.
"""

from __future__ import annotations

import ctypes
import functools
import logging
import os
from collections.abc import Sequence
from pathlib import Path

from headstart._command import command
from headstart.errors import CommandMissing

log = logging.getLogger("headstart")

_LIBRARY = "libheadstart_driver.so"
#: Pointers of a kernel that the library says something of, at most.
_MOST = 64


class _Found(ctypes.Structure):
    _fields_ = (
        ("index", ctypes.c_uint32),
        ("inside", ctypes.c_uint32),
        ("is_known", ctypes.c_uint32),
        ("is_any", ctypes.c_uint32),
        ("first", ctypes.c_int64),
        ("last", ctypes.c_int64),
    )


def of_launch(
    facts: Sequence[str], parameters: bytes, layout: Sequence[tuple[int, int]], groups: tuple[int, int, int]
) -> dict[int, range]:
    """The bytes that are reached through each pointer, counted from where it leads, by the number of its parameter.

    Pointers of which nothing is known are missing, and those inside of a larger parameter.

    Args:
        parameters: the bytes of all parameters.
        layout: offset and size of each.
    """
    library = _library()
    lines = "\n".join(fact for fact in facts if fact.startswith(("terms ", "reach ")))
    if library is None or not lines:
        return {}
    offsets = (ctypes.c_uint64 * len(layout))(*(offset for offset, _ in layout))
    found = (_Found * _MOST)()
    count = library.headstart_reached(
        lines.encode(), parameters, len(parameters), offsets, len(layout), (ctypes.c_uint32 * 3)(*groups), found, _MOST
    )
    known = [own for own in found[: max(count, 0)] if own.is_known and own.inside == 0]
    return {own.index: range(own.first, own.last + 1) if own.is_any else range(0) for own in known}


@functools.lru_cache(maxsize=1)
def _library() -> ctypes.CDLL | None:
    """The library, if it is where the command looks for it; it observes nothing unless it is preloaded."""
    places = [Path(named)] if (named := os.environ.get("HEADSTART_DRIVER_LIBRARY")) else []
    try:
        folder = Path(command()).resolve().parent
        places += [own / _LIBRARY for own in (folder, folder.parent / "lib", folder / "deps")]
    except CommandMissing:
        pass
    for place in places:
        try:
            library = ctypes.CDLL(str(place))
            library.headstart_reached.restype = ctypes.c_int64
            library.headstart_reached.argtypes = (
                ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_size_t,
                ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t,
            )  # fmt: skip
            return library
        except (OSError, AttributeError) as error:
            log.debug("%s: %s", place, error)
    return None
