"""Weights in other files, in models that ONNX's checker would not pass as they are."""

import numpy as np
import onnx
import onnx2halide
from make_models import FLOAT, model, node
from onnx2halide.references import OnnxRuntime


def test_model_that_the_checker_would_refuse(tmp_path):
    """Of an operator that only onnxruntime has in ONNX's domain, nodes that are out of order, and an output without a type."""
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
