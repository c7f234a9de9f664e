"""Models shared by the tests of the package."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 17
WEIGHTS = np.arange(12, dtype=np.float32).reshape(3, 4) - 5
A = np.array([[1, 2, 3], [-1, 0, 1]], np.float32)
B = np.array([1, 1, 2], np.float32)
HINT = "Run with --help for more information.\n"  # ends what is said about wrong usage


def make(nodes, inputs, outputs, initializers=(), opset=OPSET) -> onnx.ModelProto:
    """A model of nodes; inputs and outputs are (name, type, shape)."""
    ports = ([helper.make_tensor_value_info(*port) for port in ports] for ports in (inputs, outputs))
    graph = helper.make_graph(nodes, "small", *ports, initializer=list(initializers))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def unary(op: str, type: int = TensorProto.FLOAT, shape=(2, 3)) -> onnx.ModelProto:
    return make([helper.make_node(op, ["x"], ["y"])], [("x", type, shape)], [("y", type, shape)])


def dense() -> onnx.ModelProto:
    """scores = Relu(x W), as two named nodes, with an open batch."""
    nodes = [helper.make_node("MatMul", ["x", "W"], ["product"], "product_node"), helper.make_node("Relu", ["product"], ["scores"], "relu_node")]
    ports = [("x", TensorProto.FLOAT, ["batch", 3])], [("scores", TensorProto.FLOAT, ["batch", 4])]
    return make(nodes, *ports, [numpy_helper.from_array(WEIGHTS, "W")])


def windows() -> onnx.ModelProto:
    """A 7x5 convolution without padding, of an image of any size."""
    nodes = [helper.make_node("Conv", ["image", "W"], ["y"])]
    ports = [("image", TensorProto.FLOAT, ["batch", 1, "height", "width"])], [("y", TensorProto.FLOAT, ["batch", 1, "rows", "columns"])]
    return make(nodes, *ports, [numpy_helper.from_array(np.ones((1, 1, 7, 5), np.float32), "W")])


def difference_of_two() -> onnx.ModelProto:
    ports = [("a", TensorProto.FLOAT, [2, 3]), ("b", TensorProto.FLOAT, [3])], [("y", TensorProto.FLOAT, [2, 3])]
    return make([helper.make_node("Sub", ["a", "b"], ["y"])], *ports)
