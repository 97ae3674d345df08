"""Asks about each of the four kernels without a GPU, and prints the reports: `python advise.py [DEVICE]`."""

from __future__ import annotations

import sys

from kernels import embedding_bags, gathers, paged, sparse

import headstart


def main() -> None:
    device = sys.argv[1] if len(sys.argv) > 1 else "sim:h200"
    launches = [
        embedding_bags(132, 200_000),
        gathers(132 * 128, 1 << 24),
        sparse(132, 1 << 22),
        paged(132, 16_384),
    ]
    for launch in launches:
        report = headstart.advise(
            launch.kernel, grid=launch.grid, args=launch.args, device=device, **launch.constants
        )
        print(report, end="\n\n")


if __name__ == "__main__":
    main()
