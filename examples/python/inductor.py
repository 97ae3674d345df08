"""`torch.compile` with `headstart.install`: an embedding bag as Inductor writes it, before and after. Needs a GPU."""

from __future__ import annotations

import logging

import torch
import triton.testing

import headstart


def bags(table: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
    """Sums of rows, a bag of 64 each."""
    return table[indices].sum(dim=1)


def main() -> None:
    logging.basicConfig(level=logging.WARNING)
    logging.getLogger("headstart").setLevel(logging.INFO)
    table = torch.randn(200_000, 128, device="cuda")
    indices = torch.randint(0, len(table), (256, 64), device="cuda", dtype=torch.int32)
    plain = torch.compile(bags)
    expected = plain(table, indices)
    before = triton.testing.do_bench(lambda: plain(table, indices), return_mode="median")
    torch._dynamo.reset()
    headstart.install(mode="now", budget=20)
    tuned = torch.compile(bags)
    tuned(table, indices)
    same = torch.equal(tuned(table, indices), expected)
    after = triton.testing.do_bench(lambda: tuned(table, indices), return_mode="median")
    print(
        f"Inductor: {1000 * before:.1f} µs before, {1000 * after:.1f} µs after, bits {'the same' if same else 'DIFFER'}"
    )
    for report in headstart.reports():
        print(f"  {report.name}: {report.verdict}, plan {report.plan}, {report.speedup:.2f}×")


if __name__ == "__main__":
    main()
