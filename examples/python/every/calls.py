"""Calls of liger-kernel's and flash-linear-attention's operators, forward and backward, so that their kernels are launched.

A call of flash-linear-attention names the kind of each argument (`KINDS`); one of liger-kernel makes its arguments itself. What
several of their operators share is launched by each of them.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

Call = Callable[[], object]

#: Where tensors are made.
DEVICE = "cuda"
#: One sequence of so many tokens, with so many heads of this width.
TOKENS, HEADS, WIDTH = 1024, 8, 128
#: Rows of logits.
ROWS = 256
HALF = torch.bfloat16


def numbers(*shape: int, dtype: torch.dtype = HALF) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float32, device=DEVICE).to(dtype)


def decays(*shape: int) -> torch.Tensor:
    """Logarithms of decays."""
    return torch.nn.functional.logsigmoid(numbers(*shape, dtype=torch.float32))


def below(limit: int, *shape: int) -> torch.Tensor:
    return torch.randint(0, limit, shape, device=DEVICE)


class Frozen(NamedTuple):
    """An argument that gets no gradient."""

    own: torch.Tensor


#: What an argument of flash-linear-attention is, by a word.
KINDS: dict[str, Callable[[], Any]] = {
    "heads": lambda: numbers(1, TOKENS, HEADS, WIDTH),
    "narrow": lambda: numbers(1, TOKENS, HEADS, 64),
    "unit": lambda: torch.nn.functional.normalize(
        numbers(1, TOKENS, HEADS, WIDTH, dtype=torch.float32), dim=-1
    ).to(HALF),
    "narrow-unit": lambda: torch.nn.functional.normalize(
        numbers(1, TOKENS, HEADS, 64, dtype=torch.float32), dim=-1
    ).to(HALF),
    "decay": lambda: decays(1, TOKENS, HEADS),
    "decays": lambda: decays(1, TOKENS, HEADS, WIDTH),
    "narrow-decays": lambda: decays(1, TOKENS, HEADS, 64),
    "share": lambda: torch.rand(1, TOKENS, HEADS, device=DEVICE).to(HALF),
    "shares": lambda: torch.rand(1, TOKENS, HEADS, WIDTH, device=DEVICE).to(HALF),
    "slots": lambda: numbers(1, TOKENS, HEADS, 64),
    "slot-decays": lambda: decays(1, TOKENS, HEADS, 64),
    "of-head": lambda: numbers(HEADS, WIDTH, dtype=torch.float32),
    "of-narrow-head": lambda: numbers(HEADS, 64, dtype=torch.float32),
    "heads-alone": lambda: numbers(HEADS, dtype=torch.float32),
    "scalars": lambda: numbers(1, TOKENS, HEADS, dtype=torch.float32),
    "vectors": lambda: numbers(1, TOKENS, HEADS, WIDTH, dtype=torch.float32),
    "hidden": lambda: numbers(1, TOKENS, 1024),
    "hidden-decays": lambda: decays(1, TOKENS, 1024),
    "wide": lambda: numbers(1, TOKENS, 4096),
    "wide-float": lambda: numbers(1, TOKENS, 4096, dtype=torch.float32),
    "row": lambda: numbers(4096),
    "hidden-row": lambda: numbers(1024),
    "width-row": lambda: numbers(WIDTH),
    "taps": lambda: numbers(4096, 4),
    "rows": lambda: numbers(TOKENS, 4096),
    "logits": lambda: numbers(ROWS, 32_000),
    "labels": lambda: below(32_000, ROWS),
    "vocabulary": lambda: numbers(32_000, 1024),
    "hidden-rows": lambda: numbers(ROWS, 1024),
    "matrix": lambda: numbers(1024, 1024),
    "lengths": lambda: torch.tensor([0, TOKENS // 4, TOKENS // 2, TOKENS], device=DEVICE),
    "state": lambda: numbers(1, HEADS, WIDTH, WIDTH, dtype=torch.float32),
    "states": lambda: numbers(3, HEADS, WIDTH, WIDTH, dtype=torch.float32),
    "table": lambda: numbers(TOKENS, WIDTH // 2, dtype=torch.float32),
    "levels": lambda: torch.rand(1, TOKENS, HEADS, 11, device=DEVICE).to(HALF),
    "layers": lambda: [numbers(1, TOKENS, 1024) for _ in range(4)],
    "yes": lambda: True,
    "no": lambda: False,
    "one": lambda: 1.0,
    "two": lambda: 2,
    "eight": lambda: 8,
    "chunk": lambda: 64,
    "small": lambda: 1e-6,
    "none": lambda: None,
    "swish": lambda: "swish",
    "sigmoid": lambda: "sigmoid",
    "bottom": lambda: -5.0,
}

#: Functions of flash-linear-attention with their arguments.
FLA: tuple[str, ...] = (
    "ops.abc.chunk_abc q=heads k=heads v=heads s=slots",
    "ops.abc.chunk_abc q=heads k=heads v=heads s=slots output_final_state=yes",
    "ops.attn.parallel_attn q=heads k=heads v=heads",
    "ops.attn.parallel_attn q=heads k=heads v=heads g=decay",
    "ops.attn.parallel_attn q=heads k=heads v=heads cu_seqlens=lengths",
    "ops.attnres.fused_attnres query=hidden-row residuals=layers rms_weight=hidden-row",
    "ops.attnres.fused_attnres query=hidden-row residuals=layers rms_weight=hidden-row output_rms_weight=hidden-row",
    "ops.based.parallel_based q=narrow k=narrow v=heads",
    "ops.comba.chunk_comba q=heads k=unit v=heads p=unit g=decay beta=share",
    "ops.comba.fused_recurrent_comba q=heads k=unit p=unit v=heads g=decay beta=share",
    "ops.delta_rule.chunk_delta_rule q=heads k=unit v=heads beta=share",
    "ops.delta_rule.fused_recurrent_delta_rule q=heads k=unit v=heads beta=share",
    "ops.delta_rule.fused_recurrent_delta_rule q=heads k=unit v=heads beta=shares",
    "ops.forgetting_attn.parallel_forgetting_attn q=heads k=heads v=heads g=decay",
    "ops.gated_delta_rule.chunk_gated_delta_rule q=heads k=unit v=heads g=decay beta=share",
    "ops.gated_delta_rule.chunk_gated_delta_rule q=heads k=unit v=heads g=decay beta=share cu_seqlens=lengths use_qk_l2norm_in_kernel=yes",
    "ops.gated_delta_rule.fused_recurrent_gated_delta_rule q=heads k=unit v=heads g=decay beta=share",
    "ops.gated_delta_rule.fused_recurrent_gated_delta_rule q=heads k=unit v=heads gk=decays beta=share output_final_state=yes",
    "ops.gated_delta_product.chunk_gated_delta_product q=heads k=twice-unit v=twice g=decay beta=twice-share num_householder=two",
    "ops.gated_oja_rule.fused_recurrent_gated_oja_rule q=heads k=unit v=heads gv=decays beta=share",
    "ops.gated_oja_rule.chunk_gated_oja_rule q=heads k=unit v=heads gv=decays beta=share",
    "ops.gdn2.fused_recurrent_gdn2 q=heads k=unit v=heads g=decays b=shares w=shares",
    "ops.gdn2.chunk_gdn2 q=heads k=unit v=heads g=decays b=shares w=shares",
    "ops.generalized_delta_rule.chunk_dplr_delta_rule q=narrow k=narrow v=narrow a=narrow-unit b=narrow-unit gk=narrow-decays",
    "ops.generalized_delta_rule.chunk_dplr_delta_rule q=narrow k=narrow v=narrow a=narrow-unit b=narrow-unit gk=narrow-decays safe_gate=yes chunk_size=chunk",
    "ops.generalized_delta_rule.fused_recurrent_dplr_delta_rule q=narrow k=narrow v=narrow a=narrow-unit b=narrow-unit gk=narrow-decays",
    "ops.generalized_delta_rule.chunk_iplr_delta_rule q=narrow k=narrow v=narrow a=narrow-unit b=narrow-unit",
    "ops.generalized_delta_rule.fused_recurrent_iplr_delta_rule q=narrow k=narrow v=narrow a=narrow-unit b=narrow-unit",
    "ops.gla.chunk_gla q=heads k=heads v=heads g=decays",
    "ops.gla.chunk_gla q=heads k=heads v=heads g=decays cu_seqlens=lengths",
    "ops.gla.fused_recurrent_gla q=heads k=heads v=heads gk=decays",
    "ops.gla.fused_recurrent_gla q=heads k=heads v=heads gk=decays gv=decays initial_state=state output_final_state=yes",
    "ops.gla.fused_recurrent_gla q=heads k=heads v=heads gk=decays reverse=yes cu_seqlens=lengths",
    "ops.gsa.chunk_gsa q=heads k=heads v=heads s=slots g=slot-decays",
    "ops.gsa.fused_recurrent_gsa q=heads k=heads v=heads s=slots g=slot-decays",
    "ops.hgrn.chunk_hgrn x=hidden g=hidden-decays",
    "ops.hgrn.fused_recurrent_hgrn x=hidden g=hidden-decays",
    "ops.hgrn.fused_recurrent_hgrn x=hidden g=hidden-decays output_final_state=yes",
    "ops.kda.chunk_kda q=heads k=unit v=heads g=decays beta=share",
    "ops.kda.chunk_kda q=heads k=unit v=heads g=decays beta=share use_qk_l2norm_in_kernel=yes safe_gate=yes lower_bound=bottom",
    "ops.kda.fused_recurrent_kda q=heads k=unit v=heads g=decays beta=share",
    "ops.lightning_attn.chunk_lightning_attn q=heads k=heads v=heads layer_idx=two num_layers=eight",
    "ops.lightning_attn.fused_recurrent_lightning_attn q=heads k=heads v=heads layer_idx=two num_layers=eight",
    "ops.linear_attn.chunk_linear_attn q=heads k=heads v=heads",
    "ops.linear_attn.fused_chunk_linear_attn q=heads k=heads v=heads",
    "ops.linear_attn.fused_recurrent_linear_attn q=heads k=heads v=heads",
    "ops.log_linear_attn.chunk_log_linear_attn q=heads k=heads v=heads g=decay level_scales=levels",
    "ops.mesa_net.chunk_mesa_net q=heads k=unit v=heads g=decay beta=share lamb=of-head",
    "ops.momentum_delta_rule.chunk_momentum_delta_rule q=heads k=unit v=heads log_alpha=decay log_mu=decay beta=share eta=share",
    "ops.momentum_delta_rule.fused_recurrent_momentum_delta_rule q=heads k=unit v=heads log_alpha=decay log_mu=decay beta=share eta=share",
    "ops.parallax.parallel_parallax q=heads r=heads k=heads v=heads",
    "ops.path_attn.parallel_path_attn q=heads k=heads v=heads w=unit-float beta=share-float g=decay",
    "ops.precond_gated_delta_rule.chunk_precond_gated_delta_rule q=heads k=unit v=heads g_atk=decay g=decay beta_atk=share beta=share",
    "ops.precond_gated_delta_rule.fused_recurrent_precond_gated_delta_rule q=heads k=unit v=heads g=decay beta=share g_atk=decay beta_atk=share",
    "ops.precond_kda.chunk_precond_kda q=heads k=unit v=heads g=decays g_atk=decay beta_atk=share beta=share",
    "ops.precond_kda.fused_recurrent_precond_kda q=heads k=unit v=heads g=decays g_atk=decay beta_atk=share beta=share",
    "ops.retention.chunk_retention q=heads k=heads v=heads",
    "ops.retention.fused_recurrent_retention q=heads k=heads v=heads",
    "ops.retention.parallel_retention q=heads k=heads v=heads",
    "ops.rwkv4.fused_recurrent_rwkv4 w=hidden-float u=hidden-float k=hidden-float3 v=hidden-float3 state=rwkv4-state",
    "ops.rwkv6.chunk_rwkv6 r=narrow k=narrow v=narrow w=narrow-decays u=of-narrow-head",
    "ops.rwkv6.fused_recurrent_rwkv6 r=narrow k=narrow v=narrow w=narrow-decays u=of-narrow-head",
    "ops.rwkv7.chunk_rwkv7 r=narrow w=narrow-decays k=narrow v=narrow a=narrow-unit b=narrow-unit",
    "ops.rwkv7.fused_recurrent_rwkv7 r=narrow w=narrow-decays k=narrow v=narrow a=narrow-unit b=narrow-unit",
    "ops.rwkv7.fused_mul_recurrent_rwkv7 r=narrow w=narrow-decays k=narrow v=narrow kk=narrow-unit a=narrow-unit",
    "ops.rwkv7.fused_addcmul.fused_addcmul_rwkv7 hidden_states=hidden delta=hidden xr=hidden-point xw=hidden-point xk=hidden-point xv=hidden-point xa=hidden-point xg=hidden-point",
    "ops.rwkv7.fused_k_update.fused_k_rwkv7 k=hidden a=hidden ka=hidden-point",
    "ops.rwkv7.gate_output_correction.gate_output_correction o=hidden-512 r=narrow k=narrow r_k=of-narrow-head v=narrow g=hidden-512",
    "ops.rwkv7.channel_mixing.channel_mixing_rwkv7 x=hidden x_prev=hidden-point1 x_k=hidden-row key_weight=matrix value_weight=matrix",
    "ops.simple_gla.chunk_simple_gla q=heads k=heads v=heads g=decay",
    "ops.simple_gla.fused_recurrent_simple_gla q=heads k=heads v=heads g=decay",
    "ops.simple_gla.parallel_simple_gla q=heads k=heads v=heads g=decay",
    "ops.stickbreaking_attn.parallel_stickbreaking_attn q=heads k=heads v=heads",
    "ops.ttt.chunk_ttt_linear q=narrow k=narrow v=narrow w=of-narrow-head b=of-narrow-head eta=eta",
    "ops.utils.chunk_local_cumsum g=scalars chunk_size=chunk",
    "ops.utils.chunk_local_cumsum g=scalars chunk_size=chunk reverse=yes",
    "ops.utils.chunk_local_cumsum g=scalars chunk_size=chunk cu_seqlens=lengths",
    "ops.utils.chunk_local_cumsum g=vectors chunk_size=chunk",
    "ops.utils.chunk_local_cumsum g=vectors chunk_size=chunk reverse=yes",
    "ops.utils.chunk_global_cumsum s=scalars",
    "ops.utils.chunk_global_cumsum s=scalars reverse=yes",
    "ops.utils.chunk_global_cumsum s=scalars cu_seqlens=lengths",
    "ops.utils.chunk_global_cumsum s=vectors",
    "ops.utils.chunk_global_cumsum s=vectors reverse=yes",
    "ops.utils.chunk_global_cumsum s=vectors cu_seqlens=lengths",
    "ops.utils.mean_pooling x=heads chunk_size=chunk",
    "ops.utils.mean_pooling x=heads chunk_size=chunk cu_seqlens=lengths",
    "ops.utils.logsumexp_fwd x=rows",
    "ops.utils.softmax_fwd x=vectors",
    "ops.utils.softmax_bwd p=vectors dp=vectors",
    "ops.utils.sinkhorn logits=matrices",
    "ops.wall_attn.parallel_wall_attn q=heads k=heads v=heads g=decays",
    "modules.activations.logsigmoid x=wide",
    "modules.activations.sigmoid 0=wide",
    "modules.activations.swish 0=wide",
    "modules.activations.swiglu 0=wide 1=wide",
    "modules.activations.sigmoidglu 0=wide 1=wide",
    "modules.activations.powglu x=wide y=wide",
    "modules.activations.swiglu_linear x=hidden y=hidden weight=matrix bias=none",
    "modules.causal_conv1d.causal_conv1d x=wide weight=taps",
    "modules.causal_conv1d.causal_conv1d x=wide weight=taps activation=swish bias=row",
    "modules.fused_cross_entropy.ops.cross_entropy_loss logits=logits target=labels",
    "modules.fused_cross_entropy.ops.cross_entropy_loss logits=logits target=labels label_smoothing=tenth lse_square_scale=tenth",
    "modules.fused_kl_div.ops.fused_kl_div_loss x=hidden-rows target_x=frozen-rows weight=vocabulary target_weight=frozen-vocabulary",
    "modules.fused_linear_cross_entropy.ops.fused_linear_cross_entropy_loss x=hidden-rows target=labels weight=vocabulary",
    "modules.grpo.fused_grpo_loss logits=logits3 ref_logp=logp input_ids=ids advantages=sequence",
    "modules.norm.layernorm.layer_norm x=wide weight=row bias=row",
    "modules.norm.layernorm.layer_norm x=wide weight=row bias=row residual=wide prenorm=yes",
    "modules.norm.layernorm.rms_norm x=wide weight=row bias=none",
    "modules.norm.layernorm.group_norm x=wide weight=row bias=row num_groups=eight",
    "modules.norm.layernorm.rms_norm x=heads weight=width-row bias=none",
    "modules.norm.layernorm.rms_norm_linear x=hidden norm_weight=hidden-row norm_bias=none linear_weight=matrix linear_bias=none",
    "modules.norm.layernorm_gated.rmsnorm_fn x=rows weight=row bias=none z=rows",
    "modules.norm.layernorm_gated.layernorm_fn x=rows weight=row bias=row",
    "modules.norm.layernorm_quant.LayerNormLinearQuantFunction.apply 0=hidden 1=hidden-row 2=none 3=matrix 4=none",
    "modules.norm.fused_norm_gate.rms_norm_gated x=wide g=wide weight=row bias=none",
    "modules.norm.fused_norm_gate.layer_norm_gated x=wide g=wide weight=row bias=row activation=sigmoid",
    "modules.norm.fused_norm_gate.rms_norm_gated x=heads g=heads weight=width-row bias=none",
    "modules.norm.l2norm.l2norm x=heads",
    "modules.norm.l2norm.l2norm x=wide",
    "modules.rotary.rotary_embedding x=heads cos=table sin=table",
    "modules.rotary.rotary_embedding x=heads cos=table sin=table interleaved=yes",
    "modules.token_shift.token_shift x=wide",
    "modules.token_shift.token_shift x=wide cu_seqlens=lengths",
)

KINDS |= {
    "unit-float": lambda: torch.nn.functional.normalize(
        numbers(1, TOKENS, HEADS, WIDTH, dtype=torch.float32), dim=-1
    ),
    "share-float": lambda: torch.rand(1, TOKENS, HEADS, device=DEVICE),
    "frozen-vocabulary": lambda: Frozen(numbers(32_000, 1024)),
    "frozen-rows": lambda: Frozen(numbers(ROWS, 1024)),
    "twice": lambda: numbers(1, 2 * TOKENS, HEADS, WIDTH),
    "twice-unit": lambda: torch.nn.functional.normalize(
        numbers(1, 2 * TOKENS, HEADS, WIDTH, dtype=torch.float32), dim=-1
    ).to(HALF),
    "twice-share": lambda: torch.rand(1, 2 * TOKENS, HEADS, device=DEVICE).to(HALF),
    "hidden-float": lambda: numbers(1024, dtype=torch.float32),
    "hidden-float3": lambda: numbers(1, TOKENS, 1024, dtype=torch.float32),
    "rwkv4-state": lambda: torch.zeros(1, 3, 1, 1024, device=DEVICE),
    "hidden-point": lambda: numbers(1, 1, 1024),
    "hidden-point1": lambda: numbers(1, 1024),
    "hidden-512": lambda: numbers(1, TOKENS, HEADS * 64),
    "eta": lambda: torch.rand(1, TOKENS, HEADS, 1, device=DEVICE).to(HALF),
    "matrices": lambda: numbers(TOKENS, 4, 4, dtype=torch.float32),
    "tenth": lambda: 0.1,
    "logits3": lambda: numbers(1, 257, 32_000),
    "logp": lambda: -torch.rand(1, 256, device=DEVICE),
    "ids": lambda: below(32_000, 1, 256),
    "sequence": lambda: torch.randn(1, device=DEVICE),
}


def fla(line: str) -> Call:
    """The call that a line of `FLA` describes."""
    path, *words = line.split()
    module, _, name = path.rpartition(".")
    placed: list[Any] = []
    named: dict[str, Any] = {}
    for word in words:
        argument, _, kind = word.partition("=")
        value = KINDS[kind]()
        if argument.isdigit():
            placed.append(value)
        else:
            named[argument] = value
    if name == "apply":
        module, _, kind = module.rpartition(".")
        function = getattr(importlib.import_module(f"fla.{module}"), kind).apply
    else:
        function = getattr(importlib.import_module(f"fla.{module}"), name)
    return both_ways(function, placed, named)


def liger(module: str, name: str, *args: Any) -> Call:
    """One of liger-kernel's functions."""
    return both_ways(
        getattr(importlib.import_module(f"liger_kernel.ops.{module}"), name).apply, list(args), {}
    )


