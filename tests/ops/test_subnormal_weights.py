"""Weights that training has decayed to subnormal numbers, which a processor takes long to multiply, count as zeros."""

import numpy as np
import onnx
import onnx2halide
import pytest
from onnx import TensorProto, helper, numpy_helper

# Of the left operand or image, and of the weights.
CASES = {"Conv": ((1, 8, 9, 9), (16, 8, 3, 3)), "MatMul": ((5, 32), (32, 24)), "Gemm": ((5, 32), (32, 24))}


@pytest.mark.parametrize("op", CASES)
def test_subnormal_weights(op):
    shape, weights = CASES[op]
    rng = np.random.default_rng(0)
    w = rng.normal(size=weights).astype(np.float32)
    w[rng.random(weights) < 0.5] *= np.float32(1e-40)
    zeros = np.where(np.abs(w) < np.finfo(np.float32).tiny, np.float32(0), w)
    x = rng.normal(size=shape).astype(np.float32)
    results = []
    for array in (w, zeros):
        ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, dims) for name, dims in (("x", shape), ("y", [None] * len(shape)))]
        graph = helper.make_graph([helper.make_node(op, ["x", "w"], ["y"])], "small", ports[:1], ports[1:], [numpy_helper.from_array(array, "w")])
        results.append(onnx2halide.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)).run([x])[0])
    np.testing.assert_array_equal(*results)
    # Exact products of numbers below 1e-38 would be subnormal.
    only_subnormal = onnx2halide.compile(onnx.parser.parse_model("<ir_version: 9, opset_import: [\"\" : 17]> g (float[1,2] x) => (float[1,1] y) { w = Constant <value = float[2,1] {1e-40, 0}> () y = MatMul (x, w) }"))
    assert only_subnormal.run([np.ones((1, 2), np.float32)])[0].tolist() == [[0]]
