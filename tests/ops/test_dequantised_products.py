"""Convolutions and products of dequantised 8-bit operands, which sum integers, against ONNX's reference, which multiplies real numbers."""

from itertools import product

import numpy as np
import onnx
import pytest
from make_models import FLOAT, model, node
from onnx import TensorProto, helper
from onnx2halide.references import OnnxReference
from recipes import Recipe

MATRIX, COLUMNS, IMAGE = [7, 18], 9, [2, 18, 6, 7]
# Terms in pairs, and in quads.
DEPTHS = [18, 20]


def draw(dtype, *shape: int) -> np.ndarray:
    bounds = np.iinfo(dtype)
    return np.random.default_rng(sum(shape)).integers(bounds.min, bounds.max, shape, endpoint=True).astype(dtype)


def scales(count: int | None) -> np.ndarray:
    shape = () if count is None else count
    return np.random.default_rng(1).uniform(0.01, 0.1, shape).astype(np.float32)


def dequantised(consumer: onnx.NodeProto, shape: list, dtype, zero_point, constants: dict, axis: int) -> onnx.ModelProto:
    """`consumer` reads x, dequantised, and r, and w, dequantised along `axis`; its other operands are constants."""
    nodes = [
        node("DequantizeLinear", "q x_scale x_zero_point", "x"),
        node("DequantizeLinear", "w w_scale", "r", axis=axis),
        consumer,
    ]
    constants |= {"x_scale": np.float32(0.03), "x_zero_point": np.asarray(zero_point, dtype)}
    element = TensorProto.UINT8 if dtype is np.uint8 else TensorProto.INT8
    return model(nodes, [("q", element, shape)], [("y", FLOAT, [f"y{i}" for i in range(len(shape))])], constants)


def check(case: Recipe) -> None:
    proto = case.model()
    port = proto.graph.input[0].type.tensor_type
    inputs = {"q": draw(helper.tensor_dtype_to_np_dtype(port.elem_type), *(dim.dim_value or 2 for dim in port.shape.dim))}
    expected = OnnxReference(proto).run(inputs)["y"]
    found = case.compile().run_by_name(inputs)["y"]
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())


def matmul(depth, per_column, dtype, zero_point) -> onnx.ModelProto:
    constants = {"w": draw(np.int8, depth, COLUMNS), "w_scale": scales(COLUMNS if per_column else None)}
    return dequantised(node("MatMul", "x r", "y"), [MATRIX[0], depth], dtype, zero_point, constants, 1)


@pytest.mark.parametrize(
    "case",
    [
        Recipe(matmul, depth, per_column, *zero_point, options={"target": target})
        for target, zero_point, per_column, depth in product(
            ("host", "x86-64-linux-sse41", "x86-64-linux-sse41-avx-f16c-fma-avx2"),
            ((np.uint8, 3), (np.uint8, 255), (np.int8, 0), (np.int8, -128)),
            (False, True),
            DEPTHS,
        )
    ],
    ids=str,
)
def test_matmul(case):
    check(case)


def matmul_of_open_batch(depth) -> onnx.ModelProto:
    constants = {"w": draw(np.int8, depth, COLUMNS), "w_scale": scales(None)}
    return dequantised(node("MatMul", "x r", "y"), ["n", MATRIX[0], depth], np.uint8, 128, constants, 1)


@pytest.mark.parametrize("case", [Recipe(matmul_of_open_batch, depth) for depth in DEPTHS], ids=str)
def test_matmul_of_open_batch(case):
    check(case)


def gemm(depth, has_bias) -> onnx.ModelProto:
    constants = {"w": draw(np.int8, COLUMNS, depth), "w_scale": scales(COLUMNS), "c": scales(COLUMNS)}
    return dequantised(node("Gemm", "x r c" if has_bias else "x r", "y", transB=1), [MATRIX[0], depth], np.uint8, 128, constants, 0)


@pytest.mark.parametrize("case", [Recipe(gemm, depth, has_bias) for depth in DEPTHS for has_bias in (False, True)], ids=str)
def test_gemm(case):
    check(case)


def convolution(inputs, channels, size, **attributes) -> onnx.ModelProto:
    constants = {"w": draw(np.int8, channels, inputs, size, size), "w_scale": scales(channels), "b": scales(channels)}
    return dequantised(node("Conv", "x r b", "y", **attributes), [IMAGE[0], inputs, *IMAGE[2:]], np.uint8, 130, constants, 0)


WINDOWS = [
    (1, {}),
    (3, {"pads": [1, 1, 1, 1]}),
    (3, {"pads": [2, 0, 1, 2], "strides": [2, 1]}),
    (3, {"pads": [2, 2, 2, 2], "dilations": [2, 2]}),
]


@pytest.mark.parametrize(
    "case",
    [
        Recipe(convolution, inputs, channels, size, **attributes)
        for inputs, channels, (size, attributes) in product((3, 7, *DEPTHS), (1, 5, 16, 40), WINDOWS)
    ],
    ids=str,
)
def test_convolution(case):
    check(case)


def grouped_convolution(group, inputs, channels) -> onnx.ModelProto:
    constants = {"w": draw(np.int8, group * channels, inputs, 3, 3), "w_scale": scales(group * channels), "b": scales(group * channels)}
    convolution = node("Conv", "x r b", "y", pads=[1, 1, 1, 1], group=group)
    return dequantised(convolution, [IMAGE[0], group * inputs, *IMAGE[2:]], np.uint8, 130, constants, 0)


