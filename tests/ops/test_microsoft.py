"""Operators of onnxruntime's own domain against onnxruntime, one row per case; against functions that define them, if onnxruntime has
them only on GPUs."""

import itertools
import json
from dataclasses import dataclass

import ml_dtypes
import numpy as np
import onnx
import onnx2halide
import pytest
from onnx import helper, numpy_helper
from onnx2halide.compare import default_floor, default_tolerance, difference
from onnx2halide.references import OnnxReference, OnnxRuntime
from reference_cases import Case, Input, constant, x

MICROSOFT = "com.microsoft"


@dataclass
class Fused(Case):
    """`outputs` holds the indices of those that are requested. The outputs' types are those of the engine's results."""

    outputs: tuple[int, ...] = (0,)
    engine: type = OnnxRuntime
    domain: str = MICROSOFT
    opset: int = 21
    function: str = ""  # what the operator is, in ONNX's textual syntax, for an engine that lacks it

    def __str__(self):
        return f"{super().__str__()} {self.outputs}"

    def model(self, is_reference: bool = False) -> onnx.ModelProto:
        names = ["" if operand is None else f"x{i}" for i, operand in enumerate(self.operands)]
        named = [(name, operand) for name, operand in zip(names, self.operands) if name]
        inputs = [_port(name, operand) for name, operand in named if isinstance(operand, Input)]
        constants = [numpy_helper.from_array(operand, name) for name, operand in named if not isinstance(operand, Input)]
        results = [f"y{i}" if i in self.outputs else "" for i in range(max(self.outputs) + 1)]
        has_function = is_reference and self.function
        domain, attributes = ("function", {}) if has_function else (self.domain, self.attributes)
        node = helper.make_node(self.op, names, results, "node", domain=domain, **attributes)
        graph = helper.make_graph([node], "small", inputs, [onnx.ValueInfoProto(name=name) for name in results if name], constants)
        opsets = [helper.make_opsetid("", self.opset), helper.make_opsetid(MICROSOFT, 1), helper.make_opsetid("function", 1)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
        if has_function:
            header = f'<domain: "function", opset_import: ["" : {self.opset}, "{MICROSOFT}" : 1]>'
            model.functions.append(onnx.parser.parse_function(f"{header} {self.op} {self.function}"))
        return model

    def expected(self) -> dict[str, np.ndarray]:
        return self.engine(self.model(is_reference=True)).run(self.inputs())

    def inputs(self) -> dict[str, np.ndarray]:
        rng = np.random.default_rng(0)
        operands = enumerate(self.operands)
        return {f"x{i}": operand.sample(rng) for i, operand in operands if isinstance(operand, Input)}


class Given(Input):
    """Numbers that come at run time."""

    def __init__(self, numbers):
        self.numbers = np.asarray(numbers)
        super().__init__(self.numbers.shape, str(self.numbers.dtype))

    def sample(self, rng) -> np.ndarray:
        return self.numbers


def _port(name: str, operand: Input) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(operand.dtype)), operand.shape)


def activations():
    for bias in (None, x(17), constant(17)):
        yield Fused("FastGelu", [x(3, 17), bias])
    yield Fused("Gelu", [x(3, 17)])
    yield Fused("QuickGelu", [x(3, 17)])
    yield Fused("QuickGelu", [x(3, 17)], {"alpha": 0.7})
    for bias in (x(17), constant(17)):
        yield Fused("BiasGelu", [x(2, 3, 17), bias])
    split = """(x, b) => (y) {
        s = Add(x, b)
        l, r = Split<axis = -1, num_outputs = 2>(s)
        root = Constant<value_float = 1.4142135>()
        one = Constant<value_float = 1.0>()
        half = Constant<value_float = 0.5>()
        z = Div(r, root)
        e = Erf(z)
        p = Add(e, one)
        h = Mul(r, half)
        g = Mul(h, p)
        y = Mul(l, g)
    }"""
    yield Fused("BiasSplitGelu", [x(2, 3, 34), constant(34)], engine=OnnxReference, function=split)
    yield Fused("BiasAdd", [x(2, 3, 17), constant(17), x(2, 3, 17)], engine=OnnxReference, function="(x, b, s) => (y) { t = Add(x, b) y = Add(t, s) }")


