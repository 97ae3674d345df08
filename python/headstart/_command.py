"""The `headstart` command: where it is, and how it is run. Nothing else of the package starts it."""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from pathlib import Path

from headstart.errors import (
    CommandMissing,
    DeviceError,
    HeadstartBug,
    HeadstartError,
    KernelError,
    UsageError,
)

log = logging.getLogger("headstart")

#: How the last sentence begins: the command's own, or one of its arguments' parser.
_BEGINS = ("headstart: ", "error: ")
_OF_STATUS: dict[int, type[HeadstartError]] = {1: KernelError, 2: UsageError, 3: DeviceError}


def command() -> str:
    """The path of the `headstart` command.

    `HEADSTART_COMMAND` in the environment names another one.

    Raises:
        CommandMissing: it is neither among this installation's scripts nor on the path.
    """
    if given := os.environ.get("HEADSTART_COMMAND"):
        if not os.access(given, os.X_OK):
            raise CommandMissing(f"HEADSTART_COMMAND names {given!r}, which is no program")
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
    raise CommandMissing("the command `headstart` is not there; reinstall the package, or name it in HEADSTART_COMMAND")


def run(arguments: Sequence[str], *, environment: Mapping[str, str] | None = None, timeout: float | None = None) -> str:
    """Runs the command to its end and returns its standard output.

    Args:
        arguments: the command line without the program.
        environment: variables beside this process's own.
        timeout: seconds after which it is ended.

    Raises:
        KernelError, UsageError, DeviceError, HeadstartBug: what the command says, by its exit status.
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
        raise DeviceError(f"`headstart {arguments[0]}` was not done after {expired.timeout:.0f} s") from None
    for line in done.stderr.splitlines():
        log.debug("%s", line)
    if done.returncode == 0:
        return done.stdout
    kind = _OF_STATUS.get(done.returncode, HeadstartBug)
    raise kind(_sentence(done.stderr, done.returncode, arguments[0]))


def _sentence(stderr: str, status: int, what: str) -> str:
    """What the command says of its end: its last sentence, with the lines that belong to it. Progress stands before it."""
    said = [line for line in stderr.splitlines() if line.strip()]
    if status < 0:
        ended = f"`headstart {what}` was ended by {signal.Signals(-status).name}"
        return "\n".join([ended, *said[-8:]])
    if not said:
        return f"`headstart {what}` ended with exit status {status} and said nothing"
    last = max((at for at, line in enumerate(said) if line.startswith(_BEGINS)), default=max(0, len(said) - 8))
    return "\n".join(said[last:]).removeprefix("headstart: ")