def both_ways(function: Any, placed: list[Any], named: dict[str, Any]) -> Call:
    """The function with these arguments, and backward through all that it returns."""

    def leaf(value: Any) -> Any:
        if isinstance(value, list):
            return [leaf(own) for own in value]
        if isinstance(value, Frozen):
            return value.own
        return (
            value.requires_grad_() if isinstance(value, torch.Tensor) and value.is_floating_point() else value
        )

    placed = [leaf(value) for value in placed]
    named = {name: leaf(value) for name, value in named.items()}

    def call() -> None:
        # In the forward pass some operators write into their arguments, which a leaf forbids.
        def copied(value: Any) -> Any:
            if isinstance(value, list):
                return [copied(own) for own in value]
            return value * 1 if isinstance(value, torch.Tensor) and value.requires_grad else value

        out = function(*map(copied, placed), **{name: copied(value) for name, value in named.items()})
        outs = out if isinstance(out, tuple | list) else (out,)
        found = [own for own in outs if isinstance(own, torch.Tensor) and own.requires_grad]
        if found:
            torch.autograd.backward(found, [torch.randn_like(own) for own in found])

    return call


def square(rows: int) -> torch.Tensor:
    return numbers(1, 4, rows, rows, dtype=torch.float32)


def liger_calls() -> dict[str, Callable[[], Call]]:
    """By name: what makes the call."""
    float32, n, rows = torch.float32, TOKENS, ROWS
    wide = lambda *, dtype=HALF: numbers(n, 4096, dtype=dtype)
    logits = lambda: numbers(rows, 32_000, dtype=float32)
    rope = lambda: (numbers(1, 32, n, WIDTH), numbers(1, 8, n, WIDTH))
    return {
        "attn_res": lambda: liger("attn_res", "LigerAttnResFunction", numbers(4, n, 1024), numbers(1024), numbers(1024), 1e-6),
        "cross_entropy": lambda: liger("cross_entropy", "LigerCrossEntropyFunction", logits(), below(32_000, rows), None),
        "cross_entropy, smoothed": lambda: liger("cross_entropy", "LigerCrossEntropyFunction", logits(), below(32_000, rows), None, -100, 0.1, 0.1, "mean", 30.0, True),
        "cross_entropy, weighted": lambda: liger("cross_entropy", "LigerCrossEntropyFunction", logits(), below(32_000, rows), torch.rand(32_000, device=DEVICE)),
        "cross_entropy, accuracy": lambda: liger("cross_entropy", "LigerCrossEntropyFunction", logits(), below(32_000, rows), None, -100, 0.0, 0.0, "none", None, False, True, True),
        "dyt": lambda: liger("dyt", "LigerDyTFunction", wide(), numbers(1, dtype=float32), numbers(4096), numbers(4096)),
        "fused_add_rms_norm": lambda: liger("fused_add_rms_norm", "LigerFusedAddRMSNormFunction", wide(), wide(), numbers(4096), 1e-6),
        "fused_ce_tvd": lambda: liger("fused_ce_tvd", "LigerFusedCETVDFunction", logits(), logits(), below(32_000, rows)),
        "fused_linear_cross_entropy": lambda: liger("fused_linear_cross_entropy", "LigerFusedLinearCrossEntropyFunction", numbers(rows, 1024), numbers(32_000, 1024), below(32_000, rows)),
        "fused_linear_jsd": lambda: liger("fused_linear_jsd", "LigerFusedLinearJSDFunction", numbers(rows, 1024), numbers(32_000, 1024), numbers(rows, 1024), numbers(32_000, 1024), below(32_000, rows)),
        "fused_linear_kl_div": lambda: liger("fused_linear_kl_div", "LigerFusedLinearKLDivFunction", numbers(rows, 1024), numbers(32_000, 1024), logits().softmax(-1)),
        "fused_moe": lambda: liger("fused_moe", "LigerFusedMoEFunction", numbers(n, 1024), numbers(8, 2048, 1024), numbers(8, 1024, 1024), below(8, n, 2).to(torch.int32), torch.rand(n, 2, device=DEVICE)),
        "fused_neighborhood_attention": lambda: liger("fused_neighborhood_attention", "LigerFusedNeighborhoodAttentionFunction", *(numbers(1, 4, n, 64, dtype=float32) for _ in range(3))),
        "geglu": lambda: liger("geglu", "LigerGELUMulFunction", numbers(n, 11_008), numbers(n, 11_008)),
        "group_norm": lambda: liger("group_norm", "LigerGroupNormFunction", numbers(n // 16, 64, 4096, dtype=float32), numbers(64, dtype=float32), numbers(64, dtype=float32), 64, 8, 1e-6),
        "grpo_loss": lambda: liger("grpo_loss", "GrpoLossFunction", numbers(1, 257, 32_000), -torch.rand(1, 256, device=DEVICE), -torch.rand(1, 256, device=DEVICE), below(32_000, 1, 256), torch.randn(1, device=DEVICE), torch.ones(1, 256, device=DEVICE), 0.9, 0.04, 0.2, 0.4, False),
        "jsd": lambda: liger("jsd", "LigerJSDFunction", logits().log_softmax(-1), logits().log_softmax(-1)),
        "kl_div": lambda: liger("kl_div", "LigerKLDivLossFunction", logits().log_softmax(-1), logits().softmax(-1)),
        "layer_norm": lambda: liger("layer_norm", "LigerLayerNormFunction", wide(), numbers(4096), numbers(4096), 1e-6),
        "llama4_rope": lambda: liger("llama4_rope", "LigerLlama4RopeFunction", numbers(1, n, 32, WIDTH), numbers(1, n, 8, WIDTH), torch.polar(torch.ones(n, WIDTH // 2, device=DEVICE), torch.randn(n, WIDTH // 2, device=DEVICE))),
        "mhc_coeffs": lambda: liger("mhc", "LigerMHCCoeffsFunction", numbers(n, 4, 1024), numbers(4096, 24, dtype=float32), numbers(24, dtype=float32), *(torch.rand((), device=DEVICE) for _ in range(3)), False, 20, 1e-6, 1e-6, 1e-6, 2.0),
        "mhc_pre": lambda: liger("mhc", "LigerMHCPreFunction", numbers(n, 4, 1024), numbers(n, 4, dtype=float32)),
        "mhc_post_res": lambda: liger("mhc", "LigerMHCPostResFunction", numbers(n, 4, 1024), numbers(n, 1024), numbers(n, 4, dtype=float32), numbers(n, 4, 4, dtype=float32)),
        "modulated_rms_norm": lambda: liger("modulated_rms_norm", "LigerModulatedRMSNormFunction", numbers(1, n, 4096), numbers(4096), numbers(1, 4096), numbers(1, 4096), 1e-6),
        "modulated_rms_norm, no shift": lambda: liger("modulated_rms_norm", "LigerModulatedRMSNormFunction", numbers(1, n, 4096), None, numbers(1, 4096), None, 1e-6),
        "multi_token_attention": lambda: liger("multi_token_attention", "LigerMultiTokenAttentionFunction", square(64), numbers(4, 4, 3, 3, dtype=float32), numbers(4, dtype=float32), 1, 1),
        "multi_token_attention, sparse": lambda: liger("multi_token_attention", "LigerMultiTokenAttentionFunction", square(64), numbers(4, 4, 3, 3, dtype=float32), numbers(4, dtype=float32), 1, 1, 1, 1, True),
        "poly_norm": lambda: liger("poly_norm", "LigerPolyNormFunction", wide(), numbers(3), numbers(1).reshape(())),
        "qwen2vl_mrope": lambda: liger("qwen2vl_mrope", "LigerQwen2VLMRopeFunction", *rope(), numbers(3, 1, n, WIDTH), numbers(3, 1, n, WIDTH), [16, 24, 24]),
        "relu_squared": lambda: liger("relu_squared", "LigerReLUSquaredFunction", numbers(n, 11_008)),
        "rms_norm": lambda: liger("rms_norm", "LigerRMSNormFunction", wide(), numbers(4096), 1e-6),
        "rms_norm, gemma": lambda: liger("rms_norm", "LigerRMSNormFunction", wide(), numbers(4096), 1e-6, 1.0, "gemma"),
        "rms_norm, narrow": lambda: liger("rms_norm", "LigerRMSNormFunction", numbers(64 * n, 128), numbers(128), 1e-6),
        "rope": lambda: liger("rope", "LigerRopeFunction", *rope(), numbers(1, n, WIDTH), numbers(1, n, WIDTH)),
        "softmax": lambda: liger("softmax", "LigerSoftmaxFunction", numbers(rows, 32_000)),
        "sparsemax": lambda: liger("sparsemax", "LigerSparsemaxFunction", wide(dtype=float32), -1),
        "swiglu": lambda: liger("swiglu", "LigerSiLUMulFunction", numbers(n, 11_008), numbers(n, 11_008)),
        "swiglu, fused": lambda: liger("swiglu", "LigerFusedGateUpSiLUMulFunction", numbers(n, 2 * 11_008)),
        "tvd": lambda: liger("tvd", "LigerTVDLossFunction", logits().softmax(-1), logits().softmax(-1)),
        "embedding": lambda: liger("experimental.embedding", "LigerEmbeddingFunction", numbers(32_000, 1024), below(32_000, n)),
    }  # fmt: skip


def calls() -> dict[str, Callable[[], Call]]:
    """All of them, by name; each makes its arguments when it is asked for."""
    found = {f"liger {name}": make for name, make in liger_calls().items()}
    for line in FLA:
        found["fla " + line.removeprefix("ops.").removeprefix("modules.")] = lambda line=line: fla(line)
    return found
