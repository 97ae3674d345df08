"""What a decorated launch takes longer on the host than Triton's own.

    python overhead.py            whole launches, on a GPU
    python overhead.py --driver   the launcher alone, over a driver that does nothing; needs PyTorch and a C compiler, no GPU

The kernel has five arguments and next to nothing to do. The better kernel is the original's own PTX, resting on the ends and
the distance of two tensors: what is looked at for each launch is as much as for a kernel that was tuned.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import torch
import triton
from headstart.cache import Answer
from kernels import gather_reduce

import headstart
from headstart import _hook, _launches

N, VALUES = 128, 1024


def search(launch, device, *_):
    facts = ("group 128 1 1", f"ends 1 0 {VALUES} 4", f"ends 0 0 {N} 4", "apart 1 0 2 0")
    return Answer(launch.kernel, device, "unroll:2", 2.0, launch.ptx, facts, "", "")


def nothing(launch, device, *_):
    return Answer(launch.kernel, device, None, 1.0, None, (), "", "")


#: What is found for the kernel; nobody looks at Triton's own.
CASES = {"Triton's own": None, "tuned": search, "nothing to gain": nothing}


def looked_at(answer: Callable[..., Answer] | None) -> None:
    """What is compiled from now on gets this answer."""
    if answer is not None:
        _hook.search = answer
        headstart.install(mode="now", cache=tempfile.mkdtemp())


def compare(series: Callable[[str], float], rounds: int) -> None:
    """Prints the median of each case; series of one and the other alternate."""
    found: dict[str, list[float]] = {name: [] for name in CASES}
    for _ in range(rounds):
        for name in CASES:
            found[name].append(series(name))
    own = statistics.median(found["Triton's own"])
    for name, times in found.items():
        middle = statistics.median(times)
        print(f"{name}: {middle:.2f} µs a launch ({middle - own:+.2f} µs), at least {min(times):.2f} µs")


def on_a_gpu() -> None:
    indices = torch.zeros(N, dtype=torch.int32, device="cuda")
    data, out = torch.zeros(VALUES, device="cuda"), torch.zeros(N, device="cuda")
    print(f"{torch.cuda.get_device_name()}, Triton {triton.__version__}, PyTorch {torch.__version__}")
    # Each case has compiled kernels of its own.
    compiled = {}

    def run() -> None:
        gather_reduce[(1,)](indices, data, out, N, 2, BLOCK=128)

    def series(name: str) -> float:
        """Microseconds of the host per launch."""
        gather_reduce.device_caches = compiled[name]
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(200):
            run()
        return (time.perf_counter() - start) * 5e3

    for name, answer in CASES.items():
        looked_at(answer)
        gather_reduce.device_caches = defaultdict(gather_reduce.create_binder)
        run()
        compiled[name] = gather_reduce.device_caches
    compare(series, 200)


DRIVER = """
int cuCtxGetCurrent(void **c) { *c = (void *)1; return 0; }
int cuCtxSetCurrent(void *c) { return 0; }
int cuDeviceGet(int *d, int n) { *d = n; return 0; }
int cuDevicePrimaryCtxRetain(void **c, int d) { *c = (void *)1; return 0; }
int cuGetErrorString(int e, const char **s) { *s = "error"; return 0; }
int cuPointerGetAttribute(void *o, int a, unsigned long long p) { *(unsigned long long *)o = p; return 0; }
int cuFuncSetAttribute(void *f, int a, int v) { return 0; }
int cuLaunchKernelEx(const void *c, void *f, void **p, void **e) { return 0; }
"""


def over_a_driver() -> None:
    from triton.backends.compiler import GPUTarget
    from triton.backends.nvidia.driver import CudaLauncher
    from triton.compiler import ASTSource

    if "TRITON_LIBCUDA_PATH" not in os.environ:
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "driver.c").write_text(DRIVER)
            words = ["cc", "-O2", "-shared", "-fPIC", "-w", "-o", "libcuda.so.1", "driver.c"]
            subprocess.run(words, cwd=folder, check=True)
            environment = {
                "TRITON_LIBCUDA_PATH": folder,
                "LD_LIBRARY_PATH": folder,
                "TRITON_CACHE_DIR": folder,
            }
            subprocess.run([sys.executable, *sys.argv], check=True, env=os.environ | environment)
        return
    torch.cuda.current_device = lambda: 0
    torch.cuda.get_device_name = lambda _: "a GPU"
    torch.cuda.is_current_stream_capturing = lambda: False
    # Tensors of the host stand for those of a GPU.
    _launches.DEVICES = ("cuda", "cpu")
    _hook.Trial.new = lambda: None
    _hook.loaded = lambda compiled, ptx, device: (2, None)
    print(f"no GPU, Triton {triton.__version__}, PyTorch {torch.__version__}")
    indices, data, out = torch.zeros(N, dtype=torch.int32), torch.zeros(VALUES), torch.zeros(N)
    types = {
        "indices": "*i32",
        "values": "*fp32",
        "out": "*fp32",
        "n": "i32",
        "count": "i32",
        "BLOCK": "constexpr",
    }
    source = ASTSource(fn=gather_reduce, signature=types, constexprs={"BLOCK": 128})
    made = triton.compile(source, target=GPUTarget("cuda", 90, 32))

    def init(self) -> None:
        if self.module is None:
            self._run, self.module, self.function = CudaLauncher(self.src, self.metadata), 1, 1

    type(made)._init_handles = init
    heads = (1, 1, 1, 0, 1, made.packed_metadata, None, None, None)
    arguments = (*heads, indices, data, out, N, 2, 128)
    launchers = {}
    for name, answer in CASES.items():
        looked_at(answer)
        made.module = made._run = None
        launchers[name] = made.run
        made.run(*arguments)

    def series(name: str) -> float:
        launch = launchers[name]
        start = time.perf_counter()
        for _ in range(10_000):
            launch(*arguments)
        return (time.perf_counter() - start) * 1e2

    compare(series, 30)


if __name__ == "__main__":
    over_a_driver() if "--driver" in sys.argv[1:] else on_a_gpu()
