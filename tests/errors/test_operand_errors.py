"""Missing operands, and operands of a rank or type that an operator does not take: the whole message."""

import numpy as np
import pytest
from make_models import FLOAT, model, node
from onnx import TensorProto, helper
from refusals import OPEN, X, Y, refused_model

MODELS = {
    "no input": (
        model([helper.make_node("GroupNormalization", ["", "s", "s"], ["y"], num_groups=3)], [X], [OPEN], {"s": np.ones(3, np.float32)}, opset=18),
        "node 'y_channels' (Shape): input 0 is missing",
    ),
    "weights of another type": (
        model([node("Conv", "x w", "y")], [("x", FLOAT, [1, 2, 5])], [("y", FLOAT, [None] * 3)], {"w": np.ones((3, 2, 1), np.int32)}),
        "node 'y' (Conv): input 1 has type int32, expected float32 as input 0",
    ),
    "a stride beyond kernels' coordinates": (
        model([node("Conv", "x w", "y", strides=[2**32])], [("x", FLOAT, [1, 2, 5])], [("y", FLOAT, [None] * 3)], {"w": np.ones((3, 2, 1), np.float32)}),
        "node 'y' (Conv): strides has the value 4294967296, expected at most 2147483647",
    ),
    "a depth below 0": (
        model([node("OneHot", "x d v", "y")], [X], [OPEN], {"d": np.array(-1), "v": np.zeros(2, np.float32)}),
        "node 'y' (OneHot): depth is -1, expected 0 or more",
    ),
    "a factor of another type": (
        model([node("MatMul", "x w", "y")], [X], [OPEN], {"w": np.ones((3, 2))}),
        "node 'y' (MatMul): input 1 has type float64, expected float32 as input 0",
    ),
    "updates of another type": (
        model([node("ScatterND", "x i u", "y")], [X], [OPEN], {"i": np.array([[0]]), "u": np.ones((1, 3))}),
        "node 'y' (ScatterND): input 2 has type float64, expected float32 as input 0",
    ),
    "indices wider than the updates allow": (
        model([node("ScatterND", "x i u", "y")], [X], [OPEN], {"i": np.zeros((1, 2), np.int64), "u": np.ones((1, 3), np.float32)}),
        "node 'y' (ScatterND): indices have shape 1x2 and updates 1x3, which does not fit data of 2x3",
    ),
    "indices narrower than the updates allow": (
        model([node("ScatterND", "x i u", "y")], [X], [OPEN], {"i": np.zeros((2, 1), np.int64), "u": np.ones(2, np.float32)}),
        "node 'y' (ScatterND): indices have shape 2x1 and updates 2, which does not fit data of 2x3",
    ),
    "indices of another rank": (
        model([node("ScatterElements", "x i u", "y")], [X], [OPEN], {"i": np.array([0]), "u": np.ones(1, np.float32)}),
        "node 'y' (ScatterElements): input 1 has rank 1, expected 2",
    ),
    "indices of a narrow type": (
        model([node("Gather", "x i", "y")], [X, ("i", TensorProto.UINT8, [2])], [OPEN]),
        "node 'y' (Gather): input 1 has type uint8, expected int32 or int64",
    ),
    "a range of another type": (
        model([node("Range", "a b c", "y")], [(name, TensorProto.INT8, []) for name in "abc"], [("y", TensorProto.INT8, [None])]),
        "node 'y' (Range): input 0 has type int8, which is not supported",
    ),
    "a place that is a scalar": (model([node("GatherND", "x i", "y")], [X], [OPEN], {"i": np.array(0)}), "node 'y' (GatherND): indices have rank 0, expected 1 or more"),
    "places of another rank": (
        model([node("MaxUnpool", "x i", "y", kernel_shape=[2])], [("x", FLOAT, [1, 1, 2])], [("y", FLOAT, [None] * 3)], {"i": np.array([0, 3])}),
        "node 'y' (MaxUnpool): input 1 has rank 1, expected 3",
    ),
    "lengths that are a scalar": (
        model([node("ReverseSequence", "x l", "y")], [X], [Y], {"l": np.array(1)}),
        "node 'y' (ReverseSequence): input 1 has rank 0, expected 1",
    ),
    "a row without channels": (
        model([node("InstanceNormalization", "x s s", "y")], [("x", FLOAT, [3])], [("y", FLOAT, [3])], {"s": np.ones(3, np.float32)}),
        "node 'y' (InstanceNormalization): input has shape 3, expected channels as its axis 1",
    ),
    "a scalar as a matrix": (model([node("Gemm", "x w", "y")], [("x", FLOAT, [])], [OPEN], {"w": np.ones((3, 2), np.float32)}), "node 'y' (Gemm): input 0 has shape scalar, expected a matrix"),
    "parameters of another rank": (
        model([node("InstanceNormalization", "x s b", "y")], [("x", FLOAT, [2, 3, 4])], [("y", FLOAT, [2, 3, 4])], {"s": np.ones((3, 2), np.float32), "b": np.ones(3, np.float32)}),
        "node 'y' (InstanceNormalization): input 1 has rank 2, expected 1",
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_operands(onnx2halide, tmp_path, name):
    refused_model(onnx2halide, tmp_path, *MODELS[name])
