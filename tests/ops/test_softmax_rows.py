"""Softmax of rows that do and do not fill vectors, with numbers that a vector's unused lanes must not affect."""

import numpy as np
import onnx2halide
import pytest
from onnx import TensorProto, helper


@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax"])
@pytest.mark.parametrize("shape", [(5, 3), (37, 2), (19, 13), (7, 1, 6, 1), (7, 16), (3, 17), (2, 3, 50), (9, 250), (4, 1000), (1, 77)], ids=str)
def test_rows(shape, op):
    axis = max(i for i, extent in enumerate(shape) if extent > 1)
    graph = helper.make_graph(
        [helper.make_node(op, ["x"], ["y"], axis=axis)],
        "rows",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
    )
    x = np.random.default_rng(shape[-1]).normal(-50, 20, shape).astype(np.float32)
    flat = x.reshape(-1, shape[axis])
    flat[0, -1] = -np.inf
    flat[-1, 0] = 88.0
    if len(flat) > 2:
        flat[1, -1] = np.nan
    if len(flat) > 4:
        flat[2] = -np.inf
        flat[3, 1] = np.inf
    with np.errstate(invalid="ignore"):
        exact = x.astype(np.float64) - x.max(axis=axis, keepdims=True)
        exact -= np.log(np.exp(exact).sum(axis=axis, keepdims=True))
    expected = exact if op == "LogSoftmax" else np.exp(exact)
    got = onnx2halide.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)).run([x])[0]
    # A logarithm of nearly 1 is as exact as float32 has that number.
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6 if op == "LogSoftmax" else 1e-7)
