"""Operators of onnxruntime's own domain, one row per case."""

import itertools

import ml_dtypes
import numpy as np
import pytest
from microsoft_cases import Fused, Given, bytes_of, check
from onnx2halide.references import OnnxReference
from reference_cases import constant, x


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


FAMILIES = (experiments, picked_blocks, precursors, activations, normalisations, embeddings, convolutions, products, few_bits)
CASES = [case for family in FAMILIES for case in family()]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_microsoft(case):
    check(case)
