"""Is there enough to gain? What `torch.compile` makes of common operators, as it is and with `headstart.install`. Needs a GPU.

    python operators.py [--budget SECONDS] [--only NAME] [--seconds ALL]

Each operator runs at a size of inference and at one of training. A row has the time of a call on the GPU in microseconds before
and after (median of calls in turns, caches flushed between them), and whether the outputs have the same bits. Kernels that gain
nothing are shown, too, with the reason; `vary` says that the plain kernels do not give the same bits twice. The last line is
the sum over all operators.
"""

from __future__ import annotations

import argparse
import logging
import statistics
import time
import warnings
from collections.abc import Callable

import torch
import torch.nn.functional as nn
import triton

import headstart

Tensor = torch.Tensor
Call = tuple[Callable[..., object], tuple[object, ...]]


def numbers(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(*shape, device="cuda", dtype=dtype)


def indices(below: int, *shape: int) -> Tensor:
    return torch.randint(0, below, shape, device="cuda")


def embedding_bag(bags: int) -> Call:
    return lambda table, rows: table[rows].sum(dim=1), (numbers(200_000, 128), indices(200_000, bags, 64))


def weighted_bag(bags: int) -> Call:
    def bag(table: Tensor, rows: Tensor, weights: Tensor) -> Tensor:
        return (table[rows] * weights[..., None]).sum(dim=1)

    return bag, (numbers(500_000, 64), indices(500_000, bags, 80), numbers(bags, 80))


def embedding(tokens: int) -> Call:
    return lambda table, rows: nn.embedding(rows, table) * 2.0, (
        numbers(50_000, 1024),
        indices(50_000, tokens),
    )


def gather(rows: int) -> Call:
    return lambda values, where: torch.gather(values, 1, where).sum(dim=1), (
        numbers(rows, 1 << 16),
        indices(1 << 16, rows, 512),
    )


def take_along(rows: int) -> Call:
    def chain(first: Tensor, second: Tensor, values: Tensor) -> Tensor:
        return values[second[first]].sum(dim=1)

    return chain, (indices(1 << 20, rows, 256), indices(1 << 22, 1 << 20), numbers(1 << 22))


def scatter_add(rows: int) -> Call:
    def add(where: Tensor, values: Tensor) -> Tensor:
        return torch.zeros(rows, 64, device="cuda").index_add(0, where, values)

    return add, (indices(rows, 8 * rows), numbers(8 * rows, 64))


def index_select(rows: int) -> Call:
    return lambda table, where: torch.index_select(table, 0, where).relu(), (
        numbers(1 << 20, 32),
        indices(1 << 20, rows),
    )


def cross_entropy(rows: int) -> Call:
    return lambda logits, labels: nn.cross_entropy(logits, labels), (
        numbers(rows, 50_257),
        indices(50_257, rows),
    )


def layer_norm(rows: int) -> Call:
    return lambda x, w, b: nn.layer_norm(x, (4096,), w, b), (
        numbers(rows, 4096),
        numbers(4096),
        numbers(4096),
    )


def rms_norm(rows: int) -> Call:
    return lambda x, w: nn.rms_norm(x, (4096,), w), (
        numbers(rows, 4096, dtype=torch.bfloat16),
        numbers(4096, dtype=torch.bfloat16),
    )


def softmax(rows: int) -> Call:
    return lambda x: torch.softmax(x, dim=-1), (numbers(rows, 32_000),)


def masked_softmax(rows: int) -> Call:
    def ragged(x: Tensor, lengths: Tensor) -> Tensor:
        inside = torch.arange(x.shape[1], device="cuda")[None, :] < lengths[:, None]
        return torch.softmax(x.masked_fill(~inside, float("-inf")), dim=-1)

    return ragged, (numbers(rows, 8192), 1 + indices(8191, rows))


def log_sum(rows: int) -> Call:
    return lambda x: torch.logsumexp(x, dim=-1), (numbers(rows, 128_256, dtype=torch.bfloat16),)


def swiglu(rows: int) -> Call:
    return lambda x, y: nn.silu(x) * y, (
        numbers(rows, 11_008, dtype=torch.bfloat16),
        numbers(rows, 11_008, dtype=torch.bfloat16),
    )


def mean_columns(rows: int) -> Call:
    return lambda x: x.mean(dim=0), (numbers(rows, 1024),)


def variance(rows: int) -> Call:
    return lambda x: torch.var_mean(x, dim=1), (numbers(rows, 65_536),)


def argmax(rows: int) -> Call:
    return lambda x: torch.argmax(x, dim=-1), (numbers(rows, 128_256),)


def cumulative(rows: int) -> Call:
    return lambda x: torch.cumsum(x, dim=-1), (numbers(rows, 4096),)


def rotary(tokens: int) -> Call:
    def rotate(x: Tensor, positions: Tensor, table: Tensor) -> Tensor:
        both = table[positions][:, None, :]
        cos, sin = both[..., :64], both[..., 64:]
        first, second = x[..., :64], x[..., 64:]
        return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)

    return rotate, (numbers(tokens, 32, 128), indices(131_072, tokens), numbers(131_072, 128))


def paged_scores(sequences: int) -> Call:
    def scores(query: Tensor, pages: Tensor, keys: Tensor) -> Tensor:
        return (keys[pages] * query[:, None, None, :]).sum(dim=-1)

    return scores, (numbers(sequences, 128), indices(16_384, sequences, 256), numbers(16_384, 16, 128))


def neighbours(nodes: int) -> Call:
    return lambda x, edges: x[edges].amax(dim=1), (numbers(1 << 19, 64), indices(1 << 19, nodes, 32))


