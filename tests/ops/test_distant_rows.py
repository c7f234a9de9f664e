"""Products with rows too large for the near caches, so that the next tile's are prefetched."""

import numpy as np
import onnx2halide
import pytest
from onnx import TensorProto, helper, numpy_helper


@pytest.mark.parametrize("depth", [16, 36, 208, 640])
@pytest.mark.parametrize("rows", [[9001], [3, 3007], ["rows"], [2, "rows"]], ids=str)
def test_rows_from_afar(rows, depth):
    rng = np.random.default_rng(depth)
    weights = rng.normal(size=(depth, 40)).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "product",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [*rows, depth])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [*rows, 40])],
        [numpy_helper.from_array(weights, "w")],
    )
    compiled = onnx2halide.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9))
    for size in (1, 8000) if "rows" in rows else (0,):
        x = rng.normal(size=[size if dim == "rows" else dim for dim in rows] + [depth]).astype(np.float32)
        expected = x.astype(np.float64) @ weights
        assert np.abs(compiled.run([x])[0] - expected).max() < 2e-6 * np.abs(expected).max()
