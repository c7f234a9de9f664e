"""Convolutions and products of dequantised 8-bit operands, which sum integers, against ONNX's reference, which multiplies real numbers."""

import numpy as np
import onnx
import onnx2halide
import pytest
from make_models import FLOAT, model, node
from onnx import TensorProto
from onnx2halide.references import OnnxReference

MATRIX, COLUMNS, IMAGE = [7, 18], 9, [2, 18, 6, 7]
# Terms in pairs, and in quads.
DEPTHS = [18, 20]


def draw(dtype, *shape: int) -> np.ndarray:
    bounds = np.iinfo(dtype)
    return np.random.default_rng(sum(shape)).integers(bounds.min, bounds.max, shape, endpoint=True).astype(dtype)


def scales(count: int | None) -> np.ndarray:
    shape = () if count is None else count
    return np.random.default_rng(1).uniform(0.01, 0.1, shape).astype(np.float32)


def check(product: onnx.NodeProto, shape: list[int], dtype, zero_point, constants: dict, axis: int, rank: int, **options) -> None:
    """`product` reads x, dequantised, and r, w dequantised along `axis`; what else it reads is among the constants."""
    nodes = [
        node("DequantizeLinear", "q x_scale x_zero_point", "x"),
        node("DequantizeLinear", "w w_scale", "r", axis=axis),
        product,
    ]
    constants |= {"x_scale": np.float32(0.03), "x_zero_point": np.asarray(zero_point, dtype)}
    element = TensorProto.UINT8 if dtype is np.uint8 else TensorProto.INT8
    port = [f"y{i}" for i in range(rank)]
    proto = model(nodes, [("q", element, shape)], [("y", FLOAT, port)], constants)
    inputs = {"q": draw(dtype, *(2 if extent == "n" else extent for extent in shape))}
    expected = OnnxReference(proto).run(inputs)["y"]
    found = onnx2halide.compile(proto, **options).run_by_name(inputs)["y"]
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize("target", ["host", "x86-64-linux-sse41", "x86-64-linux-sse41-avx-f16c-fma-avx2"])
@pytest.mark.parametrize("dtype, zero_point", [(np.uint8, 3), (np.uint8, 255), (np.int8, 0), (np.int8, -128)])
@pytest.mark.parametrize("per_column", [False, True])
@pytest.mark.parametrize("depth", DEPTHS)
def test_matmul(target, dtype, zero_point, per_column, depth):
    constants = {"w": draw(np.int8, depth, COLUMNS), "w_scale": scales(COLUMNS if per_column else None)}
    check(node("MatMul", "x r", "y"), [MATRIX[0], depth], dtype, zero_point, constants, 1, 2, target=target)


@pytest.mark.parametrize("depth", DEPTHS)
def test_matmul_of_open_batch(depth):
    constants = {"w": draw(np.int8, depth, COLUMNS), "w_scale": scales(None)}
    check(node("MatMul", "x r", "y"), ["n", MATRIX[0], depth], np.uint8, 128, constants, 1, 3)


@pytest.mark.parametrize("has_bias", [False, True])
@pytest.mark.parametrize("depth", DEPTHS)
def test_gemm(has_bias, depth):
    constants = {"w": draw(np.int8, COLUMNS, depth), "w_scale": scales(COLUMNS), "c": scales(COLUMNS)}
    check(node("Gemm", "x r c" if has_bias else "x r", "y", transB=1), [MATRIX[0], depth], np.uint8, 128, constants, 0, 2)


@pytest.mark.parametrize("inputs", [3, 7, *DEPTHS])
@pytest.mark.parametrize("channels", [1, 5, 16, 40])
@pytest.mark.parametrize(
    "size, attributes",
    [
        (1, {}),
        (3, {"pads": [1, 1, 1, 1]}),
        (3, {"pads": [2, 0, 1, 2], "strides": [2, 1]}),
        (3, {"pads": [2, 2, 2, 2], "dilations": [2, 2]}),
    ],
)
def test_convolution(inputs, channels, size, attributes):
    constants = {"w": draw(np.int8, channels, inputs, size, size), "w_scale": scales(channels), "b": scales(channels)}
    check(node("Conv", "x r b", "y", **attributes), [IMAGE[0], inputs, *IMAGE[2:]], np.uint8, 130, constants, 0, 4)


@pytest.mark.parametrize("group, inputs, channels", [(3, 16, 16), (2, 32, 32), (3, 8, 48), (2, 6, 16), (3, 4, 5)])
@pytest.mark.parametrize("target", ["host", "x86-64-linux-sse41-avx-f16c-fma-avx2"])
def test_grouped_convolution(target, group, inputs, channels):
    """Of groups with whole blocks of channels and without."""
    constants = {"w": draw(np.int8, group * channels, inputs, 3, 3), "w_scale": scales(group * channels), "b": scales(group * channels)}
    convolution = node("Conv", "x r b", "y", pads=[1, 1, 1, 1], group=group)
    check(convolution, [IMAGE[0], group * inputs, *IMAGE[2:]], np.uint8, 130, constants, 0, 4, target=target)


@pytest.mark.parametrize("shape, weights", [([1, 6, 21], (8, 6, 3)), ([1, 8, 21], (8, 8, 3)), ([1, 4, 3, 5, 6], (8, 4, 2, 2, 2))])
@pytest.mark.parametrize("pad", [0, 1])
def test_convolution_of_other_ranks(shape, weights, pad):
    constants = {"w": draw(np.int8, *weights), "w_scale": scales(None)}
    check(node("Conv", "x r", "y", pads=[pad, 0] * (len(shape) - 2)), shape, np.int8, -3, constants, 0, len(shape))


@pytest.mark.parametrize("inputs", [3, 20])
@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize(
    "size, attributes",
    [(2, {"strides": [2, 2]}), (3, {"strides": [2, 2], "pads": [1, 1, 1, 1], "output_padding": [1, 1]}), (3, {"pads": [0, 1, 1, 0]})],
)
def test_transposed_convolution(inputs, per_channel, size, attributes):
    """The convolutions over its grid sum integers."""
    channels = 5
    constants = {"w": draw(np.int8, inputs, channels, size, size), "w_scale": scales(channels if per_channel else None), "b": scales(channels)}
    check(node("ConvTranspose", "x r b", "y", **attributes), [IMAGE[0], inputs, *IMAGE[2:]], np.uint8, 130, constants, 1, 4)
