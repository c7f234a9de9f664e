"""Small convolutions by Winograd's algorithm against direct ones in float64."""

import subprocess

import ml_dtypes  # noqa: F401, which makes bfloat16 a dtype of numpy
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import onnx2halide
from convolutions import error, exact, model, of_open_size, resized
from onnx2halide.bench import Compiled
from onnx2halide.clocks import StepClock
from onnx2halide.compiler import Options
from onnx2halide.model import Model
from paths import COMPILER
from recipes import Recipe

NARROW_FLOATS = [((16, 32, 9, 11), {}), ((64, 64, 28, 28), {"residual": True}), ((32, 32, 9, 12), {"group": 2}), ((3, 16, 20, 20), {})]


@pytest.mark.parametrize(
    "case, unit",
    [
        (Recipe(model, *shape, dtype=np.dtype(dtype), options={"convolution": "winograd"}, **attributes), unit)
        for dtype, unit in (("float16", 2**-11), ("bfloat16", 2**-8))
        for shape, attributes in NARROW_FLOATS
    ],
    ids=str,
)
def test_narrow_floats(case, unit):
    """They are widened when they are read, and rounded once after the last sum: Winograd's own error is much smaller."""
    rounded = len(case.model().graph.input)  # the sum, and what is added to it
    assert error(case) < 1.01 * rounded * unit


