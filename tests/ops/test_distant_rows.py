"""Products with rows too large for the near caches, so that the next tile's are prefetched or strips of them are multiplied with all columns."""

import numpy as np
import onnx2halide
import pytest
from onnx import TensorProto, helper, numpy_helper


SHAPES = [[9001], [3, 3007], ["rows"], [2, "rows"]]


@pytest.mark.parametrize(
    "rows, depth, columns",
    [*((rows, depth, 40) for rows in SHAPES for depth in (16, 36, 208, 640)), ([785], 700, 200), ([700], 1100, 130), ([3, 301], 800, 200)],
    ids=str,
)
def test_rows_from_afar(rows, depth, columns):
    rng = np.random.default_rng(depth)
    weights = rng.normal(size=(depth, columns)).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "product",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [*rows, depth])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [*rows, columns])],
        [numpy_helper.from_array(weights, "w")],
    )
    compiled = onnx2halide.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9))
    for size in (1, 8000) if "rows" in rows else (0,):
        x = rng.normal(size=[size if dim == "rows" else dim for dim in rows] + [depth]).astype(np.float32)
        expected = x.astype(np.float64) @ weights
        assert np.abs(compiled.run([x])[0] - expected).max() < 2e-6 * np.abs(expected).max()
