"""PyTorch beside Headstart's kernels: reads paths of workloads (lab/src/manifest.rs says how they are
written), one a line, and answers each with a line of JSON: a list with name, times in nanoseconds and versions for each
way of doing the work. What the Nth of them computed is in the file of the workload's answer, with `.N` behind its name.
An empty list says that PyTorch has nothing for this kernel.

Embedding bags go to `torch.nn.functional.embedding_bag`, sparse products to cuSPARSE through `torch.mv` of a CSR
tensor, moves to `torch.index_select`, `index_copy_` and `index_put_`, searches to `torch.searchsorted`, attention to
`torch.nn.functional.scaled_dot_product_attention`; `copy` measures what a plain copy reaches. Data, precision and the
state of the L2 cache are those of the workload: `flushed` reads a buffer of ten times the cache before each launch.
Times are those of CUDA events around the call; the GPU waits before the first of them for longer than the host takes
to launch.
"""

import ctypes
import json
import sys
from pathlib import Path

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

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
BACKENDS = (
    SDPBackend.CUDNN_ATTENTION,
    SDPBackend.FLASH_ATTENTION,
    SDPBackend.EFFICIENT_ATTENTION,
    SDPBackend.MATH,
)


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
        self.flush = torch.zeros(160 << 20, dtype=torch.int32, device=DEVICE)
        for line in Path(path).read_text().splitlines():
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

    def result(self):
        """Place for the first output, in zeros."""
        dtype, length = next(iter(self.outputs.values()))
        return torch.zeros(length, dtype=dtype, device=DEVICE)


def embedding_bags(workload):
    buffers = workload.buffers
    table = buffers["table"].view(-1, int(workload.settings["dim"]))
    mode, indices, offsets = workload.settings["mode"], buffers["indices"], buffers["offsets"]

    def run():
        return torch.nn.functional.embedding_bag(indices, table, offsets, mode=mode, include_last_offset=True)

    yield "PyTorch embedding_bag", run


def matrix_of(workload, entries, rows):
    buffers = workload.buffers
    return torch.sparse_csr_tensor(
        buffers["starts"], buffers["columns"], entries, size=(rows, rows), check_invariants=False
    )


def products(workload):
    matrix = matrix_of(workload, workload.buffers["entries"], workload.outputs["y"][1])
    yield "cuSPARSE through torch.mv", lambda: torch.mv(matrix, workload.buffers["x"])


def ranks(workload):
    """A step of PageRank is a product with a matrix of ones."""
    columns, count = workload.buffers["columns"], workload.outputs["ranks"][1]
    matrix = matrix_of(workload, torch.ones(len(columns), device=DEVICE), count)
    least = torch.full((count,), 0.15 / count, device=DEVICE)
    given = workload.buffers["given"]
    yield "cuSPARSE through torch.addmv", lambda: torch.addmv(least, matrix, given, alpha=0.85)


def selections(workload):
    result = workload.result()
    source, indices = workload.buffers["source"], workload.buffers["indices"]
    yield "PyTorch index_select", lambda: torch.index_select(source, 0, indices, out=result)


def scatters(workload):
    source, result = workload.buffers["source"], workload.result()
    # It takes indices of 64 bits alone.
    indices = workload.buffers["indices"].long()
    yield "PyTorch index_copy_", lambda: result.index_copy_(0, indices, source)
    yield "PyTorch index_put_", lambda: result.index_put_((indices,), source)


def signed(numbers):
    """Numbers of 32 bits without a sign as signed ones in the same order."""
    return numbers ^ -(1 << 31)


def searches(workload):
    queries = signed(workload.buffers["queries"])
    if workload.kernel == "btree":
        # The leaves are a sorted list, behind the other nodes.
        length = int(workload.settings["root"]) << (4 * (int(workload.settings["levels"]) - 1))
        name, numbers = "PyTorch searchsorted in the leaves", signed(workload.buffers["nodes"][-length:])
    else:
        # The kernel never asks for the last one.
        name, numbers = "PyTorch searchsorted", signed(workload.buffers["sorted"][:-1])
    yield name, lambda: torch.searchsorted(numbers, queries, out_int32=True)


