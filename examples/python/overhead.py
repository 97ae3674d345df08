"""What a launch that is looked at takes longer on the host: of Triton's, Inductor's, Numba's and CuPy's kernels.

    python overhead.py [PART …]   whole launches, on a GPU; PARTs are triton, inductor, numba and cupy, without any all of them
    python overhead.py --driver   Triton's launcher alone, over a driver that does nothing; needs PyTorch and a C compiler, no GPU

The kernel has five arguments and next to nothing to do. The better kernel is the original's own PTX, resting on the ends and
the distance of two tensors: what is looked at for each launch is as much as for a kernel that was tuned.
"""

from __future__ import annotations

import logging
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

from headstart.cache import Answer

import headstart
from headstart import _answers, _hook, _launches

N, VALUES = 128, 1024


def search(launch, device, *_):
    return found(launch, device, 0, 1, 2)


def found(launch, device, indices: int, values: int, out: int) -> Answer:
    """An answer that rests on the memory of these parameters."""
    facts = (
        "group 128 1 1",
        f"ends {values} 0 {VALUES} 4",
        f"ends {indices} 0 {N} 4",
        f"apart {values} 0 {out} 0",
    )
    return Answer(launch.kernel, device, "unroll:2", 2.0, launch.ptx, facts, "", "")


def nothing(launch, device, *_):
    return Answer(launch.kernel, device, None, 1.0, None, (), "", "")


#: What is found for the kernel; nobody looks at Triton's own.
CASES = {"Triton's own": None, "tuned": search, "nothing to gain": nothing}


asked: list[str] = []
"""Kernels that an answer was looked for."""


def answering(answer: Callable[..., Answer]) -> None:
    """Searches end at once, with this answer."""

    def search(launch, *words) -> Answer:
        asked.append(launch.kernel)
        return answer(launch, *words)

    asked.clear()
    _answers.search = search
    # The better kernel is as fast as the original, and is launched all the same.
    _answers.LIMIT = float("inf")


def looked_at(answer: Callable[..., Answer] | None) -> None:
    """What is compiled from now on gets this answer."""
    if answer is not None:
        answering(answer)
        headstart.install(mode="now", cache=tempfile.mkdtemp())


def was_looked_at(name: str) -> None:
    """Warns if nobody asked for an answer."""
    if not asked:
        print(f"{name}: no launch was looked at, and the times are those of the original")


def compare(series: Callable[[str], float], rounds: int, cases: Sequence[str] = tuple(CASES)) -> None:
    """Prints the median of each case, beside the first; series of one and the other alternate."""
    found: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(rounds):
        for name in cases:
            found[name].append(series(name))
    own = statistics.median(found[cases[0]])
    for name, times in found.items():
        middle = statistics.median(times)
        print(f"{name}: {middle:.2f} µs a launch ({middle - own:+.2f} µs), at least {min(times):.2f} µs")


def on_a_gpu(parts: Sequence[str]) -> None:
    for name, part in PARTS.items():
        if parts and name not in parts:
            continue
        try:
            part()
        except ImportError as missing:
            print(f"{name}: {missing}")
        finally:
            headstart.uninstall()


def of_triton() -> None:
    """Launches by Triton's launcher."""
    import torch
    import triton
    from kernels import gather_reduce

    print(f"{torch.cuda.get_device_name()}, Triton {triton.__version__}, PyTorch {torch.__version__}")
    indices = torch.zeros(N, dtype=torch.int32, device="cuda")
    data, out = torch.zeros(VALUES, device="cuda"), torch.zeros(N, device="cuda")
    # Each case has compiled kernels of its own.
    compiled = {}

    def run() -> None:
        gather_reduce[(1,)](indices, data, out, N, 2, BLOCK=128)

    def series(name: str) -> float:
        """Microseconds of the host per launch."""
        gather_reduce.device_caches = compiled[name]
        return timed(run, torch.cuda.synchronize)

    for name, answer in CASES.items():
        looked_at(answer)
        gather_reduce.device_caches = defaultdict(gather_reduce.create_binder)
        run()
        if answer is not None:
            was_looked_at(name)
        compiled[name] = gather_reduce.device_caches
    compare(series, 200)