CONVOLUTIONS = [
    ((16, 16, 8, 8), {}),
    ((16, 32, 9, 11), {}),  # tiles that extend past the outputs
    ((3, 5, 7, 6), {}),  # fewer channels than a vector has lanes
    ((24, 20, 13, 13), {"bias": False}),  # channels that do not fill a vector
    ((8, 16, 10, 10), {"pads": (0, 0, 0, 0)}),
    # Whole tiles, more of which are computed by products than there are.
    ((16, 16, 22, 22), {"pads": (0, 0, 0, 0)}),
    ((32, 96, 24, 8), {"kernel": (5, 5), "pads": (0, 0, 0, 0)}),
    ((96, 96, 20, 10), {"kernel": (1, 3), "pads": (0, 0, 0, 0)}),
    ((8, 16, 10, 10), {"pads": (2, 0, 1, 3)}),
    ((16, 48, 12, 20), {"batch": 3, "residual": True}),
    ((1, 1, 1, 1), {}),
    ((64, 64, 56, 56), {"residual": True}),
    ((160, 96, 3, 40), {"batch": 2}),
    ((128, 128, 28, 28), {}),  # tiles of 8 x 6 places
    ((48, 32, 40, 56), {"kernel": (5, 5), "pads": (2, 2, 2, 2)}),
    ((256, 256, 14, 14), {}),  # more weights than inputs: tiles of channels are outermost
    ((512, 512, 7, 7), {}),
    ((512, 512, 14, 14), {"group": 32, "batch": 8}),  # pixels that are moved apart in memory
    ((32, 32, 9, 12), {"group": 2}),
    ((12, 48, 14, 14), {"group": 3, "residual": True}),  # groups with different numbers of input and output channels
    ((256, 256, 7, 7), {"group": 8, "batch": 2}),
    ((16, 32, 12, 14), {"kernel": (5, 5), "pads": (2, 2, 2, 2)}),
    ((3, 5, 9, 8), {"kernel": (5, 5)}),
    ((1, 8, 5, 5), {"kernel": (5, 5), "pads": (0, 0, 0, 0)}),
    ((96, 256, 27, 27), {"kernel": (5, 5), "pads": (2, 2, 2, 2), "group": 2}),
    ((16, 32, 12, 11), {"kernel": (2, 2), "pads": (1, 1, 0, 0)}),
    ((24, 16, 7, 9), {"kernel": (2, 2), "pads": (0, 0, 0, 0), "bias": False}),
    ((256, 256, 8, 8), {"kernel": (2, 2)}),
    ((32, 48, 13, 10), {"kernel": (4, 4), "pads": (1, 1, 2, 2)}),
    ((5, 3, 9, 9), {"kernel": (4, 4), "pads": (3, 3, 3, 3), "batch": 2}),
    ((32, 48, 12, 21), {"kernel": (1, 3), "pads": (0, 1, 0, 1)}),
    ((24, 32, 18, 5), {"kernel": (5, 1), "pads": (2, 0, 2, 0), "batch": 2}),
    ((16, 32, 9, 14), {"kernel": (2, 5), "pads": (0, 2, 1, 2)}),
    ((64, 64, 14, 14), {"kernel": (5, 5), "pads": (4, 0, 3, 1), "batch": 2, "residual": True}),
    # Sums of smaller kernels.
    ((16, 32, 14, 15), {"kernel": (6, 6), "pads": (2, 2, 3, 3)}),
    ((24, 20, 12, 17), {"kernel": (7, 7), "pads": (3, 3, 3, 3), "bias": False}),  # of 4 and 3 taps
    ((1, 16, 29, 20), {"kernel": (8, 8), "pads": (3, 3, 4, 4)}),
    ((32, 32, 13, 11), {"kernel": (3, 9), "pads": (0, 0, 0, 2), "group": 2, "residual": True}),
    ((16, 48, 90), {"kernel": (11,), "pads": (25, 25), "dilations": (5,), "batch": 2}),
    ((16, 16, 4, 13, 12), {"kernel": (2, 6, 7), "pads": (0, 3, 3, 1, 2, 3)}),
    # Tiles of one row, shared by several rows.
    ((1, 24, 17, 30), {"kernel": (5, 5), "pads": (2, 2, 2, 2), "batch": 2, "residual": True}),
    ((1, 20, 33, 31), {"kernel": (9, 5), "strides": (2, 1), "pads": (0, 0, 0, 0)}),
    ((1, 16, 24, 28), {"kernel": (5, 5), "dilations": (3, 2), "pads": (2, 4, 2, 4)}),
    ((1, 16, 4, 24, 30), {"kernel": (2, 7, 5), "pads": (0, 3, 2, 1, 3, 2)}),
    ((2, 16, 20, 40), {"kernel": (9, 3), "pads": (4, 4, 4, 4)}),
    ((3, 20, 17, 30), {"kernel": (5, 5), "pads": (2, 2, 2, 2)}),
    ((16, 48, 7, 64), {"kernel": (7, 3), "pads": (0, 1, 0, 1), "bias": False}),
    # One channel, with places as lanes.
    ((1, 16, 200), {"kernel": (5,), "pads": (2, 2)}),
    ((1, 16, 60, 30), {"kernel": (5, 1), "pads": (2, 0, 2, 0)}),
    ((1, 16, 40, 24), {"kernel": (6, 5), "strides": (4, 2), "pads": (1, 1, 1, 1)}),
    # Strides: a part for each phase.
    ((16, 32, 15, 18), {"strides": (2, 2)}),
    ((3, 20, 33, 30), {"kernel": (7, 7), "strides": (2, 2), "pads": (3, 3, 3, 3)}),
    ((24, 16, 31, 29), {"kernel": (11, 5), "strides": (4, 3), "pads": (5, 2, 5, 2), "batch": 2, "residual": True}),
    ((16, 48, 14, 13), {"kernel": (3, 2), "strides": (1, 2), "pads": (1, 0, 1, 1)}),
    ((16, 16, 20, 21), {"kernel": (14, 3), "strides": (2, 2), "bias": False}),  # phases in several parts
    ((32, 32, 12, 17), {"kernel": (1, 3), "strides": (2, 2), "pads": (0, 0, 0, 0), "group": 2}),
    # Signals.
    ((16, 32, 50), {}),
    ((24, 20, 37), {"kernel": (5,), "pads": (0, 3), "bias": False}),
    ((64, 96, 1000), {"kernel": (4,), "batch": 2, "residual": True}),
    ((48, 64, 30), {"group": 2, "pads": (0, 0)}),
    # Volumes, whose taps along the first axis may be dilated.
    ((16, 32, 5, 9, 8), {}),
    ((24, 20, 4, 7, 11), {"kernel": (2, 3, 3), "pads": (1, 1, 0, 0, 1, 2), "batch": 2, "residual": True}),
    ((32, 32, 9, 8, 8), {"kernel": (3, 5, 1), "pads": (0, 2, 0, 0, 2, 0), "strides": (2, 1, 1)}),
    ((8, 16, 7, 6, 6), {"dilations": (3, 1, 1), "pads": (3, 1, 1, 3, 1, 1)}),
    ((256, 256, 2, 7, 7), {}),
    ((16, 32, 5, 11, 12), {"strides": (2, 2, 2)}),
    ((48, 32, 61), {"kernel": (5,), "strides": (2,), "pads": (2, 2)}),
    ((16, 48, 3, 4, 6, 7), {"kernel": (2, 3, 3, 3), "pads": (1, 1, 1, 1, 0, 1, 1, 1)}),
    # Dilated taps.
    ((16, 32, 20, 24), {"dilations": (2, 2), "pads": (2, 2, 2, 2)}),
    ((24, 20, 13, 17), {"dilations": (3, 1), "pads": (3, 1, 2, 0), "bias": False, "residual": True}),
    ((320, 256, 33, 33), {"dilations": (6, 6), "pads": (6, 6, 6, 6)}),
    ((16, 16, 9, 9), {"dilations": (7, 5), "pads": (7, 5, 7, 5), "batch": 2}),
    ((32, 32, 30, 14), {"kernel": (5, 1), "dilations": (4, 1), "pads": (8, 0, 8, 0), "group": 2}),
    ((64, 64, 300), {"dilations": (8,), "pads": (8, 8)}),
    ((32, 48, 31), {"kernel": (2,), "dilations": (5,), "pads": (5, 0), "batch": 3}),
    ((16, 32, 5, 12, 12), {"dilations": (1, 2, 2), "pads": (1, 2, 2, 1, 2, 2)}),
]


