"""What can go wrong, each as an exception that says whose fault it is and what would be accepted."""

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
    """Any refusal of Headstart's."""


class KernelError(HeadstartError, ValueError):
    """The kernel or its data is at fault: the command's exit status 1, or the kernel's own compiler refuses it."""


class UsageError(HeadstartError, TypeError):
    """The call is at fault: the command's exit status 2, or arguments that do not suit the kernel."""


class DeviceError(HeadstartError, RuntimeError):
    """The device or this machine cannot: the command's exit status 3."""


class HeadstartBug(HeadstartError, RuntimeError):
    """A bug of Headstart's: the command's exit status 4, or one that it does not have."""


class CommandMissing(DeviceError):
    """The `headstart` command is not where the package was installed, nor on the path."""


class CacheError(HeadstartError, OSError):
    """The folder of answers cannot be used: it is read-only, or for another GPU."""
