"""Operators that sample between elements, against ONNX's reference: see reference_cases.py."""

import itertools

import ml_dtypes  # noqa: F401, which makes bfloat16 a dtype of numpy
import numpy as np
import onnx2halide
import pytest
from onnx import helper, parser
from onnx2halide.references import OnnxRuntime
from reference_cases import Case, check, constant, indices, x


def grids():
    within = {"between": (-1.6, 1.6)}
    for mode, padding, align in itertools.product(("nearest", "linear", "cubic"), ("zeros", "border", "reflection"), (0, 1)):
        # ONNX's reference clamps a position to the border before it finds cubic taps; onnxruntime clamps each tap, as PyTorch does.
        engine = {"engine": OnnxRuntime} if (mode, padding) == ("cubic", "border") else {}
        yield Case("GridSample", [x(2, 3, 5, 7), x(2, 4, 17, 2, **within)], {"mode": mode, "padding_mode": padding, "align_corners": align}, **engine)
    for mode in ("nearest", "linear", "cubic"):
        yield Case("GridSample", [x(1, 17, 5, 7), x(1, 4, 3, 2, **within)], {"mode": mode})  # channels fill vectors
        yield Case("GridSample", [x(2, 3, 5, 7), x(2, 3, 32, 2, **within)], {"mode": mode})  # pixels do
        yield Case("GridSample", [x(1, 2, 4, 5, 6), x(1, 2, 3, 17, 3, **within)], {"mode": mode, "padding_mode": "reflection"})
        yield Case("GridSample", [x(2, 3, 9), x(2, 20, 1, **within)], {"mode": mode, "padding_mode": "reflection" if mode == "cubic" else "border"})
    for image, grid in (("float64", "float32"), ("float64", "float64"), ("float16", "float16")):
        yield Case("GridSample", [x(1, 2, 4, 5, dtype=image), x(1, 3, 17, 2, dtype=grid, **within)], {"mode": "linear"})
    for dtype in ("uint8", "bool"):
        yield Case("GridSample", [x(1, 2, 4, 5, dtype=dtype), x(1, 3, 17, 2, **within)], {"mode": "nearest"})
    yield Case("GridSample", [x(1, 2, 1, 1), x(1, 3, 17, 2, **within)], {"mode": "cubic", "padding_mode": "border", "align_corners": 1})
    for align in (0, 1):
        yield Case("AffineGrid", [x(2, 2, 3), indices(2, 3, 5, 17)], {"align_corners": align})
        yield Case("AffineGrid", [x(2, 3, 4), indices(2, 3, 5, 3, 4)], {"align_corners": align})


def regions():
    rois, images = x(4, 4, between=(0, 12)), x(4, dtype="int64", between=(0, 2))
    bins = {"output_height": 3, "output_width": 2, "spatial_scale": 0.7}
    for mode, ratio, shift in itertools.product(("avg", "max"), (0, 2), ("half_pixel", "output_half_pixel")):
        attributes = {"mode": mode, "sampling_ratio": ratio, "coordinate_transformation_mode": shift, **bins}
        yield Case("RoiAlign", [x(2, 17, 9, 11), rois, images], attributes)
    yield Case("RoiAlign", [x(2, 3, 9, 11), rois, images], bins)


def pooled_regions():
    """Some of which extend past the map, end before they begin, or are outside of it."""
    runtime = {"engine": OnnxRuntime, "opset": 21}  # it has no newer version
    corners = [(0, 2, 1, 9, 7), (1, 0, 0, 3, 3), (0, 5, 5, 5, 5), (1, 8, 6, 30, 21), (0, -7, -3, 4, 2), (1, 9, 9, 3, 4), (0, 40, 2, 50, 4)]
    rois = np.array(corners, np.float32)
    for channels, pooled, scale in itertools.product((3, 17), ((3, 2), (7, 7)), (1.0, 0.5)):
        yield Case("MaxRoiPool", [x(2, channels, 9, 11), rois], {"pooled_shape": pooled, "spatial_scale": scale}, **runtime)
    yield Case("MaxRoiPool", [x(2, 5, 9, 11), x(6, 5, between=(0, 1.9))], {"pooled_shape": (2, 2), "spatial_scale": 4.0}, **runtime)
    yield Case("MaxRoiPool", [x(1, 16, 50, 60), np.array([(0, 3, 4, 55, 40)] * 3, np.float32)], {"pooled_shape": (6, 6)}, **runtime)


def deformed():
    rows = [
        ((1, 4, 7, 9), (16, 4, 3, 3), (5, 7), 1, 1, {}),
        ((2, 4, 7, 20), (6, 2, 3, 3), (7, 20), 2, 2, {"pads": [1, 1, 1, 1]}),
        ((1, 6, 8, 8), (5, 6, 3, 2), (4, 8), 1, 3, {"strides": [2, 1], "dilations": [1, 2], "pads": [0, 1, 2, 1]}),
    ]
    for shape, weights, outputs, group, offset_group, attributes in rows:
        attributes = {"group": group, "offset_group": offset_group, **attributes}
        taps = offset_group * weights[2] * weights[3]
        operands = [x(*shape), constant(*weights), x(shape[0], taps * 2, *outputs)]
        yield Case("DeformConv", operands, attributes, engine=OnnxRuntime)
        for is_open in (False, True):
            yield Case("DeformConv", [*operands, constant(weights[0]), x(shape[0], taps, *outputs)], attributes, engine=OnnxRuntime, is_open=is_open)


@pytest.mark.parametrize("case", [*grids(), *regions(), *pooled_regions(), *deformed()], ids=str)
def test_sampling(case):
    check(case)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_offsets_beyond_an_image_whose_width_has_no_narrow_number(dtype):
    width, kind = 4097, helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    shapes = {"x": [1, 1, 1, width], "w": [1, 1, 1, 1], "o": [1, 2, 1, width]}
    ports = [helper.make_tensor_value_info(name, kind, shape) for name, shape in {**shapes, "y": shapes["x"]}.items()]
    graph = helper.make_graph([helper.make_node("DeformConv", ["x", "w", "o"], ["y"])], "small", ports[:-1], ports[-1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)
    offsets = np.zeros(shapes["o"], dtype)
    offsets[0, 1, 0, -1] = 100
    found = onnx2halide.compile(model).run([np.ones(shapes["x"], dtype), np.ones(shapes["w"], dtype), offsets])[0]
    assert found[0, 0, 0, -3:].tolist() == [1, 1, 0]


@pytest.mark.parametrize("size", ["size", "known"])
def test_affine_grid_of_one_row(size):
    """The row is at the centre, as in PyTorch."""
    text = f"g (float[1,2,3] theta, int64[4] size) => (float[a,b,c,d] y) <int64[4] known = {{1, 1, 1, 3}}> {{ y = AffineGrid <align_corners = 1> (theta, {size}) }}"
    theta = np.random.default_rng(0).normal(size=(1, 2, 3)).astype(np.float32)
    found = onnx2halide.compile(parser.parse_model(f'<ir_version: 10, opset_import: ["" : 20]> {text}')).run_by_name({"theta": theta, "size": np.array([1, 1, 1, 3])})["y"]
    positions = np.array([[-1, 0, 1], [0, 0, 1], [1, 0, 1]], np.float32)
    np.testing.assert_allclose(found[0, 0], positions @ theta[0].T, rtol=1e-6)
