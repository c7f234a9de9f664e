"""Nodes whose operands are all constant, which the compiler computes, against onnxruntime."""

import numpy as np
import onnx
import onnx2halide
import pytest
from make_models import FLOAT, model, node
from onnx2halide.references import OnnxRuntime

IMAGE = [1, 6, 9, 10]


def draw(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)


@pytest.mark.parametrize(
    "made, constants",
    [
        (node("Conv", "c w", "m", pads=[1] * 4), {"w": draw(6, 6, 3, 3)}),
        (node("Conv", "c w", "m", group=6, pads=[2] * 4), {"w": draw(6, 1, 5, 5)}),
        (node("ConvTranspose", "c w", "m", strides=[2, 2]), {"w": draw(6, 6, 2, 2)}),
        (node("MaxPool", "c", "m", kernel_shape=[3, 3], strides=[2, 2]), {}),
        (node("AveragePool", "c", "m", kernel_shape=[2, 2], ceil_mode=1, strides=[2, 2]), {}),
        (node("GlobalAveragePool", "c", "m"), {}),
        (onnx.helper.make_node("Resize", ["c", "", "scales"], ["m"], mode="linear"), {"scales": np.array([1, 1, 1.5, 0.5], np.float32)}),
        (node("LRN", "c", "m", size=3), {}),
        (node("GridSample", "c grid", "m"), {"grid": draw(1, 4, 5, 2)}),
        (node("MatMul", "c w", "m"), {"w": draw(10, 33)}),
        (node("CumSum", "c last", "m"), {"last": np.int64(3)}),
    ],
    ids=lambda value: value.op_type + (f"-{len(value.attribute)}" if value.attribute else "") if isinstance(value, onnx.NodeProto) else "",
)
def test_results_of_constants(made, constants):
    nodes = [made, node("ReduceSum", "m", "sum", keepdims=0), node("Mul", "x sum", "y")]
    proto = model(nodes, [("x", FLOAT, IMAGE)], [("y", FLOAT, IMAGE)], {"c": draw(*IMAGE), **constants})
    inputs = {"x": draw(*IMAGE)}
    found, expected = onnx2halide.compile(proto).run_by_name(inputs)["y"], OnnxRuntime(proto).run(inputs)["y"]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())
