"""Operators that move elements between dequantised and quantised tensors move integers, equal to onnxruntime's."""

import numpy as np
import onnx2halide
import pytest
from make_models import model, node
from onnx import TensorProto
from onnx2halide.references import OnnxRuntime

SHAPE = [2, 6, 9, 10]
OPERATORS = {
    "pool": node("MaxPool", "a", "m", kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2]),
    "transpose": node("Transpose", "a", "m", perm=[0, 2, 3, 1]),
    "reshape": node("Reshape", "a shape", "m"),
    "depth to space": node("DepthToSpace", "a", "m", blocksize=2),
    "concat": node("Concat", "a b", "m", axis=1),
    "concat along rows": node("Concat", "a b", "m", axis=3),
}


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("scale", [0.04, 0.05])
@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_movement(name, scale, dtype):
    """The second operand and the result have the first one's scale, or one of their own."""
    shape = [2, 8, *SHAPE[2:]] if name == "depth to space" else SHAPE
    nodes = [
        node("DequantizeLinear", "x s z", "a"),
        node("DequantizeLinear", "y s2 z", "b"),
        OPERATORS[name],
        node("QuantizeLinear", "m s2 z", "q"),
        node("DequantizeLinear", "q s2 z", "r"),
    ]
    constants = {"s": np.float32(0.04), "s2": np.float32(scale), "z": dtype(7), "shape": np.int64([2, -1])}
    element = TensorProto.UINT8 if dtype is np.uint8 else TensorProto.INT8
    inputs = {"x": (element, shape), "y": (element, shape)}
    proto = model(nodes, [(key, *value) for key, value in inputs.items()], [("q", element, None), ("r", TensorProto.FLOAT, None)], constants)
    bounds, rng = np.iinfo(dtype), np.random.default_rng(0)
    values = {key: rng.integers(bounds.min, bounds.max + 1, shape).astype(dtype) for key in inputs}
    expected, found = OnnxRuntime(proto).run(values), onnx2halide.compile(proto).run_by_name(values)
    for key in ("q", "r"):
        np.testing.assert_array_equal(found[key], expected[key])
