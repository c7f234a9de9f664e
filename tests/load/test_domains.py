"""Operators of domains that a model does not import, which onnxruntime accepts and some exporters write."""

import numpy as np
import onnx2halide
import pytest
from make_models import FLOAT, model, node
from onnx import TensorProto, helper
from onnx2halide.references import OnnxRuntime

NODES = {
    "com.microsoft": node("BiasGelu", "x b", "y", domain="com.microsoft"),
    "ai.onnx.ml": node("Scaler", "x", "y", domain="ai.onnx.ml", offset=[0.5], scale=[2.0]),
}


@pytest.mark.parametrize("domain", NODES)
def test_domain_without_import(domain):
    proto = model([NODES[domain]], [("x", FLOAT, [2, 3])], [("y", FLOAT, [2, 3])], {"b": np.ones(3, np.float32)})
    check(proto)


def test_domain_of_a_branch_alone():
    bodies = [helper.make_graph([body], name, [], [helper.make_tensor_value_info("y", FLOAT, [2, 3])]) for name, body in zip(["then", "else"], NODES.values())]
    choice = helper.make_node("If", ["choice"], ["z"], then_branch=bodies[0], else_branch=bodies[1])
    check(model([choice], [("choice", TensorProto.BOOL, []), ("x", FLOAT, [2, 3])], [("z", FLOAT, [2, 3])], {"b": np.ones(3, np.float32)}), choice=np.array(False))


def test_model_of_a_version_without_imports():
    proto = model([node("Abs", "x", "y")], [("x", FLOAT, [2, 3])], [("y", FLOAT, [2, 3])])
    proto.ir_version = 2
    del proto.opset_import[:]
    x = np.array([[-1, 2, -3], [4, -5, 6]], np.float32)
    np.testing.assert_array_equal(onnx2halide.compile(proto).run_by_name({"x": x})["y"], np.abs(x))


def check(proto, **more):
    for entry in [entry for entry in proto.opset_import if entry.domain in NODES]:
        proto.opset_import.remove(entry)
    inputs = {"x": np.random.default_rng(0).normal(size=(2, 3)).astype(np.float32), **more}
    expected = OnnxRuntime(proto).run(inputs)
    found = onnx2halide.compile(proto).run_by_name(inputs)
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-5, atol=1e-6)