def timed(run: Callable[[], object], synchronize: Callable[[], object]) -> float:
    """Microseconds of the host per launch, of 200 that the GPU has room for."""
    synchronize()
    start = time.perf_counter()
    for _ in range(200):
        run()
    return (time.perf_counter() - start) * 5e3


def of_inductor() -> None:
    """Calls of a compiled function with one kernel: what is called around it costs the same in all cases."""
    import torch

    indices = torch.zeros(N, dtype=torch.int64, device="cuda")
    data = torch.zeros(VALUES, device="cuda")
    compiled = {}
    for name, answer in (("Inductor's own", None), ("with install(), nothing to gain", nothing)):
        looked_at(answer)
        # Another constant: Inductor would take the kernel that it has.
        constant = len(compiled) + 1.5

        def gathers(table: torch.Tensor, index: torch.Tensor, constant: float = constant) -> torch.Tensor:
            return table[index] + constant

        torch._dynamo.reset()
        compiled[name] = torch.compile(gathers)
        compiled[name](data, indices)
        if answer is not None:
            was_looked_at(name)

    def series(name: str) -> float:
        return timed(lambda: compiled[name](data, indices), torch.cuda.synchronize)

    compare(series, 200, tuple(compiled))


def of_numba() -> None:
    """The same kernel as one of Numba's: seven parameters for an array."""
    import numpy
    from numba import cuda, int32

    def gather(indices, values, out, n, count):
        item = cuda.grid(1)
        if item < n:
            total = values[0] - values[0]
            for step in range(int32(count)):
                total += values[indices[item] + step]
            out[item] = total

    arrays = [
        cuda.to_device(numpy.zeros(length, kind))
        for length, kind in ((N, numpy.int32), (VALUES, numpy.float32), (N, numpy.float32))
    ]
    kernels = {"Numba's own": cuda.jit(gather)}
    kernels["Numba's own"][1, 128](*arrays, N, 2)
    own = type(gather)(gather.__code__, gather.__globals__, "gather", None, gather.__closure__)
    answering(lambda launch, device, *_: found(launch, device, 4, 11, 18))
    kernels["tuned, of Numba's"] = headstart.tuned(cuda.jit(own), cache=tempfile.mkdtemp())
    for kernel in kernels.values():
        for _ in range(24):
            kernel[1, 128](*arrays, N, 2)
    was_looked_at("Numba")
    configured = {name: kernel[1, 128] for name, kernel in kernels.items()}

    def series(name: str) -> float:
        return timed(lambda: configured[name](*arrays, N, 2), cuda.synchronize)

    compare(series, 100, tuple(kernels))


def of_cupy() -> None:
    """The same kernel as one of CuPy's."""
    import cupy

    source = """
    extern "C" __global__ void gather(const int* indices, const float* values, float* out, int n, int count) {
        int item = blockIdx.x * blockDim.x + threadIdx.x;
        float total = 0;
        for (int step = 0; step < count; ++step) total += values[indices[item] + step];
        if (item < n) out[item] = total;
    }
    """
    arrays = cupy.zeros(N, cupy.int32), cupy.zeros(VALUES, cupy.float32), cupy.zeros(N, cupy.float32)
    arguments = (*arrays, cupy.int32(N), cupy.int32(2))
    kernels = {"CuPy's own": cupy.RawKernel(source, "gather")}
    answering(search)
    kernels["tuned, of CuPy's"] = headstart.tuned(cupy.RawKernel(source, "gather"), cache=tempfile.mkdtemp())
    for kernel in kernels.values():
        for _ in range(24):
            kernel((1,), (128,), arguments)
    was_looked_at("CuPy")

    def series(name: str) -> float:
        return timed(lambda: kernels[name]((1,), (128,), arguments), cupy.cuda.runtime.deviceSynchronize)

    compare(series, 100, tuple(kernels))


PARTS = {"triton": of_triton, "inductor": of_inductor, "numba": of_numba, "cupy": of_cupy}

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
    import torch
    import triton
    from kernels import gather_reduce
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
    # Why a kernel is left as it is.
    logging.basicConfig()
    logging.getLogger("headstart").setLevel(logging.INFO)
    over_a_driver() if "--driver" in sys.argv[1:] else on_a_gpu(sys.argv[1:])
