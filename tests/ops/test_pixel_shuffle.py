"""Groups of channels that become blocks of pixels, after a convolution, whose channels are innermost."""

import numpy as np
import onnx2halide
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx2halide.compare import default_floor, default_tolerance, difference
from onnx2halide.references import OnnxRuntime

HEIGHT, WIDTH = 5, 19


def check(channels: int, nodes: list, constants: dict | None = None):
    """Compares the nodes, which read `c` with so many channels and compute `y`, with onnxruntime."""
    rng = np.random.default_rng(0)
    constants = {"w": rng.normal(size=(channels, 4, 3, 3)).astype(np.float32), **(constants or {})}
    conv = helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1])
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4, HEIGHT, WIDTH])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    initializers = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph([conv, *nodes], "shuffle", [x], [y], initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    inputs = {"x": rng.normal(size=(1, 4, HEIGHT, WIDTH)).astype(np.float32)}
    expected = OnnxRuntime(model).run(inputs)["y"]
    got = onnx2halide.compile(model).run_by_name(inputs)["y"]
    found = difference(got, expected)
    assert not found.exceeds(default_tolerance(got.dtype), default_floor(got.dtype, inputs.values())), found.text()


@pytest.mark.parametrize("size", [2, 3, 4, 5])
@pytest.mark.parametrize("channels", [1, 3, 9])
def test_depth_to_space(size, channels):
    for mode in ("DCR", "CRD"):
        check(channels * size**2, [helper.make_node("DepthToSpace", ["c"], ["y"], blocksize=size, mode=mode)])


@pytest.mark.parametrize("size", [2, 3, 5, 6])
@pytest.mark.parametrize("channels", [1, 3])
def test_written_out(size, channels):
    """As PyTorch writes a pixel shuffle."""
    shapes = {
        "blocks": np.array([1, channels, size, size, HEIGHT, WIDTH]),
        "pixels": np.array([1, channels, HEIGHT * size, WIDTH * size]),
    }
    nodes = [
        helper.make_node("Reshape", ["c", "blocks"], ["b"]),
        helper.make_node("Transpose", ["b"], ["t"], perm=[0, 1, 4, 2, 5, 3]),
        helper.make_node("Reshape", ["t", "pixels"], ["y"]),
    ]
    check(channels * size**2, nodes, shapes)


@pytest.mark.parametrize("stride", [2, 3])
def test_transposed_convolution(stride):
    """Few channels, at every offset of the output that its stride allows."""
    weights = np.random.default_rng(1).normal(size=(8, 2, stride, stride)).astype(np.float32)
    check(8, [helper.make_node("ConvTranspose", ["c", "v"], ["y"], strides=[stride, stride])], {"v": weights})


def test_several_readers():
    """One of them requires the pixels' channels to be innermost."""
    weights = np.random.default_rng(1).normal(size=(2, 2, 3, 3)).astype(np.float32)
    nodes = [
        helper.make_node("DepthToSpace", ["c"], ["d"], blocksize=2),
        helper.make_node("Conv", ["d", "v"], ["e"], pads=[1, 1, 1, 1]),
        helper.make_node("Flatten", ["d"], ["f"], axis=3),
        helper.make_node("Flatten", ["e"], ["g"], axis=3),
        helper.make_node("Add", ["f", "g"], ["y"]),
    ]
    check(8, nodes, {"v": weights})
