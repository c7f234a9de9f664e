"""Resize by interpolation along one axis after the other, against ONNX's reference: axes that grow and shrink, in rows whose elements
have one channel or several, fewer or more than a vector's lanes."""

import numpy as np
import onnx
import onnx2halide
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx2halide.compare import difference
from onnx2halide.references import OnnxReference

MODES = [("linear", 0), ("cubic", 0), ("linear", 1), ("cubic", 1)]


def model(shape: list[int], sizes: list[int], channels_last: bool, mode: str, antialias: int) -> onnx.ModelProto:
    """Resizes the axes after the channels. With `channels_last` these are the last axis of input and output."""
    rank = len(shape)
    to_last, to_first = [0, *range(2, rank), 1], [0, rank - 1, *range(1, rank - 1)]
    resize = helper.make_node("Resize", ["first", "", "", "sizes"], ["resized"], "resize", mode=mode, antialias=antialias)
    nodes = [
        helper.make_node("Transpose", ["x"], ["first"], perm=to_first),
        resize,
        helper.make_node("Transpose", ["resized"], ["y"], perm=to_last),
    ]
    dims = [shape, shape[:2] + sizes]
    if channels_last:
        dims = [[each[axis] for axis in to_last] for each in dims]
    else:
        nodes, resize.input[0], resize.output[0] = [resize], "x", "y"
    ports = [[helper.make_tensor_value_info(name, TensorProto.FLOAT, each)] for name, each in zip("xy", dims, strict=True)]
    constants = [numpy_helper.from_array(np.array(shape[:2] + sizes), "sizes")]
    return helper.make_model(helper.make_graph(nodes, "resized", *ports, constants), opset_imports=[helper.make_opsetid("", 19)], ir_version=9)


CASES = [
    ([1, 1, 5, 17], [11, 40]),  # both grow: along x first
    ([1, 2, 21, 33], [8, 17]),  # both shrink: along y first
    ([2, 3, 9, 20], [4, 31]),  # one of each
    ([1, 20, 6, 7], [13, 3]),  # channels that fill a vector
    ([1, 3, 4, 6, 5], [7, 3, 11]),  # volumes
    ([3, 2, 19], [48]),
]


@pytest.mark.parametrize("mode, antialias", MODES)
def test_passes(mode, antialias):
    protos = [model(*case, last, mode, antialias) for case in CASES for last in (False, True)]
    for proto, compiled in zip(protos, onnx2halide.compile_many(protos), strict=True):
        shape = [dim.dim_value for dim in proto.graph.input[0].type.tensor_type.shape.dim]
        x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
        found, expected = compiled.run([x])[0], OnnxReference(proto).run({"x": x})["y"]
        assert not difference(found, expected).exceeds(1e-5, 1e-5), (shape, mode, antialias)