@pytest.mark.parametrize(
    "case",
    [
        Recipe(grouped_convolution, *sizes, options={"target": target})
        for target in ("host", "x86-64-linux-sse41-avx-f16c-fma-avx2")
        for sizes in ((3, 16, 16), (2, 32, 32), (3, 8, 48), (2, 6, 16), (3, 4, 5))
    ],
    ids=str,
)
def test_grouped_convolution(case):
    """Groups with and without whole blocks of channels."""
    check(case)


def convolution_of_rank(shape, weights, pad) -> onnx.ModelProto:
    constants = {"w": draw(np.int8, *weights), "w_scale": scales(None)}
    return dequantised(node("Conv", "x r", "y", pads=[pad, 0] * (len(shape) - 2)), shape, np.int8, -3, constants, 0)


@pytest.mark.parametrize(
    "case",
    [
        Recipe(convolution_of_rank, shape, weights, pad)
        for shape, weights in (([1, 6, 21], (8, 6, 3)), ([1, 8, 21], (8, 8, 3)), ([1, 4, 3, 5, 6], (8, 4, 2, 2, 2)))
        for pad in (0, 1)
    ],
    ids=str,
)
def test_convolution_of_other_ranks(case):
    check(case)


def block(inputs, channels, stride) -> onnx.ModelProto:
    """A block of a quantised MobileNet: its sums are requantised, clipped, and, if the image keeps its size, added to its input."""
    nodes, constants, y = [], {"low": np.float32(0), "high": np.float32(2)}, "q"

    def quantise(name, x, scale, zero_point):
        constants.update({f"{name}_scale": np.float32(scale), f"{name}_zero_point": np.uint8(zero_point)})
        nodes.append(node("QuantizeLinear", f"{x} {name}_scale {name}_zero_point", name))

    def dequantise(name):
        nodes.append(node("DequantizeLinear", f"{name} {name}_scale {name}_zero_point", f"{name}_real"))
        return f"{name}_real"

    def convolve(name, x, weights, **attributes):
        constants.update({f"{name}_w": draw(np.int8, *weights), f"{name}_w_scale": scales(weights[0]) / 100, f"{name}_b": scales(weights[0])})
        nodes.append(node("DequantizeLinear", f"{name}_w {name}_w_scale", f"{name}_r", axis=0))
        nodes.append(node("Conv", f"{x} {name}_r {name}_b", name, **attributes))
        return name

    constants.update({"q_scale": np.float32(0.03), "q_zero_point": np.uint8(130)})
    x = dequantise("q")
    nodes.append(node("Clip", f"{convolve('expanded', x, (channels, inputs, 1, 1))} low high", "clipped"))
    quantise("wide", "clipped", 2 / 255, 0)
    spread = convolve("spread", dequantise("wide"), (channels, 1, 3, 3), group=channels, pads=[1, 1, 1, 1], strides=[stride, stride])
    nodes.append(node("Relu", spread, "positive"))
    quantise("deep", "positive", 0.02, 0)
    y = convolve("projected", dequantise("deep"), (inputs, channels, 1, 1))
    quantise("narrow", y, 0.002, 120)
    y = dequantise("narrow")
    if stride == 1:
        nodes.append(node("Add", f"{x} {y}", "sum"))
        quantise("added", "sum", 0.04, 110)
        y = dequantise("added")
    nodes.append(node("Identity", y, "y"))
    sizes = [16 // stride, 20 // stride]
    return model(nodes, [("q", TensorProto.UINT8, [1, inputs, 16, 20])], [("y", FLOAT, [1, inputs, *sizes])], constants)


@pytest.mark.parametrize(
    "case",
    [
        Recipe(block, *sizes, options={"target": target})
        for target in ("host", "x86-64-linux-sse41-avx-f16c-fma-avx2")
        for sizes in ((16, 96, 1), (24, 72, 2), (24, 152, 1), (18, 40, 1))
    ],
    ids=str,
)
def test_block(case):
    """Numbers next to where rounding changes may be one step off, and what follows a little more."""
    inputs = {"q": draw(np.uint8, *(dim.dim_value for dim in case.model().graph.input[0].type.tensor_type.shape.dim))}
    expected = OnnxReference(case.model()).run(inputs)["y"]
    step = np.diff(np.unique(expected)).min()
    steps = np.abs(case.compile().run_by_name(inputs)["y"] - expected) / step
    assert np.ptp(expected) > 50 * step
    assert steps.max() < 1.5
    assert np.mean(steps > 0.5) < 0.01


def transposed_convolution(inputs, per_channel, size, **attributes) -> onnx.ModelProto:
    channels = 5
    constants = {"w": draw(np.int8, inputs, channels, size, size), "w_scale": scales(channels if per_channel else None), "b": scales(channels)}
    return dequantised(node("ConvTranspose", "x r b", "y", **attributes), [IMAGE[0], inputs, *IMAGE[2:]], np.uint8, 130, constants, 1)


TRANSPOSED_WINDOWS = [
    (2, {"strides": [2, 2]}),
    (3, {"strides": [2, 2], "pads": [1, 1, 1, 1], "output_padding": [1, 1]}),
    (3, {"pads": [0, 1, 1, 0]}),
]


@pytest.mark.parametrize(
    "case",
    [
        Recipe(transposed_convolution, inputs, per_channel, size, **attributes)
        for inputs, per_channel, (size, attributes) in product((3, 20), (False, True), TRANSPOSED_WINDOWS)
    ],
    ids=str,
)
def test_transposed_convolution(case):
    """The convolutions over its grid sum integers."""
    check(case)
