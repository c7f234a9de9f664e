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


# What a float makes of constants is a size. Inference does not compute the last ones itself.
@pytest.mark.parametrize(
    "size",
    ["Pow(sixteen, half)", "Sqrt(sixteen)", "Exp(half)", "Pow(three, half)", "ReduceL2<keepdims = 0>(sides)", "ReduceLogSum<keepdims = 0>(sides)"],
)
def test_sizes_computed_in_floats(size):
    constants = {"sixteen": np.float32(16), "half": np.float32(0.5), "three": np.int64(30), "sides": np.float32([30, 40])}
    text = f"""<ir_version: 9, opset_import: ["": 18]> g (float[1] x) => (float[n] y, int64 size) {{
        number = {size}
        size = Cast<to = 7>(number)
        axes = Constant<value_ints = [0]>()
        shape = Unsqueeze(size, axes)
        y = Expand(x, shape)
    }}"""
    proto = onnx.parser.parse_model(text)
    proto.graph.initializer.extend(onnx.numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items())
    inputs = {"x": draw(1)}
    found, expected = onnx2halide.compile(proto).run_by_name(inputs), OnnxRuntime(proto).run(inputs)
    np.testing.assert_array_equal(found["size"], expected["size"])
    np.testing.assert_array_equal(found["y"], expected["y"])
