"""Direct convolutions whose channels fill vectors or not, against ones in float64."""

import ml_dtypes  # noqa: F401, which makes bfloat16 a dtype of numpy
import numpy as np
import onnx2halide
import pytest
from convolutions import error, model
from onnx import numpy_helper


@pytest.mark.parametrize("kernel, strides, pads", [((1, 1), (1, 1), (0,) * 4), ((3, 3), (2, 2), (1,) * 4)], ids=["1x1", "3x3"])
@pytest.mark.parametrize("group", [1, 4])
@pytest.mark.parametrize("channels", [5, 8, 18, 24, 34, 40, 50])
@pytest.mark.parametrize("target", ["host", "x86-64-linux-avx2-fma-f16c-avx-sse41"])
def test_channels_of_a_group(target, channels, group, kernel, strides, pads):
    """Of a vector and a half, of two and an eighth and the like."""
    proto = model(12 * group, channels * group, 9, 14, kernel=kernel, strides=strides, pads=pads, group=group, residual=True)
    assert error(proto, "direct", target=target) < 2e-6


@pytest.mark.parametrize("kernel, strides, pads", [((1, 1), (1, 1), (0,) * 4), ((3, 3), (2, 2), (1,) * 4)], ids=["1x1", "3x3"])
@pytest.mark.parametrize("group, channels", [(13, 8), (11, 4), (19, 2), (4, 8)])
@pytest.mark.parametrize("target", ["host", "x86-64-linux-avx2-fma-f16c-avx-sse41"])
def test_vectors_of_groups(target, group, channels, kernel, strides, pads):
    """Several groups share a vector; the last one is shifted inwards, by whole groups."""
    proto = model(channels * group, channels * group, 9, 14, kernel=kernel, strides=strides, pads=pads, group=group, residual=True)
    assert error(proto, "direct", target=target) < 2e-6


@pytest.mark.parametrize(
    "image, options",
    [
        ((9, 14), {"kernel": (1, 1), "pads": (0,) * 4}),
        ((9, 14), {"kernel": (3, 3), "pads": (1,) * 4, "batch": 2}),
        ((33, 47), {"kernel": (5, 5), "pads": (0, 2, 1, 2), "strides": (2, 2)}),
        ((40, 40), {"kernel": (3, 3), "pads": (2,) * 4, "dilations": (2, 2)}),
        ((500,), {"kernel": (3,), "pads": (1, 1)}),
        ((5, 6, 7), {"kernel": (3, 3, 3), "pads": (1,) * 6}),
        ((4, 3), {"kernel": (3, 3), "pads": (1,) * 4}),
    ],
    ids=str,
)
@pytest.mark.parametrize("inputs, channels", [(16, 1), (64, 1), (24, 2), (64, 3), (40, 4)])
@pytest.mark.parametrize("target", ["host", "x86-64-linux-avx2-fma-f16c-avx-sse41"])
def test_few_channels(target, inputs, channels, image, options):
    """Those of the input fill the vectors of sums."""
    proto = model(inputs, channels, *image, residual=True, **options)
    assert error(proto, "direct", target=target) < 2e-6


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("options", [{"kernel": (1, 1), "pads": (0,) * 4}, {}, {"strides": (2, 2)}], ids=str)
def test_few_channels_of_narrow_floats(dtype, options):
    unit = {"float16": 2**-11, "bfloat16": 2**-8}[dtype]
    assert error(model(32, 2, 9, 14, dtype=np.dtype(dtype), **options), "direct") < 1.01 * unit


@pytest.mark.parametrize("channels", [16, 24, 36])
@pytest.mark.parametrize("options", [{}, {"strides": (2, 2)}, {"batch": 2}], ids=lambda options: "-".join(options) or "plain")
def test_pixels_from_afar(channels, options):
    """Inputs that no near cache holds, of which the next tile's are asked for meanwhile: of whole cache lines and of parts."""
    proto = model(channels, 20, 110, 170, kernel=(1, 1), pads=(0,) * 4, **options)
    assert error(proto, "direct") < 2e-6


@pytest.mark.parametrize("channels", [24, 96])
def test_open_images_from_afar(channels):
    """Of an image of any size the inputs of the next tile are asked for meanwhile, whichever version of tiles runs."""
    proto = model(channels, 20, 12, 12, kernel=(1, 1), pads=(0,) * 4)
    for dim, name in zip(proto.graph.input[0].type.tensor_type.shape.dim[2:], ("height", "width"), strict=True):
        dim.dim_param = name
    for dim in proto.graph.output[0].type.tensor_type.shape.dim[2:]:
        dim.Clear()
    compiled = onnx2halide.compile(proto, convolution="direct")
    for height, width in ((1, 1), (5, 9), (60, 130)):
        x = np.random.default_rng(height).normal(size=(1, channels, height, width)).astype(np.float32)
        weights, bias = (numpy_helper.to_array(tensor).astype(np.float64) for tensor in proto.graph.initializer)
        expected = np.maximum(np.einsum("nchw,kc->nkhw", x, weights[..., 0, 0]) + bias.reshape(-1, 1, 1), 0)
        assert np.abs(compiled.run([x])[0] - expected).max() < 2e-6 * expected.max()