def fastest_backend(workload, run):
    """What computes attention fastest of what can, and its name."""
    found = []
    for backend in BACKENDS:

        def with_it(backend=backend):
            with sdpa_kernel(backend):
                return run()

        try:
            found.append((min(times_of(workload, with_it, 3)), backend.name.split("_")[0], with_it))
        except RuntimeError:  # It cannot do this: PyTorch says so by this exception alone.
            continue
    _, name, fastest = min(found, key=lambda one: one[0])
    return name.capitalize().replace("Cudnn", "cuDNN"), fastest


def attention(workload):
    """Keys and values of a head lie in pages of 16 tokens; PyTorch's attention needs them one after the other."""
    page, dim = 16, 128
    buffers, heads = workload.buffers, workload.scalars["heads"]
    pages = buffers["pages"].view(-1, workload.scalars["longest"])
    sequences, tokens = len(pages), pages.shape[1] * page
    queries = buffers["queries"].view(sequences, heads, 1, dim).half()
    # Where each page of each head lies.
    rows = (pages[:, None, :] * heads + torch.arange(heads, device=DEVICE)[:, None]).flatten()
    is_behind = torch.arange(tokens, device=DEVICE) >= buffers["lengths"][:, None]
    mask = torch.zeros((sequences, 1, 1, tokens), dtype=torch.float16, device=DEVICE)
    mask.masked_fill_(is_behind[:, None, None, :], float("-inf"))

    def gathered(name):
        taken = torch.index_select(buffers[name].view(-1, page * dim), 0, rows)
        return taken.view(sequences, heads, tokens, dim)

    def attend(keys, values):
        return torch.nn.functional.scaled_dot_product_attention(queries, keys, values, attn_mask=mask)

    keys, values = gathered("keys"), gathered("values")
    named = "PyTorch scaled_dot_product_attention"
    backend, run = fastest_backend(workload, lambda: attend(keys, values))
    yield f"{named} ({backend}), keys and values dense already", run
    backend, run = fastest_backend(workload, lambda: attend(gathered("keys"), gathered("values")))
    yield f"{named} ({backend}), pages gathered first", run


def copies(workload):
    source = torch.zeros(workload.bytes // 4, dtype=torch.float32, device=DEVICE)
    result = torch.empty_like(source)
    yield "PyTorch copy_", lambda: result.copy_(source)


# For each kernel what yields names and what is timed.
CALLS = {
    "attention": attention,
    "binary-search": searches,
    "btree": searches,
    "copy": copies,
    "embedding-bag": embedding_bags,
    "index-select": selections,
    "pagerank": ranks,
    "scatter": scatters,
    "scatter-shared": scatters,
    "spmv": products,
    "spmv-blocks": products,
}


def times_of(workload, run, rounds):
    """The times of a call, in nanoseconds."""
    for _ in range(3):
        run()
    times = []
    for _ in range(rounds):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        if workload.cache == "flushed":
            workload.flush.sum()
        torch.cuda._sleep(1_000_000)
        start.record()
        run()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) * 1e6)
    return times


def keep(workload, number, found):
    """Writes what was computed, in the type of the workload."""
    dtype = next(iter(workload.outputs.values()))[0]
    found = found.to(dtype).contiguous().cpu()
    with open(f"{workload.answer}.{number}", "wb") as file:
        file.write(ctypes.string_at(found.data_ptr(), found.numel() * found.element_size()))


def measure(path):
    """Each way's answer; where one fails, so do those behind it."""
    kernel = Path(path).read_text().split()[1]
    if kernel not in CALLS:
        return []
    answers = []
    try:
        workload = Workload(path)
        for number, (name, run) in enumerate(CALLS[kernel](workload)):
            found = run()
            answer = {"name": name, "note": f"PyTorch {torch.__version__}, CUDA {torch.version.cuda}"}
            if found.dtype == torch.float16:
                answer["element"] = "f16"
            if workload.answer:
                keep(workload, number, found)
            answers.append(answer | {"times_ns": times_of(workload, run, workload.rounds)})
    except Exception as error:  # noqa: BLE001  whatever it is, the next workload is another one
        answers.append({"error": " ".join(f"{type(error).__name__}: {error}".split())})
    return answers


def main():
    for line in sys.stdin:
        print(json.dumps(measure(line.strip())), flush=True)
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
