"""Models of an operator whose extents are known only at run time, and their checks."""

import numpy as np
import onnx
import onnx2halide
from onnx import TensorProto, helper, numpy_helper
from onnx2halide.references import OnnxRuntime


def weights(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).normal(0, 1 / np.sqrt(np.prod(shape[1:])), shape).astype(np.float32)


def relu(name: str) -> list[onnx.NodeProto]:
    return [helper.make_node("Relu", [name], ["y"])]


def swish(name: str) -> list[onnx.NodeProto]:
    return [helper.make_node("Sigmoid", [name], ["g"]), helper.make_node("Mul", [name, "g"], ["y"])]


def model(node, x_shape: list, kernel: np.ndarray, residual: list | None = None, activation=relu):
    """`node` on x and the constant w; with `residual`, plus r of that shape; then `activation`."""
    nodes = [node] + ([helper.make_node("Add", ["c", "r"], ["s"])] if residual else [])
    nodes += activation(nodes[-1].output[0])
    inputs = {"x": x_shape} | ({"r": residual} if residual else {})
    graph = helper.make_graph(
        nodes,
        "open",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [f"y{axis}" for axis in range(len(x_shape))])],
        [numpy_helper.from_array(kernel, "w")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def check(proto, shapes: list[dict[str, tuple[int, ...]]], reference=None, **options) -> None:
    """Compares with onnxruntime's results of the model, or of another one."""
    compiled, reference = onnx2halide.compile(proto, **options), OnnxRuntime(reference or proto)
    rng = np.random.default_rng(0)
    for shape in shapes:
        inputs = {name: rng.normal(size=size).astype(np.float32) for name, size in shape.items()}
        expected, found = reference.run(inputs)["y"], compiled.run_by_name(inputs)["y"]
        assert found.shape == expected.shape, shape
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5 * max(1, np.abs(expected).max(initial=0)), err_msg=str(shape))
