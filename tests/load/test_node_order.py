"""Models whose nodes are not in topological order, which onnxruntime accepts and some tools write."""

import numpy as np
import onnx2halide
import pytest
from make_models import FLOAT, model, node
from onnx import helper, parser
from onnx2halide.references import OnnxRuntime

# Branches read results of later nodes, too.
TEXT = """<ir_version: 10, opset_import: ["" : 22]>
g (float[n,3] x, bool choice) => (float[n,3] y) {
    y = Mul (chosen, sum)
    chosen = If (choice) <then_branch = yes () => (float[n,3] a) {
        b = Add (sum, x)
        a = Neg (b)
    }, else_branch = no () => (float[n,3] c) {
        c = Identity (half)
    }>
    sum = Add (half, x)
    half = Sigmoid (x)
}"""


@pytest.mark.parametrize("choice", [False, True])
def test_nodes_in_any_order(choice):
    proto = parser.parse_model(TEXT)
    inputs = {"x": np.random.default_rng(0).normal(size=(2, 3)).astype(np.float32), "choice": np.array(choice)}
    found, expected = onnx2halide.compile(proto).run_by_name(inputs)["y"], OnnxRuntime(proto).run(inputs)["y"]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_long_chain_backwards():
    """A chain as long as a large model."""
    length = 3000
    nodes = [node("Identity", f"v{i}", f"v{i + 1}") for i in range(length)]
    nodes[7] = node("Neg", "v7", "v8")
    proto = model(nodes[::-1], [("v0", FLOAT, [4])], [(f"v{length}", FLOAT, [4])])
    x = np.arange(4, dtype=np.float32)
    np.testing.assert_array_equal(onnx2halide.compile(proto).run_by_name({"v0": x})[f"v{length}"], -x)