def normalisations():
    for axis in (-1, 1):
        scale = constant(*(2, 3, 17)[axis:])
        yield Fused("SimplifiedLayerNormalization", [x(2, 3, 17), scale], {"axis": axis, "epsilon": 1e-3}, domain="")
        for outputs in ((0,), (0, 1, 2)):
            yield Fused("LayerNormalization", [x(2, 3, 17), scale, scale], {"axis": axis}, outputs, domain="", opset=11)
    gamma, beta, bias = constant(17), constant(17) * np.float32(0.5), constant(17) + np.float32(0.5)
    for outputs in ((0,), (0, 3)):
        for skip in (x(2, 3, 17), x(1, 3, 17), x(3, 17)):
            yield Fused("SkipLayerNormalization", [x(2, 3, 17), skip, gamma, beta], {"epsilon": 1e-5}, outputs)
            yield Fused("SkipSimplifiedLayerNormalization", [x(2, 3, 17), skip, gamma], {}, outputs)
        yield Fused("SkipLayerNormalization", [x(2, 3, 17), x(2, 3, 17), gamma], {}, outputs)
        yield Fused("SkipLayerNormalization", [x(2, 3, 17), x(2, 3, 17), gamma, beta, bias], {}, outputs)
        yield Fused("SkipLayerNormalization", [x(2, 3, 17), x(2, 3, 17), gamma, None, bias], {}, outputs)
        yield Fused("SkipSimplifiedLayerNormalization", [x(2, 3, 17), x(2, 3, 17), gamma, bias], {"epsilon": 1e-2}, outputs)


def embeddings():
    ids, segments, mask = (x(2, 5, dtype="int32", between=(0, high)) for high in (11, 2, 2))
    words, places, kinds = constant(11, 17), constant(8, 17), constant(2, 17)
    gamma, beta = constant(17), constant(17) * np.float32(0.5)
    for outputs in ((0, 1), (0, 1, 2)):
        yield Fused("EmbedLayerNormalization", [ids, segments, words, places, kinds, gamma, beta, mask], {"mask_index_type": 1}, outputs)
        yield Fused("EmbedLayerNormalization", [ids, None, words, places, None, gamma, beta], {"epsilon": 1e-3}, outputs)
    for rows in (1, 2):
        positions = x(rows, 5, dtype="int32", between=(0, 8))
        yield Fused("EmbedLayerNormalization", [ids, segments, words, places, kinds, gamma, beta, None, positions], {}, (0, 2))


def convolutions():
    image, weights, bias, sum = x(2, 3, 9, 11), constant(5, 3, 3, 3), constant(5), x(2, 5, 7, 9)
    activations = [("Relu", []), ("Tanh", []), ("Sigmoid", []), ("LeakyRelu", [0.2]), ("Clip", [-0.5, 0.7]), ("HardSigmoid", [0.3, 0.4])]
    for name, params in activations:
        attributes = {"activation": name, **({"activation_params": params} if params else {})}
        yield Fused("FusedConv", [image, weights, bias], attributes)
    yield Fused("FusedConv", [image, weights, bias, sum], {"activation": "Relu"})
    yield Fused("FusedConv", [image, weights, None, sum], {"activation": "Relu"})
    yield Fused("FusedConv", [x(1, 4, 9, 11), constant(6, 2, 3, 3)], {"group": 2, "strides": [2, 1], "pads": [1, 0, 1, 2], "activation": "Relu"})
    yield Fused("FusedConv", [x(1, 3, 9, 11), constant(6, 3, 3, 3)], {"auto_pad": "SAME_UPPER", "activation": "Tanh"})
    for dtype in ("uint8", "int8"):
        pixels = x(2, 9, 11, 5, dtype=dtype, between=(-99, 99) if dtype == "int8" else (0, 255))
        yield Fused("NhwcMaxPool", [pixels], {"kernel_shape": [3, 2], "strides": [2, 2], "pads": [1, 0, 1, 1]})
    yield Fused("NhwcMaxPool", [x(2, 11, 5, dtype="uint8", between=(0, 255))], {"kernel_shape": [3], "strides": [2]})
    yield Fused("NhwcMaxPool", [x(1, 4, 5, 6, 3, dtype="uint8", between=(0, 255))], {"kernel_shape": [2, 3, 2]})


