"""Outputs whose types a model does not declare, against onnxruntime."""

import numpy as np
import onnx2halide
import pytest
from make_models import FLOAT, model, node
from onnx import TensorProto, helper
from onnx2halide.references import OnnxRuntime


@pytest.mark.parametrize("is_typed", [False, True], ids=["no-type", "no-shape"])
def test_outputs_without_types(is_typed):
    nodes = [node("Relu", "x", "r"), node("NonZero", "r", "i"), node("Identity", "x", "same")]
    proto = model(nodes, [("x", FLOAT, ["n", 3])], [("r", FLOAT, None), ("i", TensorProto.INT64, None), ("same", FLOAT, ["n", 3])])
    if not is_typed:
        for output in proto.graph.output[:2]:
            output.ClearField("type")
    inputs = {"x": np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)}
    found, expected = onnx2halide.compile(proto).run_by_name(inputs), OnnxRuntime(proto).run(inputs)
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array, err_msg=name)


@pytest.mark.parametrize("omitted", [0, 1])
def test_omitted_parts(omitted):
    """onnxruntime crashes on these."""
    outputs = ["a", "b"]
    outputs[omitted] = ""
    kept = "ab"[1 - omitted]
    proto = model([helper.make_node("Split", ["x"], outputs, axis=1, num_outputs=2), node("Relu", kept, "y")], [("x", FLOAT, ["n", 4])], [("y", FLOAT, ["n", 2])])
    x = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    np.testing.assert_array_equal(onnx2halide.compile(proto).run_by_name({"x": x})["y"], np.maximum(np.split(x, 2, axis=1)[1 - omitted], 0))


@pytest.mark.parametrize("names", [("y", "", "v"), ("y", "m", ""), ("y", "", "")])
def test_omitted_optional_outputs(names):
    """At the end and before others."""
    kept = [name for name in names if name]
    normalised = helper.make_node("LayerNormalization", ["x", "s"], names)
    outputs = [(name, FLOAT, [2, 3, 4 if name == "y" else 1]) for name in kept]
    proto = model([normalised], [("x", FLOAT, [2, 3, 4])], outputs, {"s": np.float32([1, 2, 3, 4])})
    inputs = {"x": np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)}
    found, expected = onnx2halide.compile(proto).run_by_name(inputs), OnnxRuntime(proto).run(inputs)
    for name in kept:
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-4, atol=1e-5, err_msg=name)


def test_omitted_indices():
    """onnxruntime crashes on this."""
    pool = helper.make_node("MaxPool", ["x"], ["y", ""], kernel_shape=[2, 2])
    proto = model([pool], [("x", FLOAT, [1, 1, 3, 3])], [("y", FLOAT, [1, 1, 2, 2])])
    found = onnx2halide.compile(proto).run([np.arange(9, dtype=np.float32).reshape(1, 1, 3, 3)])[0]
    np.testing.assert_array_equal(found[0, 0], [[4, 5], [7, 8]])
