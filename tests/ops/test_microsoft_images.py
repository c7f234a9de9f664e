"""Operators of onnxruntime's own domain for images, spectra and integers; see microsoft_cases.py."""

import numpy as np
import pytest
from onnx2halide.references import OnnxReference
from reference_cases import constant, x
from microsoft_cases import Fused, Given, bytes_of, check

GROUPS = """
    p = {image}
    n = GroupNormalization<num_groups = {groups}, epsilon = 0.001>(p, g, b)
    s = Sigmoid(n)
    m = Mul(n, s)
    y = {result}"""


def group_norms():
    inner = {"image": "Transpose<perm = [0, 3, 1, 2]>({x})", "result": "Transpose<perm = [0, 2, 3, 1]>({m})"}
    outer = {"image": "Identity({x})", "result": "Identity({m})"}
    scales = [constant(6), constant(6) * np.float32(0.5)]
    for activation in (0, 1):
        for is_last, shape, texts in ((1, (2, 5, 7, 6), inner), (0, (2, 6, 5, 7), outer)):
            names = {"x": "x", "m": "m" if activation else "n"}
            body = GROUPS.format(groups=3, **{key: text.format(**names) for key, text in texts.items()})
            attributes = {"groups": 3, "epsilon": 0.001, "activation": activation, "channels_last": is_last}
            yield Fused("GroupNorm", [x(*shape), *scales], attributes, function=f"(x, g, b) => (y) {{{body}}}")
    for skip, text in ((x(2, 5, 7, 6), "Identity(k)"), (x(2, 1, 1, 6), "Identity(k)"), (x(2, 6), "Unsqueeze(k, a)")):
        body = GROUPS.format(groups=2, image="Transpose<perm = [0, 3, 1, 2]>(z)", result="Transpose<perm = [0, 2, 3, 1]>(m)")
        function = f"(x, g, b, k, c) => (y, z) {{ a = Constant<value_ints = [1, 2]>() r = {text} t = Add(x, r) z = Add(t, c) {body} }}"
        attributes = {"groups": 2, "epsilon": 0.001, "activation": 1}
        yield Fused("SkipGroupNorm", [x(2, 5, 7, 6), *scales, skip, constant(6)], attributes, (0, 1), function=function)