def products():
    activations = [("Relu", {}), ("LeakyRelu", {"activation_alpha": 0.2}), ("HardSigmoid", {"activation_alpha": 0.3, "activation_beta": 0.4})]
    for name, attributes in activations:
        yield Fused("FusedGemm", [x(7, 17), constant(17, 9), constant(9)], {"activation": name, **attributes})
    yield Fused("FusedGemm", [x(17, 7), constant(9, 17), x(7, 1)], {"activation": "Tanh", "transA": 1, "transB": 1, "alpha": 0.5, "beta": 2.0})


    for trans_a, trans_b in ((0, 0), (1, 0), (0, 1), (1, 1)):
        transposed = {"transA": trans_a, "transB": trans_b}
        left, right = ((17, 7) if trans_a else (7, 17)), ((9, 17) if trans_b else (17, 9))
        yield Fused("FusedMatMul", [x(2, 3, *left), x(2, 3, *right)], {**transposed, "alpha": 0.125})
        yield Fused("FusedMatMul", [x(2, *left), constant(*right)], transposed)
        for batch_a, batch_b in ((1, 0), (0, 1), (1, 1)):
            shapes = [(m, 2, 3, n) if batch else (2, 3, m, n) for batch, (m, n) in ((batch_a, left), (batch_b, right))]
            yield Fused("FusedMatMul", [x(*shapes[0]), x(*shapes[1])], {**transposed, "transBatchA": batch_a, "transBatchB": batch_b})
    yield Fused("TransposeMatMul", [x(17, 7), constant(9, 17)], {"transA": 1, "transB": 1, "alpha": 2.0})


