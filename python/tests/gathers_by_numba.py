"""A program of Numba's, run over the test driver: a gather, launched and looked at. Prints what it found as JSON.

python gathers_by_numba.py MODE [ROUNDS [lto]]

With `lto` the kernel is as nvJitLink has it, which optimizes when it links, and gives the text of all, with a zero at its end.
"""

from __future__ import annotations

import json
import logging
import sys
import warnings

import numpy as np
from numba import cuda
from numba.cuda.dispatcher import _Kernel

import headstart
from headstart import _numba_hook

warnings.simplefilter("ignore")
GROUPS, SIZE, STEPS, VALUES = 4, 32, 32, 1 << 17

launched: list[object] = []
said: list[str] = []


def launch(self, *words) -> None:
    """Numba's own, below what looks at launches."""
    launched.append(self)
    own(self, *words)


own = _Kernel.launch
_Kernel.launch = launch


def as_linked(self, kernel, *words) -> None:
    library = kernel._codelibrary
    (text,) = library.get_asm_strs()
    library._lto, library.get_lto_ptx = True, lambda: text + "\0"
    library.get_asm_strs = None
    launcher(self, kernel, *words)


launcher = _numba_hook.NumbaLauncher.__init__
if sys.argv[3:] == ["lto"]:
    _numba_hook.NumbaLauncher.__init__ = as_linked


class Says(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        said.append(record.getMessage())


logging.getLogger("headstart").addHandler(Says())
logging.getLogger("headstart").setLevel(logging.INFO)


@headstart.tuned(mode=sys.argv[1])
@cuda.jit
def gather(indices, values, out, count, scale):
    item = cuda.grid(1)
    total = np.float32(0)
    step = 0
    while step < count:
        total += values[indices[step, item]]
        step += 1
    out[item] = total * scale


def main(rounds: int) -> None:
    random = np.random.default_rng(1)
    indices = random.integers(0, VALUES, (STEPS, GROUPS * SIZE), dtype=np.int32)
    values = random.random(VALUES, dtype=np.float32)
    expected = np.zeros(GROUPS * SIZE, np.float32)
    for step in range(STEPS):
        expected += values[indices[step]]
    on_device = cuda.to_device(indices), cuda.to_device(values)
    out = cuda.device_array(GROUPS * SIZE, np.float32)
    same = []
    for number in range(rounds):
        # The scale is a float, on which nothing depends.
        scale = np.float32(1 << number % 4)
        gather[GROUPS, SIZE](*on_device, out, STEPS, scale)
        same.append(bool((out.copy_to_host() == expected * scale).all()))
    (original,) = gather.overloads.values()
    better = [kernel is not original for kernel in launched]
    del launched[:]
    # Memory that two arrays share is apart from nothing; what lies on the host is copied by Numba; other work-groups; a trial.
    shared = cuda.to_device(np.concatenate([values, np.zeros(GROUPS * SIZE, np.float32)]))
    gather[GROUPS, SIZE](on_device[0], shared, shared[VALUES:], STEPS, np.float32(1))
    gather[GROUPS, SIZE](indices, values, np.zeros(GROUPS * SIZE, np.float32), STEPS, np.float32(1))
    gather[GROUPS * 2, SIZE // 2](*on_device, out, STEPS, np.float32(1))
    same.append(bool((out.copy_to_host() == expected).all()))
    with headstart.left_alone():
        gather[GROUPS, SIZE](*on_device, out, STEPS, np.float32(1))
    headstart.uninstall()
    gather[GROUPS, SIZE](*on_device, out, STEPS, np.float32(1))
    others = [kernel is not original for kernel in launched]
    assert _Kernel.launch is launch and not _numba_hook._state.marked
    found = headstart.reports("gather")
    report = [found[-1].plan, found[-1].speedup, found[-1].kernel is gather] if found else None
    print(json.dumps({"same": same, "better": better, "others": others, "report": report, "said": said}))


main(int(sys.argv[2]) if len(sys.argv) > 2 else 2)
