"""Kernels that others wrote: Triton kernels of liger-kernel and flash-linear-attention, as they are and with `headstart.install`.

    pip install liger-kernel==0.8.5 fla-core==0.6.0 einops
    python packages.py [--budget SECONDS] [--only NAME] [--seconds ALL]

The table is that of `operators.py`. Each row is a function of a package at a size of inference (few tokens) and of training.
Needs a GPU.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import torch
from operators import Table, arguments, numbers

HALF = torch.bfloat16
Call = Callable[[], object]


def liger(module: str, name: str, *args: Any) -> Call:
    """The forward pass of one of liger-kernel's functions."""
    function = getattr(importlib.import_module(f"liger_kernel.ops.{module}"), name)
    return lambda: function.apply(*args)


def liger_backward(module: str, name: str, inputs: tuple[torch.Tensor, ...], *rest: Any) -> Call:
    """Forward and backward."""
    function = getattr(importlib.import_module(f"liger_kernel.ops.{module}"), name)
    leaves = [own.detach().requires_grad_() for own in inputs]

    def both() -> object:
        out = function.apply(*leaves, *rest)
        out = out[0] if isinstance(out, tuple) else out
        return torch.autograd.grad(out, leaves, torch.ones_like(out))

    return both


def fla(module: str, name: str, *args: Any, **named: Any) -> Call:
    """A function of flash-linear-attention, without gradients."""
    function = getattr(importlib.import_module(f"fla.{module}"), name)

    def forward() -> object:
        with torch.no_grad():
            return function(*args, **named)

    return forward


def heads(batch: int, steps: int, width: int = 128, count: int = 8) -> torch.Tensor:
    return numbers(batch, steps, count, width, dtype=HALF)


def gate(batch: int, steps: int, *more: int) -> torch.Tensor:
    """Logarithms of decays."""
    return torch.nn.functional.logsigmoid(numbers(batch, steps, 8, *more, dtype=torch.float32))


def unit(batch: int, steps: int) -> torch.Tensor:
    return torch.nn.functional.normalize(heads(batch, steps), dim=-1)