def few_bits():
    """Products with blocks of integers of a few bits."""
    for bits, rows in itertools.product((4, 8), (1, 4)):  # panels that are full, or not, and depths that end within a byte
        for columns, depth, block in ((70, 64, 16), (16, 33, 16), (150, 129, 32)):
            blocks = -(-depth // block)
            weights, scales, zeros = bytes_of(columns, blocks, block * bits // 8), constant(columns, blocks), bytes_of(columns, -(-blocks * bits // 8))
            yield Fused("MatMulNBits", [x(rows, depth), weights, scales, zeros], {"K": depth, "N": columns, "bits": bits, "block_size": block})
    columns = 7
    for bits in (2, 4, 8):
        for depth, block in ((64, 32), (40, 16)):
            attributes = {"K": depth, "N": columns, "bits": bits, "block_size": block}
            blocks, in_byte = -(-depth // block), 8 // bits
            weights, scales = bytes_of(columns, blocks, block // in_byte), constant(columns, blocks)
            packed = bytes_of(columns, -(-blocks // in_byte))
            yield Fused("MatMulNBits", [x(2, 3, depth), weights, scales], attributes)
            yield Fused("MatMulNBits", [x(2, 3, depth), weights, scales.reshape(-1), packed.reshape(-1)], attributes)
            yield Fused("MatMulNBits", [x(2, 3, depth), weights, scales, packed, None, constant(columns)], attributes)
            for rows in ((1,), (1, 3), ()):  # few
                yield Fused("MatMulNBits", [x(*rows, depth), weights, scales, packed, None, constant(columns)], attributes)
            yield Fused("MatMulNBits", [x(1, depth), weights, scales], attributes)
            if bits == 4:
                yield Fused("MatMulNBits", [x(1, depth), weights, scales, constant(columns, blocks)], attributes)
                yield Fused("MatMulNBits", [x(2, 3, depth), weights, scales, constant(columns, blocks)], attributes)
                for groups in (depth, blocks * block):
                    group_of = np.random.default_rng(2).permutation(np.arange(groups) // block).astype(np.int32)
                    for zeros in (None, constant(columns, blocks)):  # packed ones onnxruntime does not read then
                        yield Fused("MatMulNBits", [x(2, 3, depth), weights, scales, zeros, group_of], attributes)


def picked_blocks():
    """Rows of a table of integers of a few bits, in blocks."""
    rows, block = 11, 16
    for picks in (x(2, 3, dtype="int64", between=(0, rows)), np.int32(4), np.array([-1, 0])):
        for bits, depth in ((4, 64), (4, 48), (8, 32)):
            blocks, in_byte = depth // block, 8 // bits
            table, zeros = bytes_of(rows, depth // in_byte), bytes_of(rows, -(-blocks // in_byte))
            attributes = {"gather_axis": 0, "quantize_axis": 1, "block_size": block, "bits": bits}
            for zero in ([], [zeros]):
                yield Fused("GatherBlockQuantized", [table, picks, constant(rows, blocks), *zero], attributes)
    for dtype in ("int4", "uint4"):
        for gather_axis, quantize_axis in ((0, 1), (1, 0), (0, 2)):
            table, blocks = [32, 32, 32], [32, 32, 32]
            blocks[quantize_axis] //= block
            integers = [bytes_of(*shape).astype(np.int8 if dtype == "int4" else np.uint8) % 8 for shape in (table, blocks)]
            data, zeros = (numbers.astype(getattr(ml_dtypes, dtype)) for numbers in integers)
            attributes = {"gather_axis": gather_axis, "quantize_axis": quantize_axis, "block_size": block}
            for zero in ([], [zeros]):
                yield Fused("GatherBlockQuantized", [data, x(2, 3, dtype="int32", between=(0, rows)), constant(*blocks), *zero], attributes)


def bytes_of(*shape) -> np.ndarray:
    return np.random.default_rng(1).integers(0, 256, shape).astype(np.uint8)


def int32(*numbers) -> Given:
    return Given(np.array(numbers, np.int32))


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


def precursors():
    """Operators that ONNX now has."""
    for dtype in ("uint8", "int8", "uint16", "int16"):
        zero, integers = np.dtype(dtype).type(99), x(3, 17, dtype=dtype, between=(0, 99))
        yield Fused("QuantizeLinear", [x(3, 17), np.float32(0.02), zero], opset=13)
        yield Fused("DequantizeLinear", [integers, np.float32(0.02), zero], opset=13)
        for axis in (0, 1):
            zeros = constant((3, 17)[axis], dtype=dtype)
            scales = np.abs(constant(zeros.size)) + np.float32(0.1)
            yield Fused("QuantizeLinear", [x(3, 17), scales, zeros], {"axis": axis})
            yield Fused("DequantizeLinear", [integers, scales, zeros], {"axis": axis})
    for upper in (0, 1):
        yield Fused("Trilu", [x(2, 5, 7), np.int64(-1)], {"upper": upper})
        yield Fused("Trilu", [x(2, 5, 7)], {"upper": upper})
    yield Fused("GatherND", [x(5, 7, 3), np.array([[4, 2], [0, -1]])])
    for axis in (0, 2, -1):
        yield Fused("ExpandDims", [x(5, 7), np.int32(axis)])
    for pads in (np.array([1, 0, 2, 3]), np.array([[1, 0, 2, 3]])):
        yield Fused("Pad", [x(5, 7), pads, np.float32(0.5)])
        yield Fused("Pad", [x(5, 7), pads], {"mode": "reflect"})
    yield Fused("Range", [np.float32(1), np.float32(3), np.float32(0.25)])
    yield Fused("Range", [np.int64(-2), np.int64(9)])
    for mode in ("bilinear", "nearest", "bicubic"):
        yield Fused("GridSample", [x(2, 3, 5, 7), x(2, 4, 6, 2, between=(-1.2, 1.2))], {"mode": mode, "padding_mode": "zeros"})
        yield Fused("GridSample", [x(2, 3, 5, 7), x(2, 4, 6, 2, between=(-1.6, 1.6))], {"mode": mode, "padding_mode": "border", "align_corners": 1})
    yield Fused("Unique", [Given(np.array([3, 1, 3, 2, 1, 9], np.float32))], {}, (0, 1, 2))
    for metric in ("euclidean", "sqeuclidean"):
        yield Fused("CDist", [x(5, 17), constant(9, 17)], {"metric": metric})
        yield Fused("CDist", [x(5, 3), x(1, 3)], {"metric": metric})
        yield Fused("CDist", [x(300, 7), x(70, 7)], {"metric": metric})
        yield Fused("CDist", [x(5, 7, dtype="float64"), x(70, 7, dtype="float64")], {"metric": metric})


def experiments():
    """Operators that ONNX once tried, and that onnxruntime has kept in ONNX's own domain."""
    old = {"domain": "", "opset": 9}
    factors = {"alpha": 0.7, "beta": -1.3}
    for op in ("Affine", "ParametricSoftplus", "ScaledTanh"):
        yield Fused(op, [x(3, 17)], factors, **old)
    yield Fused("Affine", [x(3, 17)], **old)
    yield Fused("Scale", [x(3, 17)], {"scale": 2.5}, **old)
    yield Fused("ThresholdedRelu", [x(3, 17)], {"alpha": 0.5}, **old)
    for attributes in ({}, {"across_channels": 1}, {"normalize_variance": 0}, {"across_channels": 1, "normalize_variance": 0}):
        yield Fused("MeanVarianceNormalization", [x(2, 3, 5, 7)], attributes, domain="", opset=8)
    yield Fused("ImageScaler", [x(2, 3, 5, 7)], {"scale": 0.5, "bias": [0.1, -2.0, 3.0]}, **old)
    yield Fused("Crop", [x(2, 3, 7, 9)], {"border": [1, 0, 2, 3]}, **old)
    yield Fused("Crop", [x(2, 3, 7, 9)], {"border": [1, 2, 0, 0], "scale": [4, 5]}, **old)
    yield Fused("DynamicSlice", [x(5, 7), np.array([1]), np.array([6]), np.array([1])], **old)
    yield Fused("DynamicSlice", [x(5, 7), np.array([1, 2]), np.array([9, -1])], **old)


FAMILIES = (experiments, picked_blocks, precursors, rotary, attention, quantised_attention, multi_head_attention, grouped_attention, activations, normalisations, embeddings, convolutions, products, few_bits)
CASES = [case for family in FAMILIES for case in family()]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_microsoft(case):
    check(case)


def check(case: Fused) -> None:
    expected, model, inputs = case.expected(), case.model(), case.inputs()
    for output in model.graph.output:
        array = expected[output.name]
        output.CopyFrom(helper.make_tensor_value_info(output.name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape))
    for name, array in onnx2halide.compile(model).run_by_name(inputs).items():
        found = difference(array, np.asarray(expected[name]))
        assert not found.exceeds(default_tolerance(array.dtype), default_floor(array.dtype, inputs.values())), f"{name}: {found.text()}"


@pytest.mark.parametrize("rows, operator", [(4, "PackedMatMulNBits"), (5, "PackedMatMul")])
def test_integers_of_few_rows_stay_as_they_are(request, tmp_path, rows, operator):
    case = Fused("MatMulNBits", [x(rows, 64), bytes_of(7, 4, 8), constant(7, 4)], {"K": 64, "N": 7, "bits": 4, "block_size": 16})
    onnx.save(case.model(), tmp_path / "net.onnx")
    assert request.getfixturevalue("onnx2halide")("net.onnx", "-o", "out", "--sources-only").returncode == 0
    steps = json.loads((tmp_path / "out" / "net.json").read_text())["steps"]
    assert [node.split()[0] for step in steps for node in step["nodes"]] == [operator]
