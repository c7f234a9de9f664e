"""Operators of onnxruntime's own domain for models with linear attention, several residual streams or rotations along several axes; see
microsoft_cases.py."""

import numpy as np
import pytest
from reference_cases import constant, x
from microsoft_cases import Fused, Given, check

BATCH, TOKENS, SIZE, VALUES = 2, 5, 4, 3


def linear_attention():
    for heads, kv_heads in ((2, 2), (4, 2), (2, 4)):
        query, key, value = (x(BATCH, TOKENS, n) for n in (heads * SIZE, kv_heads * SIZE, kv_heads * VALUES))
        past = x(BATCH, kv_heads, SIZE, VALUES)
        beta = x(BATCH, TOKENS, kv_heads, between=(0, 1))
        counts = {"q_num_heads": heads, "kv_num_heads": kv_heads}
        for rule in ("linear", "gated", "delta", "gated_delta"):
            for decay in (x(BATCH, TOKENS, kv_heads, between=(-1, 0)), x(BATCH, TOKENS, kv_heads * SIZE, between=(-1, 0))):
                rates = [decay if "gated" in rule else None, beta if "delta" in rule else None]
                yield Fused("LinearAttention", [query, key, value, past, *rates], {**counts, "update_rule": rule}, (0, 1))
    rates = [x(BATCH, TOKENS, 4, between=(-1, 0)), x(BATCH, TOKENS, 1, between=(0, 1))]
    yield Fused("LinearAttention", [query, key, value, None, *rates], {**counts, "scale": 0.3}, (0, 1))


def gates():
    parts = [x(BATCH, TOKENS, 6), constant(6), -abs(constant(6))]
    yield Fused("LinearAttentionGate", parts)
    yield Fused("LinearAttentionGate", [*parts, x(BATCH, TOKENS, 6)], {}, (0, 1))
    for activation in ("silu", "swish", "sigmoid"):
        yield Fused("GatedRMSNorm", [x(BATCH, TOKENS, 12), constant(4), x(BATCH, TOKENS, 12)], {"activation": activation, "epsilon": 1e-3})
    yield Fused("GatedAdd", [x(BATCH, TOKENS, 7), x(BATCH, TOKENS, 7), x(BATCH, TOKENS, 1)])
    yield Fused("ScaledSiLU", [x(BATCH, TOKENS, 7)], {"alpha": 0.7})
    yield Fused("ScaledSiLU", [x(BATCH, TOKENS, 7), np.float32(1.3)])


def causal_convolutions():
    for taps, dilation in ((4, 1), (3, 2), (1, 1)):
        kept, weight, bias = (taps - 1) * dilation, constant(6, 1, taps), constant(6)
        attributes = {"dilation": dilation}
        for past in (None, x(BATCH, 6, kept)) if kept else (None,):
            yield Fused("CausalConvWithState", [x(BATCH, 6, TOKENS), weight, bias, past], {**attributes, "activation": "silu"}, (0, 1))
            yield Fused("CausalConvWithState", [x(BATCH, 6, 1), weight, None, past], attributes, (0, 1))
    for shape in ((6,), (2, 3)):
        operands = [x(BATCH, TOKENS, *shape), constant(6, 1, 4), constant(6), x(BATCH, 3, *shape)]
        yield Fused("CausalConvWithState", operands, {"channels_last": 1}, (0, 1))


def streams():
    for shape, attributes in (((BATCH, TOKENS, 3, 4), {}), ((BATCH, TOKENS, 12), {"num_branches": 3})):
        branches = x(*shape)
        for scale in ([], [constant(12)], [constant(3, 4)], [constant(4)]):
            yield Fused("BranchwiseRMSNorm", [branches, *scale], {**attributes, "epsilon": 1e-3})
        for mix in (x(BATCH, TOKENS, 3), x(BATCH, TOKENS, 3, 1), x(BATCH, TOKENS, 3, 4)):
            yield Fused("HyperConnectionPreMix", [branches, mix], {**attributes, "reduction_scale": 0.5})
            for others in ([], [x(BATCH, TOKENS, 3, 3)]):
                yield Fused("HyperConnectionPostMix", [branches, x(BATCH, TOKENS, 4), mix, *others], attributes)
    keys, scales = x(BATCH, TOKENS, 3, 8), [constant(3, 8), constant(3, 8) + np.float32(0.5)]
    yield Fused("EngramGate", [keys, x(BATCH, TOKENS, 3, 8), x(BATCH, TOKENS, 8), *scales], {"epsilon": 1e-3})
    yield Fused("EngramGate", [keys, x(BATCH, TOKENS, 3, 8), x(BATCH, TOKENS, 8), *scales, constant(3, 8)], {}, (0, 1))


def rotations():
    positions = Given(np.random.default_rng(0).integers(0, 11, (3, BATCH, TOKENS)))
    for layout, sections in ((0, [2, 1, 1]), (1, [2, 1, 1]), (0, [4, 0, 0]), (1, [4, 0, 0])):
        for interleaved in (0, 1):
            attributes = {"mrope_section": sections, "mrope_layout": layout, "interleaved": interleaved}
            angles = [positions, constant(12, 4), constant(12, 4) + np.float32(1)]
            yield Fused("MRotaryEmbedding", [x(BATCH, 3, TOKENS, 8), *angles], attributes)
            yield Fused("MRotaryEmbedding", [x(BATCH, TOKENS, 36), *angles], {**attributes, "num_heads": 3, "rotary_embedding_dim": 8})


CASES = [case for family in (linear_attention, gates, causal_convolutions, streams, rotations) for case in family()]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_microsoft(case):
    check(case)