#: By name: what makes the call for so many tokens.
FUNCTIONS: dict[str, Callable[[int], Call]] = {
    "liger rms_norm": lambda n: liger("rms_norm", "LigerRMSNormFunction", numbers(n, 4096, dtype=HALF), numbers(4096, dtype=HALF), 1e-6),
    "liger rms_norm back": lambda n: liger_backward("rms_norm", "LigerRMSNormFunction", (numbers(n, 4096), numbers(4096)), 1e-6, 0.0, "llama", False),
    "liger layer_norm": lambda n: liger("layer_norm", "LigerLayerNormFunction", numbers(n, 4096), numbers(4096), numbers(4096), 1e-6),
    "liger layer_norm back": lambda n: liger_backward("layer_norm", "LigerLayerNormFunction", (numbers(n, 4096), numbers(4096), numbers(4096)), 1e-6),
    "liger group_norm": lambda n: liger("group_norm", "LigerGroupNormFunction", numbers(n // 16, 64, 4096), numbers(64), numbers(64), 64, 8, 1e-6),
    "liger swiglu": lambda n: liger("swiglu", "LigerSiLUMulFunction", numbers(n, 11_008, dtype=HALF), numbers(n, 11_008, dtype=HALF)),
    "liger geglu": lambda n: liger("geglu", "LigerGELUMulFunction", numbers(n, 11_008, dtype=HALF), numbers(n, 11_008, dtype=HALF)),
    "liger softmax": lambda n: liger("softmax", "LigerSoftmaxFunction", numbers(n, 128_256)),
    "liger sparsemax": lambda n: liger("sparsemax", "LigerSparsemaxFunction", numbers(n, 4096), -1),
    "liger kl_div": lambda n: liger("kl_div", "LigerKLDivLossFunction", numbers(n, 32_000).log_softmax(-1), numbers(n, 32_000).softmax(-1)),
    "liger tvd": lambda n: liger("tvd", "LigerTVDLossFunction", numbers(n, 32_000).softmax(-1), numbers(n, 32_000).softmax(-1)),
    "liger jsd": lambda n: liger("jsd", "LigerJSDFunction", numbers(n, 32_000).log_softmax(-1), numbers(n, 32_000).log_softmax(-1)),
    "liger dyt": lambda n: liger("dyt", "LigerDyTFunction", numbers(n, 4096), numbers(1), numbers(4096), numbers(4096)),
    "liger poly_norm": lambda n: liger("poly_norm", "LigerPolyNormFunction", numbers(n, 4096), numbers(3), numbers(1)),
    "liger relu_squared": lambda n: liger("relu_squared", "LigerReLUSquaredFunction", numbers(n, 11_008, dtype=HALF)),
    "fla gla": lambda n: fla("ops.gla", "fused_recurrent_gla", *(heads(1, n) for _ in range(3)), gate(1, n, 128)),
    "fla retention": lambda n: fla("ops.retention", "fused_recurrent_retention", *(heads(1, n) for _ in range(3))),
    "fla simple_gla": lambda n: fla("ops.simple_gla", "fused_recurrent_simple_gla", *(heads(1, n) for _ in range(3)), gate(1, n)),
    "fla linear_attn": lambda n: fla("ops.linear_attn", "fused_recurrent_linear_attn", *(heads(1, n) for _ in range(3))),
    "fla delta_rule": lambda n: fla("ops.delta_rule", "fused_recurrent_delta_rule", heads(1, n), unit(1, n), heads(1, n), torch.rand(1, n, 8, device="cuda", dtype=HALF)),
    "fla gated_delta_rule": lambda n: fla("ops.gated_delta_rule", "fused_recurrent_gated_delta_rule", heads(1, n), unit(1, n), heads(1, n), gate(1, n), beta=torch.rand(1, n, 8, device="cuda", dtype=HALF)),
    "fla gated_delta, states": lambda n: fla("ops.gated_delta_rule", "fused_recurrent_gated_delta_rule", heads(n, 1), unit(n, 1), heads(n, 1), gate(n, 1), beta=torch.rand(n, 1, 8, device="cuda", dtype=HALF), initial_state=numbers(n, 8, 128, 128), output_final_state=True),
    "fla kda": lambda n: fla("ops.kda", "fused_recurrent_kda", heads(1, n), unit(1, n), heads(1, n), gate(1, n, 128), torch.rand(1, n, 8, device="cuda", dtype=HALF)),
    "fla hgrn": lambda n: fla("ops.hgrn", "fused_recurrent_hgrn", numbers(1, n, 1024), torch.nn.functional.logsigmoid(numbers(1, n, 1024))),
    "fla rwkv6": lambda n: fla("ops.rwkv6", "fused_recurrent_rwkv6", *(heads(1, n, 64) for _ in range(3)), gate(1, n, 64), numbers(8, 64)),
    "fla token_shift": lambda n: fla("modules.token_shift", "token_shift", numbers(1, n, 4096, dtype=HALF)),
    "fla causal_conv1d": lambda n: fla("modules.causal_conv1d", "causal_conv1d", numbers(1, n, 4096, dtype=HALF), numbers(4096, 4, dtype=HALF)),
    "fla l2norm": lambda n: fla("modules.norm.l2norm", "l2norm", numbers(n * 8, 128, dtype=HALF)),
    "fla rms_norm_gated": lambda n: fla("modules.norm.fused_norm_gate", "rms_norm_gated", numbers(n, 4096, dtype=HALF), numbers(n, 4096, dtype=HALF), numbers(4096, dtype=HALF), None),
    "fla cumsum": lambda n: fla("ops.utils", "chunk_global_cumsum", numbers(1, n, 8, 128)),
    "fla softmax": lambda n: fla("ops.utils.softmax", "softmax_fwd", numbers(1, n, 8, 256)),
    "fla mean_pooling": lambda n: fla("ops.utils", "mean_pooling", heads(1, n), 64),
}  # fmt: skip


def main() -> None:
    table = Table(arguments(__doc__))
    for name, make in FUNCTIONS.items():
        for tokens in (64, 4096):
            if not name.startswith(tuple(table.options.only.split(","))):
                continue
            torch.manual_seed(1)
            try:
                table.row(name, tokens, make(tokens))
            except (
                RuntimeError,
                TypeError,
                ValueError,
                ImportError,
                AttributeError,
                AssertionError,
            ) as error:
                print(
                    f"{name:22} {tokens:8} not run: {type(error).__name__}: {str(error).splitlines()[0][:160]}",
                    flush=True,
                )
    table.end()


if __name__ == "__main__":
    main()
