"""Attention operators of onnxruntime's own domain, one row per case."""

import numpy as np
import pytest
from microsoft_cases import Fused, Given, bytes_of, check, int32
from reference_cases import constant, x


def rotary():
    for interleaved in (0, 1):
        for positions in (Given(np.array([3])), x(2, 5, dtype="int64", between=(0, 11))):
            full, half = (constant(12, 4), constant(12, 4) + np.float32(1)), (constant(12, 2), constant(12, 2) + np.float32(1))
            yield Fused("RotaryEmbedding", [x(2, 5, 24), positions, *full], {"interleaved": interleaved})
            yield Fused("RotaryEmbedding", [x(2, 3, 5, 8), positions, *full], {"interleaved": interleaved})
            yield Fused("RotaryEmbedding", [x(2, 5, 24), positions, *half], {"interleaved": interleaved, "num_heads": 3, "rotary_embedding_dim": 4})


BATCH, QUERIES, HEADS, SIZE = 2, 3, 4, 5
WIDTH = HEADS * SIZE


def attention():
    """Three queries of two rows, of four heads with five elements each."""
    rows, weights, bias = x(BATCH, QUERIES, 7), constant(7, 3 * WIDTH), constant(3 * WIDTH)
    heads = {"num_heads": HEADS}
    yield Fused("Attention", [rows, weights, bias], heads, (0, 1))
    yield Fused("Attention", [rows, x(7, 3 * WIDTH), x(3 * WIDTH)], heads)
    yield Fused("Attention", [rows, weights, bias], {**heads, "scale": 0.3, "unidirectional": 1})
    yield Fused("Attention", [rows, constant(7, 2 * WIDTH + 8), constant(2 * WIDTH + 8)], {**heads, "qkv_hidden_sizes": [WIDTH, WIDTH, 8]})
    for past in (0, 4):
        total = past + QUERIES
        before = x(2, BATCH, HEADS, past, SIZE) if past else None
        masks = {
            "ends": int32(total, total - 2),
            "ends and starts": int32(total, total - 1, 0, 1),
            "keys": Given(np.array([[1] * total, [0] + [1] * (total - 1)], np.int32)),
            "pairs": x(BATCH, QUERIES, total, dtype="int32", between=(0, 2)),
        }
        for unidirectional in (0, 1):
            attributes = {**heads, "unidirectional": unidirectional}
            for mask in masks.values():
                yield Fused("Attention", [rows, weights, bias, mask, before], attributes, (0, 1) if past else (0,))
            extra = x(1, HEADS, QUERIES, total)
            if not past:  # onnxruntime has no bias with a past
                yield Fused("Attention", [rows, weights, bias, masks["keys"], None, extra], {**attributes, "mask_filter_value": -3.0})
    yield Fused("Attention", [rows, weights, bias, x(BATCH, 1, dtype="int32", between=(0, 2))], heads)


def quantised_attention():
    for type_of_weights in ("uint8", "int8"):
        rows = x(BATCH, QUERIES, 7, dtype="uint8", between=(0, 255))
        weights, bias = bytes_of(7, 3 * WIDTH).view(type_of_weights), constant(3 * WIDTH)
        scales = [np.float32(0.02), np.float32(0.01)]
        zero, zeros = np.uint8(60), np.dtype(type_of_weights).type(5)
        yield Fused("QAttention", [rows, weights, bias, *scales, None, zero, zeros], {"num_heads": HEADS})
        yield Fused("QAttention", [rows, weights, bias, *scales, int32(3, 2), zero, zeros], {"num_heads": HEADS, "unidirectional": 1})
    per_column = [np.float32(0.02), abs(constant(3 * WIDTH)) * np.float32(0.01)]
    yield Fused("QAttention", [rows, weights, bias, *per_column, None, zero, zeros.repeat(3 * WIDTH)], {"num_heads": HEADS})
    mask = int32(QUERIES + 4, QUERIES + 2)
    yield Fused("QAttention", [rows, weights, bias, *scales, mask, zero, zeros, x(2, BATCH, HEADS, 4, SIZE)], {"num_heads": HEADS, "unidirectional": 1}, (0, 1))


def packed_attention(operands: list, parts: list[str]) -> Fused:
    """Queries, keys and values in one tensor, which onnxruntime supports only on GPUs."""
    bias = ", bias" if len(operands) > 2 else ""
    function = f"""(packed, k_, v_{bias}) => (y) {{
        {", ".join(f"{part}_part" for part in parts)} = Split<axis = 3, num_outputs = {len(parts)}>(packed)
        axis = Constant<value_ints = [3]>()
        shape = Constant<value_ints = [0, 0, -1]>()
        {" ".join(f"{part}_rows = Squeeze({part}_part, axis) {part} = Reshape({part}_rows, shape)" for part in parts)}
        y = com.microsoft.MultiHeadAttention<num_heads = {HEADS}>(q, k, v{bias})
    }}"""
    if len(parts) == 2:
        function = function.replace("(packed, k_, v_)", "(q, packed)")
    return Fused("MultiHeadAttention", operands, {"num_heads": HEADS}, function=function)