def top_rows(rows: int) -> Call:
    def score(users: Tensor, items: Tensor, who: Tensor, what: Tensor) -> Tensor:
        return (users[who] * items[what]).sum(dim=-1)

    return score, (numbers(1 << 20, 64), numbers(1 << 20, 64), indices(1 << 20, rows), indices(1 << 20, rows))


#: With a size of inference, and one that fills the GPU.
OPERATORS: dict[Callable[[int], Call], tuple[int, ...]] = {
    embedding_bag: (128, 4096),
    weighted_bag: (64, 2048),
    embedding: (256, 16_384),
    gather: (64, 2048),
    take_along: (128, 8192),
    scatter_add: (4096, 65_536),
    index_select: (2048, 262_144),
    cross_entropy: (16, 2048),
    layer_norm: (32, 8192),
    rms_norm: (32, 8192),
    softmax: (16, 1024),
    masked_softmax: (32, 4096),
    log_sum: (8, 512),
    swiglu: (16, 4096),
    mean_columns: (4096, 65_536),
    variance: (16, 1024),
    argmax: (8, 512),
    cumulative: (64, 8192),
    rotary: (64, 8192),
    paged_scores: (16, 256),
    neighbours: (512, 65_536),
    top_rows: (1024, 262_144),
}


class Timer:
    """Times calls on the GPU: the host is ahead of it, so that what the host takes does not count."""

    def __init__(self) -> None:
        # More than any L2 holds.
        self.flushed = torch.empty(1 << 28, dtype=torch.uint8, device="cuda")

    def __call__(self, call: Callable[[], object], rounds: int = 15) -> list[float]:
        """Microseconds of each call."""
        call()
        events = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(rounds)]
        torch.cuda.synchronize()
        torch.cuda._sleep(20_000_000)
        for start, end in events:
            self.flushed.zero_()
            start.record()
            call()
            end.record()
        torch.cuda.synchronize()
        return [1000 * start.elapsed_time(end) for start, end in events]


class Reasons(logging.Handler):
    """What the package says of kernels that it leaves as they are."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        text = " ".join(record.getMessage().split())
        if text.startswith(("kernel ", "a launch of ")):
            self.found.append(text)


def equal(first: object, second: object) -> bool:
    """Whether two results have the same bits."""
    if first is None and second is None:
        return True
    if isinstance(first, tuple) and isinstance(second, tuple):
        return all(equal(*both) for both in zip(first, second, strict=True))
    assert isinstance(first, Tensor) and isinstance(second, Tensor)
    return torch.equal(_bytes(first), _bytes(second))


def arguments(words: str | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=words, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budget", type=float, default=8.0, help="seconds of a search")
    parser.add_argument("--only", default="", help="those whose names begin with these, commas between")
    parser.add_argument("--seconds", type=float, default=1e9, help="nothing begins after so many")
    return parser.parse_args()


def _bytes(values: Tensor) -> Tensor:
    return values.contiguous().reshape(-1).view(torch.uint8)


class Table:
    """Rows of operators: before, after, bits, and what was found."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.begin = time.monotonic()
        self.before = self.after = self.gaining = 0.0
        self.timed = Timer()
        self.reasons = Reasons()
        logging.getLogger("headstart").setLevel(logging.INFO)
        logging.getLogger("headstart").addHandler(self.reasons)
        warnings.simplefilter("ignore")
        headstart.install(mode="now", budget=options.budget)
        print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, Triton {triton.__version__}")
        print(f"{'operator':22} {'size':>8} {'before':>9} {'after':>9} {'':>7}  bits  kernels")

    def row(self, name: str, size: int, call: Callable[[], object]) -> None:
        """Adds the row of a call that leaves its inputs as they are."""
        if not name.startswith(tuple(self.options.only.split(","))):
            return
        if time.monotonic() - self.begin > self.options.seconds:
            print(f"{name:22} {size:8} not begun: the time is over")
            return
        seen = len(headstart.reports())
        self.reasons.found.clear()
        # The same compiled kernels, so that the same bits are asked for; autotuners try in the first call.
        with headstart.left_alone():
            call()
            expected = call()
            varies = not equal(call(), expected)
        same = equal(call(), expected)
        both: tuple[list[float], list[float]] = ([], [])
        for _ in range(4):
            with headstart.left_alone():
                both[0].extend(self.timed(call))
            both[1].extend(self.timed(call))
        before, after = map(statistics.median, both)
        reports = headstart.reports()[seen:]
        self.before += before
        self.after += after
        self.gaining += before if before / after >= 1.05 else 0.0
        words = [f"{own.name[:28]} {own.speedup:.2f}× {own.plan or own.verdict}" for own in reports]
        words += [] if reports else list(dict.fromkeys(self.reasons.found))
        print(
            f"{name:22} {size:8} {before:9.1f} {after:9.1f} {before / after:6.2f}×  "
            f"{'same' if same else 'vary' if varies else 'OTHER'}  {'; '.join(words) or 'no kernel of its own'}",
            flush=True,
        )

    def end(self) -> None:
        print(
            f"{'all':22} {'':8} {self.before:9.1f} {self.after:9.1f} {self.before / max(self.after, 1e-9):6.2f}×; "
            f"those that gain 5 % or more have {100 * self.gaining / max(self.before, 1e-9):.0f} % of the time"
        )


def main() -> None:
    table = Table(arguments(__doc__))
    for make, sizes in OPERATORS.items():
        for size in sizes:
            if not make.__name__.startswith(tuple(table.options.only.split(","))):
                continue
            torch.manual_seed(1)
            function, args = make(size)
            torch._dynamo.reset()
            compiled = torch.compile(function, dynamic=False)
            table.row(make.__name__, size, lambda compiled=compiled, args=args: compiled(*args))
    table.end()


if __name__ == "__main__":
    main()
