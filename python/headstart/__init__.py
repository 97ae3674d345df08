"""Headstart: should this GPU kernel prefetch, how, how far ahead, and how much does it gain?

`advise` reports on a kernel of Triton, Numba or CuPy, on CUDA C or PTX, without a GPU. `install` watches all Triton kernels
as they are launched, `tuned` one kernel of Triton, Numba or CuPy; both launch better kernels in their place.

Nothing prints: warnings go through `warnings`, events to the logger `headstart`.
"""

from __future__ import annotations

from headstart._advise import advise
from headstart._answers import left_alone, reports
from headstart._command import command
from headstart._trace import import_trace
from headstart._tuned import install, tuned, uninstall
from headstart.cache import Answer, Cache
from headstart.data import Pattern, indices, shape
from headstart.errors import (
    CacheError,
    CommandMissing,
    DeviceError,
    HeadstartBug,
    HeadstartError,
    KernelError,
    UsageError,
)
from headstart.report import Choice, Report, Step

__version__ = "0.1.0"

__all__ = [
    "Answer",
    "Cache",
    "CacheError",
    "Choice",
    "CommandMissing",
    "DeviceError",
    "HeadstartBug",
    "HeadstartError",
    "KernelError",
    "Pattern",
    "Report",
    "Step",
    "UsageError",
    "advise",
    "command",
    "import_trace",
    "indices",
    "install",
    "left_alone",
    "reports",
    "shape",
    "tuned",
    "uninstall",
]