def multi_head_attention():
    heads, keys = {"num_heads": HEADS}, 6
    rows, bias = x(BATCH, QUERIES, WIDTH), constant(3 * WIDTH)
    for added in (None, bias):
        for unidirectional in (0, 1):
            yield Fused("MultiHeadAttention", [rows, rows, rows, added], {**heads, "unidirectional": unidirectional})
        yield Fused("MultiHeadAttention", [rows, x(BATCH, keys, WIDTH), x(BATCH, keys, WIDTH), added], {**heads, "scale": 0.3})
        yield packed_attention([x(BATCH, QUERIES, HEADS, 3, SIZE), None, None, added], ["q", "k", "v"])
    yield Fused("MultiHeadAttention", [rows, x(BATCH, keys, WIDTH), x(BATCH, keys, 8), constant(2 * WIDTH + 8)], heads)
    yield packed_attention([rows, x(BATCH, keys, HEADS, 2, SIZE)], ["k", "v"])
    for added in (None, bias):
        yield Fused("MultiHeadAttention", [rows, x(BATCH, HEADS, keys, SIZE), x(BATCH, HEADS, keys, SIZE), added], heads)
    past = [x(BATCH, HEADS, 4, SIZE), x(BATCH, HEADS, 4, SIZE)]
    for total, before, outputs in ((QUERIES, [], (0,)), (QUERIES + 4, past, (0, 1, 2))):
        masks = [None, Given(np.array([[1] * total, [0] + [1] * (total - 1)], np.int32)), x(BATCH, QUERIES, total, dtype="int32", between=(0, 2))]
        for mask in masks:
            for extra in (None, x(BATCH, HEADS, QUERIES, total), x(1, 1, QUERIES, total)):
                yield Fused("MultiHeadAttention", [rows, rows, rows, bias, mask, extra, *before], {**heads, "unidirectional": 1}, outputs)


def grouped_attention():
    """Six heads, of which two groups of three share keys."""
    shared, size, longest = 2, 16, 16
    heads = {"num_heads": 3 * shared, "kv_num_heads": shared}
    caches = [constant(longest, size // 2), constant(longest, size // 2) + np.float32(1)]
    rotations = ([{}, []], [{"do_rotary": 1}, caches], [{"do_rotary": 1, "rotary_interleaved": 1}, caches])

    def rows(queries, batch=BATCH):
        return [x(batch, queries, width * size) for width in (3 * shared, shared, shared)]

    def past(places, batch=BATCH):
        return [x(batch, shared, places, size), x(batch, shared, places, size)]

    for attributes, cache in rotations:
        attributes = {**heads, **attributes}
        first = [*rows(5), *past(0), int32(4, 4), np.int32(5), *cache]
        yield Fused("GroupQueryAttention", first, attributes, (0, 1, 2))
        next = [*rows(1), *past(6), int32(6, 3), np.int32(7), *cache]
        yield Fused("GroupQueryAttention", next, attributes, (0, 1, 2))
        some = [*rows(3, batch=1), *past(4, batch=1), int32(6), np.int32(7), *cache]
        yield Fused("GroupQueryAttention", some, attributes, (0, 1, 2))
        packed = [x(BATCH, 1, 5 * shared * size), None, None, *past(6), int32(6, 6), np.int32(7), *cache]
        yield Fused("GroupQueryAttention", packed, attributes, (0, 1, 2))
    next = [*rows(1), *past(6), int32(6, 6), np.int32(7)]
    for attributes in ({"scale": 0.3}, {"softcap": 2.0}, {"local_window_size": 3}):
        yield Fused("GroupQueryAttention", next, {**heads, **attributes}, (0, 1, 2))
        yield Fused("GroupQueryAttention", [*rows(5), *past(0), int32(4, 4), np.int32(5)], {**heads, **attributes}, (0, 1, 2))
    yield Fused("GroupQueryAttention", [*next[:6], int32(7), *caches, x(BATCH, 1, dtype="int64", between=(0, longest))], {**heads, "do_rotary": 1}, (0, 1, 2))
    yield Fused("GroupQueryAttention", [*next, None, None, None, x(BATCH, 1, 1, 7)], heads, (0, 1, 2))
    for biases in ((BATCH, 1, 5, 5), (1, 3 * shared, 5, 5)):
        yield Fused("GroupQueryAttention", [*rows(5), *past(0), int32(4, 4), np.int32(5), None, None, None, x(*biases)], heads, (0, 1, 2))
    yield Fused("GroupQueryAttention", [*next, None, None, None, x(BATCH, 3 * shared, 1, 7)], heads, (0, 1, 2))
    yield Fused("GroupQueryAttention", [*rows(1), *past(9), int32(6, 6), np.int32(7)], heads, (0, 1, 2))
    yield Fused("GroupQueryAttention", [*rows(1), *past(6), int32(6, 6), int32(7)], heads, (0, 1, 2))
    yield Fused("GroupQueryAttention", [*rows(5), None, None, int32(4, 4), np.int32(5)], heads, (0, 1, 2))


FAMILIES = (rotary, attention, quantised_attention, multi_head_attention, grouped_attention)
CASES = [case for family in FAMILIES for case in family()]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_microsoft(case):
    check(case)
