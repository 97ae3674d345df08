"""Answers on disk: the results of searches, so that nothing is tuned twice, in any process.

A folder for each GPU's name has a file for each answer, named by the hash of everything that it depends on. Files are written
under a temporary name and renamed, so that a reader sees a whole file or none. A search holds a lock, so that another process
waits for its answer instead of repeating it. A folder can be copied to other machines.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import logging
import os
import re
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from headstart.errors import CacheError

log = logging.getLogger("headstart")

__all__ = ["Answer", "Cache"]

#: Answers of another format are searched for again.
FORMAT = 1


@dataclass(frozen=True)
class Answer:
    """The result for a launch."""

    kernel: str
    device: str
    plan: str | None
    """The plan, as the command spells it; `None` where the kernel is best left as it is."""
    speedup: float
    ptx: str | None
    """The module with the plan carried out."""
    facts: tuple[str, ...]
    """What every launch of the better kernel is looked at for."""
    why: str
    """Why the kernel is left as it is, or what the better one rests on."""
    report: str
    """The command's JSON; empty where there is none."""


class Cache:
    """A folder of answers."""

    def __init__(self, folder: str | os.PathLike[str] | None = None) -> None:
        """`folder`: the place of answers; by default `HEADSTART_PYTHON_CACHE`, or `headstart` in the user's cache folder."""
        home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
        given = folder or os.environ.get("HEADSTART_PYTHON_CACHE")
        self.folder = Path(given) if given else Path(home) / "headstart" / "python"

    def place(self, device: str) -> Path:
        """The folder of a GPU's answers."""
        return self.folder / re.sub(r"[^A-Za-z0-9]+", "-", device).strip("-").lower()

    def devices(self) -> list[str]:
        """Names, as folders have them, of the GPUs with answers."""
        try:
            return sorted(own.name for own in self.folder.iterdir() if any(own.glob("*.json")))
        except OSError:
            return []

    def check_device(self, device: str) -> None:
        """Refuses a cache that has answers for other GPUs only.

        Raises:
            CacheError: it has; with their names.
        """
        others = self.devices()
        if others and self.place(device).name not in others:
            raise CacheError(
                f"the cache {str(self.folder)!r} has answers for {', '.join(others)}, and none for {device}, which is here; "
                'tune here (`headstart.install(mode="now")`), or name another cache'
            )

    def check_writable(self) -> None:
        """Refuses a folder that cannot be written.

        Raises:
            CacheError: it cannot be written.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.folder):
                pass
        except OSError as error:
            raise CacheError(
                f"nothing can be written into the cache {str(self.folder)!r} ({error.strerror}); name another folder "
                '(`cache=` or HEADSTART_PYTHON_CACHE), or use only what it has: `headstart.install(mode="cached")`'
            ) from error

    def get(self, device: str, key: str) -> Answer | None:
        """The answer of this key; `None` if there is none, or an unreadable one."""
        path = self.place(device) / f"{key}.json"
        try:
            raw = json.loads(path.read_text())
            if raw.pop("format") != FORMAT:
                return None
            raw["facts"] = tuple(raw["facts"])
            return Answer(**raw)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            log.warning("the answer %s cannot be read, and is looked for again: %s", path, error)
            return None

    def put(self, device: str, key: str, answer: Answer) -> None:
        """Stores an answer.

        Raises:
            CacheError: it cannot be written.
        """
        text = json.dumps({"format": FORMAT, **asdict(answer)})
        self.write(self.place(device) / f"{key}.json", text.encode())

    def write(self, path: Path, contents: bytes) -> None:
        """Puts a file in its place atomically.

        Raises:
            CacheError: it cannot be written.
        """
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".part")
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(contents)
                os.replace(name, path)
            except OSError:
                with contextlib.suppress(OSError):
                    os.unlink(name)
                raise
        except OSError as error:
            raise CacheError(f"{str(path)!r} cannot be written: {error.strerror}") from error

    @contextlib.contextmanager
    def lock(self, device: str, key: str) -> Iterator[None]:
        """A lock held during a search; others wait. It ends with the process that holds it.

        Raises:
            CacheError: the folder cannot be written.
        """
        folder = self.place(device)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            handle = os.open(folder / f"{key}.lock", os.O_CREAT | os.O_RDWR, 0o666)
        except OSError as error:
            raise CacheError(f"no lock can be had in {str(folder)!r}: {error.strerror}") from error
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)
