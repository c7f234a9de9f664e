"""Weights in external files, in models that ONNX's checker would reject as they are."""

import numpy as np
import onnx
import onnx2halide
import pytest
from make_models import FLOAT, model, node
from onnx import SparseTensorProto, TensorProto, helper, numpy_helper
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


def outside(array: np.ndarray, name: str, folder) -> TensorProto:
    """A tensor whose elements are in a file of its own."""
    (folder / f"{name}.bin").write_bytes(array.tobytes())
    tensor = TensorProto(name=name, data_type=helper.np_dtype_to_tensor_dtype(array.dtype), dims=array.shape, data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value=f"{name}.bin")
    return tensor


def test_weights_of_functions_and_sparse_weights(tmp_path):
    factors, x = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)
    constant = helper.make_node("Constant", [], ["c"], value=outside(factors, "factors", tmp_path))
    function = helper.make_function("local", "Scale", ["a"], ["b"], [constant, node("Mul", "a c", "b")], [helper.make_opsetid("", 17)])
    offsets = SparseTensorProto(dims=[4], values=outside(np.float32([2, 3]), "s", tmp_path), indices=outside(np.int64([1, 3]), "places", tmp_path))
    graph = helper.make_graph([node("Scale", "x", "m", domain="local"), node("Add", "m s", "y")], "g", [helper.make_tensor_value_info("x", FLOAT, [3, 4])], [helper.make_tensor_value_info("y", FLOAT, [3, 4])])
    graph.sparse_initializer.append(offsets)
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]
    onnx.save(helper.make_model(graph, functions=[function], opset_imports=imports, ir_version=9), tmp_path / "outside.onnx")
    found = onnx2halide.compile(tmp_path / "outside.onnx").run_by_name({"x": x})["y"]
    np.testing.assert_allclose(found, x * factors + np.float32([0, 2, 0, 3]), rtol=1e-6)
