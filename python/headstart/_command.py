"""The `headstart` command: finding and running it. Nothing else in the package starts it."""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from headstart.errors import (
    CommandMissing,
    DeviceError,
    HeadstartBug,
    HeadstartError,
    KernelError,
    UsageError,
)

log = logging.getLogger("headstart")

#: How the last sentence begins: in the command's own messages, and in those of its argument parser.
_BEGINS = ("headstart: ", "error: ")
_OF_STATUS: dict[int, type[HeadstartError]] = {1: KernelError, 2: UsageError, 3: DeviceError}


def command() -> str:
    """The path of the `headstart` command.

    The environment variable `HEADSTART_COMMAND` overrides it.

    Raises:
        CommandMissing: it is neither among this installation's scripts nor on the path.
    """
    if given := os.environ.get("HEADSTART_COMMAND"):
        if not os.access(given, os.X_OK):
            raise CommandMissing(f"HEADSTART_COMMAND is {given!r}, which is not a program")
        return given
    package = Path(__file__).resolve().parent
    # `pip install --target DIR` puts the package into DIR and the command into DIR/bin.
    folders = [Path(sysconfig.get_path("scripts")), Path(sys.executable).parent, package.parent / "bin"]
    with contextlib.suppress(KeyError):
        folders.append(Path(sysconfig.get_path("scripts", f"{os.name}_user")))
    for folder in folders:
        if os.access(folder / "headstart", os.X_OK):
            return str(folder / "headstart")
    if found := shutil.which("headstart"):
        return found
    raise CommandMissing("the command `headstart` was not found; reinstall the package, or set HEADSTART_COMMAND to its path")


def followed(arguments: Sequence[str], tell: Callable[[str], Any]) -> str:
    """Runs the command to its end as `run` does, and tells what it says meanwhile, a line at a time.

    Raises:
        KernelError, UsageError, DeviceError, HeadstartBug: the command failed, by its exit status.
    """
    words = [command(), "--verbose", *arguments]
    with tempfile.TemporaryFile("w+", encoding="utf-8") as output:
        running = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.PIPE, text=True)
        said: list[str] = []
        for line in running.stderr or ():
            said.append(line)
            tell(line.rstrip("\n"))
        status = running.wait()
        if status != 0:
            raise _OF_STATUS.get(status, HeadstartBug)(_sentence("".join(said), status, arguments[0]))
        output.seek(0)
        return output.read()


def run(arguments: Sequence[str], *, environment: Mapping[str, str] | None = None, timeout: float | None = None) -> str:
    """Runs the command to its end and returns its standard output.

    Args:
        arguments: the command line without the program.
        environment: additional environment variables.
        timeout: seconds after which it is killed.

    Raises:
        KernelError, UsageError, DeviceError, HeadstartBug: the command failed, by its exit status.
    """
    words = [command(), *arguments]
    log.debug("runs %s", " ".join(words))
    try:
        done = subprocess.run(
            words,
            check=False,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            env={**os.environ, **(environment or {})},
            timeout=timeout,
        )
    except subprocess.TimeoutExpired as expired:
        raise DeviceError(f"`headstart {arguments[0]}` did not finish within {expired.timeout:.0f} s") from None
    for line in done.stderr.splitlines():
        log.debug("%s", line)
    if done.returncode == 0:
        return done.stdout
    kind = _OF_STATUS.get(done.returncode, HeadstartBug)
    raise kind(_sentence(done.stderr, done.returncode, arguments[0]))


def _sentence(stderr: str, status: int, what: str) -> str:
    """The command's final message: its last sentence, with the lines that belong to it. Progress comes before it."""
    said = [line for line in stderr.splitlines() if line.strip()]
    if status < 0:
        ended = f"`headstart {what}` was ended by {signal.Signals(-status).name}"
        return "\n".join([ended, *said[-8:]])
    if not said:
        return f"`headstart {what}` ended with exit status {status} and said nothing"
    last = max((at for at, line in enumerate(said) if line.startswith(_BEGINS)), default=max(0, len(said) - 8))
    return "\n".join(said[last:]).removeprefix("headstart: ")
