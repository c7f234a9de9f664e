"""Writes the small models from which the fuzz test starts: python tests/load/make_seeds.py"""

import pathlib
import sys

import numpy as np
from onnx import TensorProto, helper

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from make_models import FLOAT, chain, layer, model, node, with_external_weight  # noqa: E402

INT64 = TensorProto.INT64


def shapes():
    """Shape arithmetic that leads to a Reshape."""
    nodes = [
        node("Shape", "x", "s"), node("Gather", "s zero", "batch"), node("Concat", "batch minus", "to", axis=0), node("Reshape", "x to", "flat"),
        node("Unsqueeze", "flat axes", "u"), node("Expand", "u wide", "y"),
    ]
    constants = {"zero": np.array([0]), "minus": np.array([-1]), "axes": np.array([1]), "wide": np.array([1, 3, 1])}
    return model(nodes, [("x", FLOAT, ["batch", 2, 3])], [("y", FLOAT, [None, 3, 6])], constants)


def windows():
    nodes = [
        node("Pad", "x pads", "p"), node("Conv", "p w b", "c", strides=[2, 1], dilations=[1, 2], group=2, auto_pad="SAME_UPPER"),
        node("MaxPool", "c", "m", kernel_shape=[2, 2], ceil_mode=1), node("ConvTranspose", "m v", "t", output_padding=[1, 1], strides=[2, 2]),
        node("AveragePool", "t", "y", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
    ]
    weights = {"w": np.zeros((4, 1, 3, 3), np.float32), "b": np.zeros(4, np.float32), "v": np.zeros((4, 2, 3, 3), np.float32), "pads": np.array([0, 0, 1, 1] * 2)}
    return model(nodes, [("x", FLOAT, [1, 2, 9, 9])], [("y", FLOAT, [None] * 4)], weights)


def moves():
    nodes = [
        node("Transpose", "x", "t", perm=[2, 0, 1]), node("Slice", "t starts ends axes steps", "s"), node("Split", "s", "a b", axis=1, num_outputs=2),
        node("Tile", "a times", "c"), node("Gather", "c index", "g", axis=1), node("ScatterND", "g where what", "y"),
    ]
    constants = {
        "starts": np.array([5, 0]), "ends": np.array([-100, 3]), "axes": np.array([0, 1]), "steps": np.array([-2, 1]), "times": np.array([1, 2, 2]),
        "index": np.array([0, 1, -1]), "where": np.array([[0, 0, 0]]), "what": np.array([1.0], np.float32),
    }
    return model(nodes, [("x", FLOAT, [4, 3, 6])], [("y", FLOAT, [None] * 3)], constants)


def reductions():
    nodes = [
        node("ReduceMean", "x axes", "m", keepdims=1), node("Sub", "x m", "d"), node("Softmax", "d", "s", axis=-1), node("ArgMax", "s", "i", axis=1),
        node("Cast", "i", "f", to=FLOAT), node("CumSum", "f zero", "y", exclusive=1),
    ]
    return model(nodes, [("x", FLOAT, [4, 8])], [("y", FLOAT, [None, None])], {"axes": np.array([1]), "zero": np.array(0)})


def scaled():
    nodes = [node("Resize", "x roi scales", "r", mode="linear"), node("DepthToSpace", "r", "y", blocksize=1)]
    constants = {"roi": np.array([], np.float32), "scales": np.array([1, 1, 2, 0.5], np.float32)}
    return model(nodes, [("x", FLOAT, [1, 2, 4, 4])], [("y", FLOAT, [None] * 4)], constants)


def recurrent():
    attributes = {"direction": "bidirectional", "clip": 3.0, "input_forget": 1, "activations": ["Sigmoid", "Tanh", "Affine"] * 2, "activation_alpha": [1.0, 2.0], "activation_beta": [0.0, 1.0]}
    nodes = [node("LSTM", "x W R B lengths h c P", "s", hidden_size=1, **attributes), node("GRU", "x V Q", "y last", hidden_size=1, linear_before_reset=1)]
    shapes = {"W": (2, 4, 2), "R": (2, 4, 1), "B": (2, 8), "h": (2, 1, 1), "c": (2, 1, 1), "P": (2, 3), "V": (1, 3, 2), "Q": (1, 3, 1)}
    weights = {name: np.zeros(shape, np.float32) for name, shape in shapes.items()} | {"lengths": np.array([2], np.int32)}
    return model(nodes, [("x", FLOAT, [3, 1, 2])], [("s", FLOAT, [None] * 4), ("last", FLOAT, [1, 1, 1])], weights)


def with_function():
    """A model-local function that is called twice."""
    inner = [node("Add", "a b", "s"), node("Relu", "s", "r")]
    function = helper.make_function("local", "AddRelu", ["a", "b"], ["r"], inner, [helper.make_opsetid("", 22)])
    made = model([node("AddRelu", "x x", "h", domain="local"), node("AddRelu", "h x", "y", domain="local")], [("x", FLOAT, [2, 3])], [("y", FLOAT, [2, 3])])
    made.opset_import.append(helper.make_opsetid("local", 1))
    made.functions.append(function)
    return made


SEEDS = {
    "chain": chain("Neg", "Exp", "Flatten"), "layer": layer("batch"), "shapes": shapes(), "windows": windows(), "moves": moves(), "reductions": reductions(),
    "scaled": scaled(), "function": with_function(), "external": with_external_weight("weights.bin"), "recurrent": recurrent(),
}

for name, seed in SEEDS.items():
    (pathlib.Path(__file__).parent / "seeds" / f"{name}.onnx").write_bytes(seed.SerializeToString(deterministic=True))
