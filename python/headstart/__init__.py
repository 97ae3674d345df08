"""Headstart: should this GPU kernel prefetch, how, how far ahead, and what does that gain?

`advise` reports on a kernel of Triton's, Numba's or CuPy's, on CUDA C or PTX, without a GPU. `install` looks at all of Triton's
kernels as they are launched, `tuned` at one of Triton's, Numba's or CuPy's, and better ones are launched in their place.

Nothing prints: warnings go through `warnings`, what happens is logged to the logger `headstart`.
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
