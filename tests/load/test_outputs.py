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
