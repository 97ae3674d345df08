"""Exceptions, each of which says whose fault it is and what would be accepted."""

from __future__ import annotations

__all__ = [
    "CacheError",
    "CommandMissing",
    "DeviceError",
    "HeadstartBug",
    "HeadstartError",
    "KernelError",
    "UsageError",
]


class HeadstartError(Exception):
    """The base of all of Headstart's exceptions."""


class KernelError(HeadstartError, ValueError):
    """The kernel or its data are at fault: the command's exit status 1, or the kernel's own compiler refuses it."""


class UsageError(HeadstartError, TypeError):
    """The call is at fault: the command's exit status 2, or arguments that do not match the kernel."""


class DeviceError(HeadstartError, RuntimeError):
    """The device or this machine is not capable: the command's exit status 3."""


class HeadstartBug(HeadstartError, RuntimeError):
    """A bug in Headstart: the command's exit status 4, or an unknown one."""


class CommandMissing(DeviceError):
    """The `headstart` command is neither where the package was installed nor on the path."""


class CacheError(HeadstartError, OSError):
    """The folder of answers cannot be used: it is read-only, or for another GPU."""