@pytest.mark.parametrize(
    "case",
    [
        Recipe(model, *shape, options={"convolution": convolution}, **attributes)
        for convolution in ("winograd", "auto")
        for shape, attributes in CONVOLUTIONS
    ],
    ids=str,
)
def test_against_float64(case):
    """The bound that conv_winograd.h states."""
    assert error(case) < 1e-5


def test_direct_is_closer():
    assert error(Recipe(model, 64, 64, 20, 20, options={"convolution": "direct"})) < 2e-6


def test_phases_of_a_transposed_convolution():
    """4x4 with stride 2: each phase is a 2x2 convolution, or a 3x3 convolution has a channel for each phase."""
    rng = np.random.default_rng(0)
    for channels in (64, 6):
        weights = rng.normal(0, 0.05, (32, channels, 4, 4)).astype(np.float32)
        graph = helper.make_graph(
            [helper.make_node("ConvTranspose", ["x", "w"], ["y"], strides=[2, 2], pads=[1, 1, 1, 1])],
            "phases",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 32, 13, 10])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, channels, 26, 20])],
            [numpy_helper.from_array(weights, "w")],
        )
        proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
        x = rng.normal(size=(1, 32, 13, 10)).astype(np.float32)
        products = np.einsum("nchw,ckyx->nkhwyx", x.astype(np.float64), weights.astype(np.float64))
        expected = np.zeros((1, channels, 28, 22))
        for y in range(4):
            for column in range(4):
                expected[:, :, y : y + 26 : 2, column : column + 20 : 2] += products[..., y, column]
        expected = expected[:, :, 1:-1, 1:-1]
        got = onnx2halide.compile(proto, convolution="winograd").run([x])[0]
        assert np.abs(got - expected).max() / np.abs(expected).max() < 1e-5


@pytest.mark.parametrize("options", [{"strides": (2, 2), "kernel": (2, 2)}, {"group": 2}, {"dilations": (1, 2), "strides": (1, 3)}], ids=str)
def test_only_what_it_can_compute(options):
    """Kernels without two taps in a phase, dilated strides, and groups without whole blocks of channels stay direct even if Winograd is requested."""
    proto = model(8, 8, 12, 12, **options)
    shape = [dim.dim_value for dim in proto.graph.input[0].type.tensor_type.shape.dim]
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    results = [onnx2halide.compile(proto, convolution=name).run([x])[0] for name in ("winograd", "direct")]
    assert np.array_equal(*results)


@pytest.mark.parametrize(
    "inputs, dims, options",
    [
        (16, ("length",), {"kernel": (3,), "pads": (1, 1)}),
        (16, ("length",), {"kernel": (3,), "dilations": (4,), "pads": (4, 4)}),
        (16, ("height", "width"), {"dilations": (2, 3), "pads": (2, 3, 2, 3)}),
        (16, ("planes", "height", "width"), {}),
        (16, ("height", "width"), {"strides": (2, 2)}),
        (16, ("length",), {"kernel": (7,), "strides": (2,), "pads": (3, 3)}),
        (1, ("height", "width"), {"kernel": (5, 5), "pads": (2, 2, 2, 2)}),
        (1, ("height", "width"), {"kernel": (7, 5), "strides": (2, 1), "pads": (3, 2, 3, 2)}),
    ],
    ids=str,
)
def test_open_sizes(inputs, dims, options):
    """One library for all of them."""
    proto = of_open_size(model(inputs, 32, *[12] * len(dims), **options), dims)
    compiled = onnx2halide.compile(proto, convolution="winograd")
    rng = np.random.default_rng(0)
    for size in (1, 6, 17, 40 if len(dims) < 3 else 9):
        spatial = [size + i for i in range(len(dims))]
        x = rng.normal(size=(1, inputs, *spatial)).astype(np.float32)
        expected = exact(resized(proto, spatial), {"x": x})
        got = compiled.run([x])[0]
        assert got.shape == expected.shape
        assert np.abs(got - expected).max() / np.abs(expected).max() < 1e-5


