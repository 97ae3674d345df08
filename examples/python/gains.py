"""The four kernels on the GPU: Triton's `num_stages` 1 to 4, and the same kernels with `headstart.tuned`.

    python gains.py [--budget SECONDS] [--only NAME]

Prints times in microseconds (median of Triton's `do_bench`, caches flushed), and whether the bits of the outputs are the same.
"""

from __future__ import annotations

import argparse
import logging
import time

import kernels
import torch
import triton
import triton.testing

import headstart

#: As in inference, with a few hundred requests at once; and as in training.
LAUNCHES = {
    "embedding bag, 512 bags": lambda: kernels.embedding_bags(512, 200_000, mean=64),
    "gather-reduce, 16,384 items": lambda: kernels.gathers(16_384, 1 << 24, count=64),
    "SpMV, 512 rows": lambda: kernels.sparse(512, 1 << 22, mean=4096),
    "paged scores, 128 sequences": lambda: kernels.paged(128, 16_384),
    "embedding bag, 8,192 bags": lambda: kernels.embedding_bags(8192, 200_000, mean=64),
    "gather-reduce, 262,144 items": lambda: kernels.gathers(262_144, 1 << 24, count=64),
    "SpMV, 16,384 rows": lambda: kernels.sparse(16_384, 1 << 22),
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--budget", type=float, default=30.0)
    parser.add_argument("--only")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    if options.verbose:
        logging.basicConfig(level=logging.INFO)
    print(f"{torch.cuda.get_device_name()}, Triton {triton.__version__}, PyTorch {torch.__version__}")
    for name, make in LAUNCHES.items():
        if options.only is None or name.startswith(options.only):
            show(name, make(), options.budget)


def show(name: str, launch: kernels.Launch, budget: float) -> None:
    args = [torch.from_numpy(own).cuda() if hasattr(own, "shape") else own for own in launch.args]

    def run(**extra: int) -> None:
        launch.kernel[launch.grid](*args, **launch.constants, **extra)

    def timed(**extra: int) -> float:
        return 1000 * triton.testing.do_bench(lambda: run(**extra), return_mode="median")

    stages = {count: timed(num_stages=count) for count in (1, 2, 3, 4)}
    run()
    plain = args[launch.output].clone()
    close = torch.allclose(plain.cpu(), torch.from_numpy(launch.expected), atol=1e-4)
    # Compiled kernels that were launched before are left as they are: the tuned ones are compiled anew.
    launch.kernel.device_caches.clear()
    headstart.tuned(launch.kernel, budget=budget)
    start = time.monotonic()
    run()
    took = time.monotonic() - start
    args[launch.output].zero_()
    run()
    same = torch.equal(args[launch.output], plain)
    tuned = timed()
    found = headstart.reports(launch.kernel.__name__)
    plan = found[-1].plan if found else None
    shown = ", ".join(f"{count}: {own:.1f}" for count, own in stages.items())
    print(
        f"{name}: num_stages {shown} µs; tuned {tuned:.1f} µs, {min(stages.values()) / tuned:.2f}× the best of them; "
        f"bits {'the same' if same else 'DIFFER'}, reference {'met' if close else 'NOT MET'}; "
        f"tuned in {took:.0f} s; plan {plan}",
        flush=True,
    )
    headstart.uninstall()
    launch.kernel.device_caches.clear()


if __name__ == "__main__":
    main()
