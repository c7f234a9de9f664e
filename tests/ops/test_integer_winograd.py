"""Convolutions of 8-bit integers by Winograd's algorithm, whose results are exact, also where sums at a place overflow."""

import numpy as np
import onnx2halide
import pytest
from convolutions import integer_model, of_open_size, resized, sums, zero_point
from onnx import helper
from recipes import Recipe


CONVOLUTIONS = [
    ((16, 16, 8, 8), {}),
    ((16, 32, 9, 11), {"zero": 128}),
    ((24, 20, 13, 13), {"dtype": "int8", "zero": -5}),  # channels that do not fill a vector
    ((18, 5, 7, 6), {}),
    ((16, 48, 12, 20), {"batch": 3, "pads": (2, 0, 1, 3), "zero": 7}),
    ((64, 64, 56, 56), {}),
    ((128, 128, 28, 28), {"dtype": "int8"}),
    ((256, 256, 14, 14), {}),
    ((512, 512, 7, 7), {"zero": 255}),
    ((64, 64, 9, 12), {"group": 2}),
    ((32, 48, 12, 14), {"kernel": (5, 5), "pads": (2, 2, 2, 2)}),
    ((32, 48, 12, 21), {"kernel": (1, 3), "pads": (0, 1, 0, 1)}),
    ((16, 32, 12, 11), {"kernel": (2, 2), "pads": (1, 1, 0, 0)}),
    ((24, 20, 12, 17), {"kernel": (7, 7), "pads": (3, 3, 3, 3)}),  # of 4 and 3 taps
    ((16, 32, 15, 18), {"strides": (2, 2)}),
    ((16, 20, 33, 30), {"kernel": (7, 7), "strides": (2, 2), "pads": (3, 3, 3, 3)}),
    ((16, 32, 20, 24), {"dilations": (2, 2), "pads": (2, 2, 2, 2)}),
    ((16, 32, 50), {"zero": 3}),
    ((16, 32, 5, 9, 8), {"zero": 100}),
    # The largest sums, those of zero points at either end included.
    ((256, 32, 10, 10), {"weights": "most"}),
    ((256, 32, 10, 10), {"weights": "least", "zero": 255}),
    ((1024, 16, 9, 9), {"weights": "least"}),
    ((4096, 16, 6, 6), {"weights": "least"}),
    ((64, 32, 10, 10), {"weights": "least", "dtype": "int8", "zero": 127}),
]


@pytest.mark.parametrize("extreme", [False, True])
@pytest.mark.parametrize(
    "case",
    [Recipe(integer_model, *shape, options={"convolution": "winograd"}, **attributes) for shape, attributes in CONVOLUTIONS],
    ids=str,
)
def test_exact(case, extreme):
    proto = case.model()
    port = proto.graph.input[0].type.tensor_type
    limits = np.iinfo(helper.tensor_dtype_to_np_dtype(port.elem_type))
    shape = [dim.dim_value for dim in port.shape.dim]
    rng = np.random.default_rng(0)
    data = rng.integers(limits.min, limits.max + 1, shape)
    if extreme:  # in blocks as large as tiles, so that all differences of a transform are large
        data = np.where(np.kron(rng.integers(0, 2, shape), np.ones([1] * (len(shape) - 1) + [2], int))[..., : shape[-1]] > 0, limits.max, limits.min)
    got = case.compile().run([data.astype(limits.dtype)])[0]
    assert np.array_equal(got, sums(proto, data - zero_point(proto)))


def test_open_sizes():
    proto = of_open_size(integer_model(32, 48, 12, 12, zero=9), ("height", "width"))
    compiled = onnx2halide.compile(proto, convolution="winograd")
    rng = np.random.default_rng(0)
    for size in (1, 6, 17, 60):
        data = rng.integers(0, 256, (1, 32, size, size + 1))
        expected = sums(resized(proto, [size, size + 1]), data - zero_point(proto))
        assert np.array_equal(compiled.run([data.astype(np.uint8)])[0], expected)