def test_kernel_of_all_rows(tmp_path):
    """The second-level cache does not hold the transformed rows under a tile, which are streamed place by place."""
    height = 64
    proto = model(32, 32, height, 12, kernel=(height, 3), pads=(0, 1, 0, 1))
    fixed = onnx.ModelProto()
    fixed.CopyFrom(proto)
    proto.graph.input[0].type.tensor_type.shape.dim[3].dim_param = "width"
    proto.graph.output[0].type.tensor_type.shape.dim[3].Clear()
    onnx.save(proto, tmp_path / "tall.onnx")
    options = ["--convolution", "winograd", "--target", "x86-64-linux-avx512_skylake", "--sources-only"]
    subprocess.run([COMPILER, "compile", tmp_path / "tall.onnx", *options, "-o", tmp_path], check=True)
    assert "transformed inputs, so they are prefetched" in (tmp_path / "tall_generators.cpp").read_text()
    compiled = onnx2halide.compile(proto, convolution="winograd", threads=2)
    rng = np.random.default_rng(0)
    for width in (1, 5, 23, 130):
        x = rng.normal(size=(1, 32, height, width)).astype(np.float32)
        expected = exact(resized(fixed, [height, width]), {"x": x})
        got = compiled.run([x])[0]
        assert got.shape == expected.shape
        assert np.abs(got - expected).max() / np.abs(expected).max() < 1e-5


@pytest.mark.parametrize("algorithm", ["direct", "winograd"])
def test_open_number_of_outer_planes(algorithm):
    """The next axis, of a known number of planes, has taps too."""
    proto = model(8, 16, 3, 5, 12, 12, kernel=(1, 2, 3, 3), pads=(0, 0, 1, 1) * 2)
    proto.graph.input[0].type.tensor_type.shape.dim[2].dim_param = "planes"
    proto.graph.output[0].type.tensor_type.shape.dim[2].Clear()
    compiled = onnx2halide.compile(proto, convolution=algorithm)
    for planes in (1, 4):
        x = np.random.default_rng(planes).normal(size=(1, 8, planes, 5, 12, 12)).astype(np.float32)
        expected = exact(resized(proto, [planes, 5, 12, 12]), {"x": x})
        assert np.abs(compiled.run([x])[0] - expected).max() / np.abs(expected).max() < 1e-5


@pytest.mark.parametrize(
    "channels, dims, options",
    [
        (64, ("height", "width"), {"dilations": (12, 12), "pads": (12, 12, 12, 12), "batch": 2}),
        (60, ("height", "width"), {"dilations": (12, 12), "pads": (12, 12, 12, 12), "bias": False}),
        (64, ("height", "width"), {"dilations": (4, 4), "pads": (4, 4, 4, 4)}),
        (64, ("length",), {"dilations": (32,), "pads": (32, 32)}),
    ],
    ids=str,
)
def test_small_images_of_open_sizes(tmp_path, channels, dims, options):
    """They have a kernel of their own."""
    proto = of_open_size(model(64, channels, *[12] * len(dims), **options), dims)
    onnx.save(proto, tmp_path / "convolution.onnx")
    compiled = Compiled(tmp_path / "convolution.onnx", Options())
    clock = StepClock()
    library = Model(compiled.library, 1, trace=clock.trace)
    rng = np.random.default_rng(0)
    called = {}
    large = 200 if len(dims) > 1 else 380  # nearly fills two blocks of dilated tiles
    for size in (3, 11, 50, large):
        spatial = [size + i for i in range(len(dims))]
        x = rng.normal(size=(options.get("batch", 1), 64, *spatial)).astype(np.float32)
        expected = exact(resized(proto, spatial), {"x": x})
        got = library.run([x])[0]
        assert np.abs(got - expected).max() / np.abs(expected).max() < 1e-5
        clock.run(library, {"x": x})
        called[size] = {kernel for kernel in clock.kernels if kernel.startswith("c_")}
    assert called[3] == {"c_y_small"} and called[large] == {"c_y"}