def convolutions():
    image, filters, bias = x(2, 9, 11, 3), constant(5, 3, 2, 3), constant(5)
    turn, back = "p = Transpose<perm = [0, 3, 1, 2]>(x)", "y = Transpose<perm = [0, 2, 3, 1]>(c)"
    function = f"(x, w, b) => (y) {{ {turn} f = Transpose<perm = [0, 3, 1, 2]>(w) c = Conv<pads = [1, 0, 1, 2], strides = [2, 1]>(p, f, b) {back} }}"
    yield Fused("NhwcConv", [image, filters, bias], {"pads": [1, 0, 1, 2], "strides": [2, 1]}, engine=OnnxReference, function=function)
    filters = constant(5, 3, 3, 2)
    function = f"(x, w, b, z) => (y) {{ {turn} q = Conv(p, w, b) c = Transpose<perm = [0, 2, 3, 1]>(q) s = Add(c, z) y = Relu(s) }}"
    yield Fused("NhwcFusedConv", [image, filters, bias, x(2, 7, 10, 5)], {"activation": "Relu"}, engine=OnnxReference, function=function)
    for is_last in (0, 1):
        for group in (1, 2):
            pixels = x(2, 9, 11, 4, dtype="uint8", between=(0, 255)) if is_last else x(2, 4, 9, 11, dtype="uint8", between=(0, 255))
            weights, zero = bytes_of(6, 4 // group, 3, 3) % 8, np.uint8(3)
            operands = [pixels, np.float32(0.1), np.uint8(120), weights, np.float32(0.05), zero, np.float32(0.7), np.uint8(130)]
            attributes = {"channels_last": is_last, "group": group, "pads": [1, 1, 0, 1], "strides": [2, 1]}
            yield Fused("QLinearConv", operands, attributes)
            yield Fused("QLinearConv", [*operands, np.arange(-3, 3).astype(np.int32) * 40], attributes)
    for axes in (1, 3):
        pixels, weights = x(2, *(9, 5, 6)[:axes], 3, dtype="uint8", between=(0, 255)), bytes_of(4, 3, *[3] * axes) % 8
        operands = [pixels, np.float32(0.1), np.uint8(120), weights, np.float32(0.05), np.uint8(3), np.float32(0.7), np.uint8(130)]
        yield Fused("QLinearConv", operands, {"channels_last": 1, "pads": [1] * 2 * axes})
    image, filters, bias = x(2, 3, 5, 6), constant(3, 2, 3, 3), constant(2)
    for pads in (np.array([1, 0, 1, 2]), Given([1, 0, 1, 2])):
        for attributes in ({}, {"strides": [2, 2], "output_padding": [1, 0]}):
            yield Fused("ConvTransposeWithDynamicPads", [image, filters, pads], attributes)
            yield Fused("ConvTransposeWithDynamicPads", [image, filters, pads, bias], attributes)


def crops():
    boxes = np.array([[0.1, 0.2, 0.8, 0.9], [-0.2, 0, 0.5, 1.3], [0.9, 0.7, 0.1, 0.2]], np.float32)
    images = np.array([0, 1, 1], np.int32)
    for mode in ("bilinear", "nearest"):
        for size in ((4, 5), (1, 3), (6, 1)):
            for given in (np.array(size, np.int32), Given(np.array(size, np.int32))):
                yield Fused("CropAndResize", [x(2, 3, 7, 9), Given(boxes), images, given], {"mode": mode, "extrapolation_value": 0.25})
        many = x(40, 4, between=(-0.1, 1.1)), x(40, dtype="int32", between=(0, 2))
        yield Fused("CropAndResize", [x(2, 16, 7, 9), *many, np.array([4, 5], np.int32)], {"mode": mode})  # channels fill vectors
    for attributes in ({"size": 3}, {"size": 3, "step": 2}, {"size": 2, "step": 2, "dim": 1}, {"size": 4, "dim": 0}, {"size": 2, "dim": -2}):
        yield Fused("UnfoldTensor", [x(5, 6, 7)], attributes)


def spectra():
    half = "r = Unsqueeze(x, l) d = Constant<value_int = -2>() y = DFT<onesided = 1>(r, , d)"
    yield Fused("Rfft", [x(2, 3, 16)], engine=OnnxReference, function=f"(x) => (y) {{ l = Constant<value_ints = [-1]>() {half} }}")
    whole = """(x) => (y) {
        d = Constant<value_int = -2>() b = Constant<value_ints = [7]>() e = Constant<value_ints = [0]>() a = Constant<value_ints = [-2]>()
        t = Constant<value_ints = [-1]>() c = Constant<value_floats = [1.0, -1.0]>() m = Slice(x, b, e, a, t) j = Mul(m, c)
        s = Concat<axis = -2>(x, j) f = DFT<inverse = 1>(s, , d) r = Constant<value_int = 0>() y = Gather<axis = -1>(f, r)
    }"""
    yield Fused("Irfft", [x(2, 3, 9, 2)], {"signal_ndim": 1}, engine=OnnxReference, function=whole)
    for name, real, imaginary in (("ComplexMul", "Sub", "Add"), ("ComplexMulConj", "Add", "Sub")):
        function = f"""(a, b) => (c) {{
            ar, ai = Split<axis = -1, num_outputs = 2>(a) br, bi = Split<axis = -1, num_outputs = 2>(b)
            p = Mul(ar, br) q = Mul(ai, bi) r = Mul(ai, br) s = Mul(ar, bi) u = {real}(p, q) v = {imaginary}(r, s) c = Concat<axis = -1>(u, v)
        }}"""
        yield Fused(name, [x(3, 5, 2), x(3, 5, 2)], engine=OnnxReference, function=function)


def integers():
    yield Fused("MatMulInteger16", [x(2, 3, 5, dtype="int16", between=(-900, 900)), bytes_of(5, 4).astype(np.int16)])
    pixels, levels = x(2, 3, 5, dtype="uint8", between=(0, 255)), [np.float32(0.1), np.uint8(90), np.float32(0.07), np.uint8(20)]
    function = """(x, xs, xz, ys, yz) => (y) { f = DequantizeLinear(x, xs, xz) a = Constant<value_ints = [1, 2]>()
        m = ReduceMean<keepdims = 0>(f, a) y = QuantizeLinear(m, ys, yz) }"""
    yield Fused("QLinearReduceMean", [pixels, *levels], {"axes": [1, 2], "keepdims": 0}, engine=OnnxReference, function=function)
    function = "(x) => (y) { w = Cast<to = 6>(x) a = Constant<value_ints = [1]>() y = ReduceSum<keepdims = 1>(w, a) }"
    yield Fused("ReduceSumInteger", [pixels], {"axes": [1], "keepdims": 1}, engine=OnnxReference, function=function)
    function = "(a, az, b, bz) => (c) { p = Cast<to = 6>(a) q = Cast<to = 6>(az) r = Cast<to = 6>(b) s = Cast<to = 6>(bz) t = Sub(p, q) u = Sub(r, s) c = Mul(t, u) }"
    yield Fused("MulInteger", [pixels, np.uint8(7), x(3, 1, dtype="uint8", between=(0, 255)), np.uint8(99)], engine=OnnxReference, function=function)


def fused():
    function = """(x, w, b) => (y) { p = MatMul(x, w) s = Add(p, b) y = Gelu<approximate = "tanh">(s) }"""
    yield Fused("GemmFastGelu", [x(2, 3, 17), constant(17, 9), constant(9)], function=function)
    function = "(a, b) => (y) { t = Transpose<perm = [0, 2, 1]>(a) p = MatMul(t, b) h = Constant<value_float = 0.5>() q = Mul(p, h) y = LeakyRelu<alpha = 0.2>(q) }"
    attributes = {"transA": 1, "alpha": 0.5, "activation": "LeakyRelu", "activation_alpha": 0.2}
    yield Fused("FusedMatMulActivation", [x(2, 17, 3), x(2, 17, 9)], attributes, engine=OnnxReference, function=function)
    for axis, shape in ((3, (2, 1, 1, 7)), (2, (1, 1, 5, 7))):
        flat = "f = Softmax<axis = -1>(r)"
        function = f"(x, b) => (y) {{ s = Add(x, b) r = Flatten<axis = {axis}>(s) {flat} z = Shape(s) y = Reshape(f, z) }}"
        attributes = {"axis": axis, "is_inner_broadcast": 1}
        yield Fused("BiasSoftmax", [x(2, 3, 5, 7), x(*shape)], attributes, engine=OnnxReference, function=function)
    function = "(x, b, r) => (y) { s = Add(x, b) y = Add(s, r) }"
    yield Fused("BiasDropout", [x(2, 3, 7), constant(7), x(2, 3, 7)], engine=OnnxReference, function=function)


CASES = [case for family in (group_norms, convolutions, crops, spectra, integers, fused) for case in family()]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_microsoft(case):
    check(case)
