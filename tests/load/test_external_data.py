"""Weights in external files, in models that ONNX's checker would reject as they are."""

import numpy as np
import onnx
import onnx2halide
import pytest
from make_models import FLOAT, model, node
from onnx import helper, numpy_helper
from onnx2halide.references import OnnxRuntime


def test_model_that_the_checker_would_refuse(tmp_path):
    """An operator that only onnxruntime has in ONNX's domain, nodes that are out of order, and an output without a type."""
    rng = np.random.default_rng(0)
    nodes = [node("MatMul", "z w", "y"), node("SimplifiedLayerNormalization", "x scale", "z", axis=-1)]
    weights = {"w": rng.normal(size=(16, 5)).astype(np.float32), "scale": rng.normal(size=16).astype(np.float32)}
    proto = model(nodes, [("x", FLOAT, ["n", 16])], [("y", FLOAT, ["n", 5])], weights)
    proto.graph.output[0].ClearField("type")
    path = tmp_path / "outside.onnx"
    onnx.save(proto, path, save_as_external_data=True, location="outside.data", size_threshold=0)
    inputs = {"x": rng.normal(size=(3, 16)).astype(np.float32)}
    found, expected = onnx2halide.compile(path).run_by_name(inputs)["y"], OnnxRuntime(onnx.load(path)).run(inputs)["y"]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("choice", [False, True])
def test_weights_of_branches_and_constants(tmp_path, choice):
    rng = np.random.default_rng(0)
    text = """<ir_version: 10, opset_import: ["" : 21]>
    g (float[n,3] x, bool choice) => (float[n,3] y) {
        z = If (choice) <then_branch = yes () => (float[n,3] a) { a = Add (x, v) }, else_branch = no () => (float[n,3] b) { b = Neg (x) }>
        s = Mul (z, u)
        y = MatMul (s, w)
    }"""
    proto = onnx.parser.parse_model(text)
    numbers = {name: rng.normal(size=shape).astype(np.float32) for name, shape in (("u", 3), ("v", 3), ("w", (3, 3)))}
    proto.graph.initializer.append(numpy_helper.from_array(numbers["w"], "w"))
    proto.graph.node[0].attribute[0].g.initializer.append(numpy_helper.from_array(numbers["v"], "v"))
    proto.graph.node.insert(0, helper.make_node("Constant", [], ["u"], value=numpy_helper.from_array(numbers["u"], "u")))
    path = tmp_path / "outside.onnx"
    onnx.save(proto, path, save_as_external_data=True, location="outside.data", size_threshold=0, convert_attribute=True)
    x = rng.normal(size=(2, 3)).astype(np.float32)
    found = onnx2halide.compile(path).run_by_name({"x": x, "choice": np.array(choice)})["y"]
    expected = ((x + numbers["v"] if choice else -x) * numbers["u"]) @ numbers["w"]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
