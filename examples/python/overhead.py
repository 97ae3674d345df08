"""What a decorated launch takes longer than Triton's own: `python overhead.py`. Needs a GPU.

The kernel has five arguments and next to nothing to do. The better kernel is the original's own PTX, resting on the ends and
the distance of two tensors: what is looked at for each launch is as much as for a kernel that was tuned.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections import defaultdict

import torch
import triton
from headstart.cache import Answer
from kernels import gather_reduce

import headstart
from headstart import _hook


def main() -> None:
    n, values = 128, 1024
    indices = torch.zeros(n, dtype=torch.int32, device="cuda")
    data, out = torch.zeros(values, device="cuda"), torch.zeros(n, device="cuda")

    def run() -> None:
        gather_reduce[(1,)](indices, data, out, n, 2, BLOCK=128)

    def series() -> float:
        """Microseconds of the host per launch."""
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(200):
            run()
        return (time.perf_counter() - start) * 5e3

    def search(launch, device, *_):
        facts = ("group 128 1 1", f"ends 1 0 {values} 4", f"ends 0 0 {n} 4", "apart 1 0 2 0")
        return Answer(launch.kernel, device, "unroll:2", 2.0, launch.ptx, facts, "", "")

    def nothing(launch, device, *_):
        return Answer(launch.kernel, device, None, 1.0, None, (), "", "")

    print(f"{torch.cuda.get_device_name()}, Triton {triton.__version__}, PyTorch {torch.__version__}")
    cases = {"Triton's own": None, "tuned": search, "nothing to gain": nothing}
    # Each case has compiled kernels of its own, so that series of one and the other alternate.
    compiled = {}
    for name, answer in cases.items():
        if answer is not None:
            _hook.search = answer
            headstart.install(mode="now", cache=tempfile.mkdtemp())
        gather_reduce.device_caches = defaultdict(gather_reduce.create_binder)
        run()
        compiled[name] = gather_reduce.device_caches
    found: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(200):
        for name, caches in compiled.items():
            gather_reduce.device_caches = caches
            found[name].append(series())
    own = statistics.median(found["Triton's own"])
    for name, times in found.items():
        middle = statistics.median(times)
        print(f"{name}: {middle:.2f} µs a launch ({middle - own:+.2f} µs), at least {min(times):.2f} µs")


if __name__ == "__main__":
    main()
