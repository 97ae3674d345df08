"""PyTorch beside Headstart's kernels: reads paths of workloads (lab/src/manifest.rs says how they are
written), one a line, and answers each with a line of JSON: name, times in nanoseconds, versions.

Embedding bags go to `torch.nn.functional.embedding_bag`, sparse products to cuSPARSE through `torch.mv` of a CSR
tensor, moves to `torch.index_select`; `copy` measures what a plain copy reaches. Data, precision and the state of the
L2 cache are those of the workload: `flushed` reads a buffer of ten times the cache before each launch, which also
hides what the host takes to launch. Times are those of CUDA events around the call.
"""

import ctypes
import json
import sys

import torch

DEVICE = "cuda"
TYPES = {
    "i32": torch.int32,
    "i64": torch.int64,
    "f16": torch.float16,
    "f32": torch.float32,
    "f64": torch.float64,
}
# Elements that are made at once: patterns are computed in 64 bits.
CHUNK = 1 << 26


def shifted(bits, by):
    """A shift to the right that brings in zeros."""
    return (bits >> by) & ((1 << (64 - by)) - 1)


def wrapped(number):
    """A number of 64 bits as a signed one."""
    number &= (1 << 64) - 1
    return number - (1 << 64) if number >> 63 else number


def splitmix64(index, seed):
    z = (index + 1) * wrapped(0x9E3779B97F4A7C15) + wrapped(seed)
    z = (z ^ shifted(z, 30)) * wrapped(0xBF58476D1CE4E5B9)
    z = (z ^ shifted(z, 27)) * wrapped(0x94D049BB133111EB)
    return z ^ shifted(z, 31)


def below(index, bound, seed):
    bits = splitmix64(index, seed)
    if bound & (bound - 1) == 0:
        return bits & (bound - 1)
    # Without a sign: what is left of twice the half, and the lowest bit.
    return (shifted(bits, 1) % bound * 2 + (bits & 1)) % bound


def contents(element, length, words):
    """A buffer's contents on the GPU."""
    dtype = TYPES[element]
    kind, words = words[0], words[1:]
    if kind == "file":
        with open(words[0], "rb") as file:
            return torch.frombuffer(bytearray(file.read()), dtype=dtype).to(DEVICE)
    result = torch.empty(length, dtype=dtype, device=DEVICE)
    for first in range(0, length, CHUNK):
        part = result[first : first + CHUNK]
        index = torch.arange(first, first + len(part), device=DEVICE, dtype=torch.int64)
        if kind == "fractions":
            values = (shifted(index * 2654435761, 8) & 0xFFFF).to(torch.float64) / 65536 + float(words[0])
        elif kind == "below":
            values = below(index, int(words[0]), int(words[1]))
        elif kind == "steps":
            values = index * wrapped(int(words[1])) + wrapped(int(words[0]))
        elif kind == "constant":
            values = torch.full_like(index, wrapped(int(words[0])))
        else:
            raise ValueError(f"contents `{kind}`")
        part.copy_(values)
    return result


class Workload:
    def __init__(self, path):
        self.settings, self.buffers, self.scalars, self.outputs = {}, {}, {}, {}
        self.cache, self.rounds, self.answer, self.bytes = "flushed", 9, None, 0
        for line in open(path):
            word, *rest = line.split()
            if word == "kernel":
                self.kernel = rest[0]
            elif word == "set":
                self.settings[rest[0]] = rest[1]
            elif word == "buffer":
                self.buffers[rest[0]] = contents(rest[1], int(rest[2]), rest[3:])
            elif word == "scalar":
                self.scalars[rest[0]] = int(rest[1])
            elif word == "output":
                self.outputs[rest[0]] = (TYPES[rest[1]], int(rest[2]))
            elif word == "cache":
                self.cache = rest[0]
            elif word == "rounds":
                self.rounds = int(rest[0])
            elif word == "bytes":
                self.bytes = int(rest[0])
            elif word == "answer":
                self.answer = rest[0]


def call(workload):
    """What is timed, and its name."""
    buffers = workload.buffers
    if workload.kernel == "embedding-bag":
        dim = int(workload.settings["dim"])
        table = buffers["table"].view(-1, dim)
        mode, indices, offsets = workload.settings["mode"], buffers["indices"], buffers["offsets"]

        def run():
            return torch.nn.functional.embedding_bag(
                indices, table, offsets, mode=mode, include_last_offset=True
            )

        return run, "PyTorch embedding_bag"
    if workload.kernel in ("spmv", "spmv-blocks"):
        rows = workload.outputs["y"][1]
        matrix = torch.sparse_csr_tensor(
            buffers["starts"], buffers["columns"], buffers["entries"], size=(rows, rows), check_invariants=False
        )
        return lambda: torch.mv(matrix, buffers["x"]), "cuSPARSE through torch.mv"
    if workload.kernel == "index-select":
        dtype, length = workload.outputs["result"]
        result = torch.empty(length, dtype=dtype, device=DEVICE)
        source, indices = buffers["source"], buffers["indices"]
        return lambda: torch.index_select(source, 0, indices, out=result), "PyTorch index_select"
    if workload.kernel == "copy":
        source = torch.zeros(workload.bytes // 4, dtype=torch.float32, device=DEVICE)
        result = torch.empty_like(source)
        return lambda: result.copy_(source), "PyTorch copy_"
    raise ValueError(f"PyTorch has nothing for `{workload.kernel}`")


def measure(path):
    workload = Workload(path)
    run, name = call(workload)
    flush = torch.zeros(160 << 20, dtype=torch.int32, device=DEVICE)
    for _ in range(3):
        result = run()
    torch.cuda.synchronize()
    if workload.answer and workload.kernel != "copy":
        found = result.contiguous().cpu()
        with open(workload.answer, "wb") as file:
            file.write(ctypes.string_at(found.data_ptr(), found.numel() * found.element_size()))
    times = []
    for _ in range(workload.rounds):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        if workload.cache == "flushed":
            flush.sum()
        start.record()
        run()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) * 1e6)
    return {"name": name, "times_ns": times, "note": f"PyTorch {torch.__version__}, CUDA {torch.version.cuda}"}


def main():
    for line in sys.stdin:
        try:
            answer = measure(line.strip())
        except Exception as error:  # Whatever it is, the next workload is another one.
            answer = {"error": " ".join(f"{type(error).__name__}: {error}".split())}
        torch.cuda.empty_cache()
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
