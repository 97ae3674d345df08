"""An embedding bag in JAX: XLA writes the kernel.

python jax_bag.py [BAGS [ITEMS [ROUNDS]]]
"""

import sys
import time

import jax
import jax.numpy as jnp


@jax.jit
def bag(indices, table):
    return jnp.take(table, indices, axis=0, mode="clip").sum(axis=1)


def main(bags: int = 64, items: int = 256, rounds: int = 200) -> None:
    rows, width = 200_000, 128
    indices = jax.random.randint(jax.random.key(7), (bags, items), 0, rows)
    table = (jnp.arange(rows * width, dtype=jnp.float32) % 97).reshape(rows, width)
    sums = bag(indices, table).block_until_ready()
    start = time.perf_counter()
    for _ in range(rounds):
        sums = bag(indices, table)
    sums.block_until_ready()
    took = time.perf_counter() - start
    print(f"sum {float(sums.sum()):.1f}")
    print(f"{rounds} rounds in {took * 1e3:.2f} ms", file=sys.stderr)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
