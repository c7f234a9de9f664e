"""Direct convolutions whose channels do or do not fill vectors, against ones in float64."""

from itertools import product

import make_models
import ml_dtypes  # noqa: F401, which makes bfloat16 a dtype of numpy
import numpy as np
import onnx2halide
import pytest
from convolutions import error, model
from onnx import TensorProto, numpy_helper
from onnx2halide.references import OnnxRuntime
from recipes import Recipe


TARGETS = ("host", "x86-64-linux-avx2-fma-f16c-avx-sse41")
KERNELS = [{"kernel": (1, 1), "pads": (0,) * 4}, {"kernel": (3, 3), "strides": (2, 2)}]


def direct(*shape: int, target: str = "host", **attributes) -> Recipe:
    return Recipe(model, *shape, options={"convolution": "direct", "target": target}, **attributes)


@pytest.mark.parametrize(
    "case",
    [
        direct(12 * group, channels * group, 9, 14, group=group, residual=True, target=target, **kernel)
        for target, channels, group, kernel in product(TARGETS, (5, 8, 18, 24, 34, 40, 50), (1, 4), KERNELS)
    ],
    ids=str,
)
def test_channels_of_a_group(case):
    """One and a half vectors of channels, two and an eighth, and the like."""
    assert error(case) < 2e-6


@pytest.mark.parametrize(
    "case",
    [
        direct(channels * group, channels * group, 9, 14, group=group, residual=True, target=target, **kernel)
        for target, (group, channels), kernel in product(TARGETS, ((13, 8), (11, 4), (19, 2), (4, 8)), KERNELS)
    ],
    ids=str,
)
def test_vectors_of_groups(case):
    """Several groups share a vector; the last one is shifted inwards, by whole groups."""
    assert error(case) < 2e-6


IMAGES = [
    ((9, 14), {"kernel": (1, 1), "pads": (0,) * 4}),
    ((9, 14), {"kernel": (3, 3), "pads": (1,) * 4, "batch": 2}),
    ((33, 47), {"kernel": (5, 5), "pads": (0, 2, 1, 2), "strides": (2, 2)}),
    ((40, 40), {"kernel": (3, 3), "pads": (2,) * 4, "dilations": (2, 2)}),
    ((500,), {"kernel": (3,), "pads": (1, 1)}),
    ((5, 6, 7), {"kernel": (3, 3, 3), "pads": (1,) * 6}),
    ((4, 3), {"kernel": (3, 3), "pads": (1,) * 4}),
]


@pytest.mark.parametrize(
    "case",
    [
        direct(*channels, *image, residual=True, target=target, **attributes)
        for target, channels, (image, attributes) in product(TARGETS, ((16, 1), (64, 1), (24, 2), (64, 3), (40, 4)), IMAGES)
    ],
    ids=str,
)
def test_few_channels(case):
    """Input channels fill the vectors of sums."""
    assert error(case) < 2e-6


@pytest.mark.parametrize(
    "case",
    [
        direct(256, 256, *image, group=256, residual=True, target=target, **attributes)
        for target, (image, attributes) in product(
            TARGETS,
            (
                ((14, 14), {"kernel": (7, 7), "pads": (3,) * 4}),
                ((13, 17), {"kernel": (5, 5), "pads": (2,) * 4, "batch": 2}),
                ((29, 31), {"kernel": (5, 5), "pads": (2, 1, 0, 2), "strides": (2, 2)}),
                ((100, 60), {"kernel": (5, 3), "pads": (4, 2, 4, 2), "dilations": (2, 2)}),
                ((40, 9), {"kernel": (7, 7), "pads": (3,) * 4}),
            ),
        )
    ],
    ids=str,
)
def test_many_taps_of_conflicting_pixels(case):
    """The taps of a depthwise convolution read a copy of a few channels."""
    assert error(case) < 2e-6


def test_conflicting_pixels_of_a_part():
    """The input is part of the channels of a larger image, whose pixels are further apart."""
    rng = np.random.default_rng(0)
    weights = {name: (rng.normal(size=shape) / 8).astype(np.float32) for name, shape in (("w", (1024, 8, 1, 1)), ("taps", (192, 1, 7, 7)))}
    nodes = [
        make_models.node("Conv", "x w", "wide"),
        make_models.node("Split", "wide channels", "first second", axis=1),
        make_models.node("Conv", "second taps", "y", pads=[3] * 4, group=192),
        make_models.node("Relu", "first", "z"),
    ]
    x, *ports = ((name, TensorProto.FLOAT, [1, channels, 14, 14]) for name, channels in (("x", 8), ("y", 192), ("z", 832)))
    proto = make_models.model(nodes, [x], ports, weights | {"channels": np.array([832, 192])})
    inputs = {"x": rng.normal(size=(1, 8, 14, 14)).astype(np.float32)}
    expected, results = OnnxRuntime(proto).run(inputs), onnx2halide.compile(proto, convolution="direct").run_by_name(inputs)
    for name in ("y", "z"):
        assert np.abs(results[name] - expected[name]).max() < 2e-6 * np.abs(expected[name]).max()


@pytest.mark.parametrize(
    "case, unit",
    [
        (direct(32, 2, 9, 14, dtype=np.dtype(dtype), **attributes), unit)
        for dtype, unit in (("float16", 2**-11), ("bfloat16", 2**-8))
        for attributes in ({"kernel": (1, 1), "pads": (0,) * 4}, {}, {"strides": (2, 2)})
    ],
    ids=str,
)
def test_few_channels_of_narrow_floats(case, unit):
    assert error(case) < 1.01 * unit


@pytest.mark.parametrize(
    "case",
    [
        direct(channels, 20, 110, 170, kernel=(1, 1), pads=(0,) * 4, **attributes)
        for channels in (16, 24, 36)
        for attributes in ({}, {"strides": (2, 2)}, {"batch": 2})
    ],
    ids=str,
)
def test_pixels_from_afar(case):
    """Inputs too large for the near caches, so that the next tile's are prefetched: in whole and partial cache lines."""
    assert error(case) < 2e-6


@pytest.mark.parametrize("channels", [24, 96])
def test_open_images_from_afar(channels):
    """With open image sizes, the inputs of the next tile are prefetched in every version of tiles."""
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
