"""Operators that are expanded when a model is loaded: what is not supported, and the names of a body's nodes."""

import numpy as np
import onnx2halide
import pytest
from make_models import FLOAT, model, node
from onnx import TensorProto, helper
from onnx2halide.references import OnnxRuntime

X = ("x", FLOAT, [4, 2, 3])


def layer(op="LSTM", inputs="x W R", **attributes):
    """One layer of 5 hidden units."""
    rows = {"RNN": 5, "GRU": 15, "LSTM": 20}[op]
    weights = {"W": np.ones((1, rows, 3), np.float32), "R": np.ones((1, rows, 5), np.float32)}
    return model([node(op, inputs, "y", name="layer", hidden_size=5, **attributes)], [X], [("y", FLOAT, [4, 1, 2, 5])], weights)


REFUSED = {
    "direction": (layer(direction="up"), "node 'layer' (LSTM): attribute direction is 'up', expected forward, reverse or bidirectional"),
    "layout": (layer(layout=2), "node 'layer' (LSTM): attribute layout is 2, expected 0 or 1"),
    "clip": (layer("GRU", clip=-1.0), "node 'layer' (GRU): attribute clip is -1, expected a positive number"),
    "activation": (layer("RNN", activations=["Gauss"]), "node 'layer' (RNN): attribute activations has 'Gauss', which is not an activation function"),
    "too few activations": (layer(activations=["Tanh", "Tanh"]), "node 'layer' (LSTM): attribute activations has 2 values, expected 3"),
    "no alpha": (layer("RNN", activations=["ScaledTanh"]), "node 'layer' (RNN): attribute activation_alpha has 0 values, and ScaledTanh has no default"),
    "no beta": (
        layer("GRU", activations=["Affine", "Affine"], activation_alpha=[1.0, 2.0], activation_beta=[0.5]),
        "node 'layer' (GRU): attribute activation_beta has 1 values, and Affine has no default",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(onnx2halide, tmp_path, name):
    bad, message = REFUSED[name]
    (tmp_path / "tiny.onnx").write_bytes(bad.SerializeToString())
    done = onnx2halide("compile", "tiny.onnx", "-o", "out")
    assert (done.returncode, done.stderr) == (1, f"tiny.onnx: {message}\n")


def contributed(op: str, inputs: str, outputs: str = "y", **attributes):
    """A node of onnxruntime's domain."""
    made = model([node(op, inputs, outputs, name="fused", domain="com.microsoft", **attributes)], [X], [("y", FLOAT, [4, 2, 3])], {"w": np.ones((3, 9), np.float32), "scale": np.ones(3, np.float32)})
    made.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    return made


CONTRIBUTED = {
    "no heads": (contributed("Attention", "x w"), "node 'fused' (com.microsoft.Attention): attribute num_heads is missing"),
    "heads": (contributed("Attention", "x w", num_heads=-1), "node 'fused' (com.microsoft.Attention): attribute num_heads is -1, expected 1 to 2147483647"),
    "rotary": (contributed("Attention", "x w", num_heads=3, do_rotary=1), "node 'fused' (com.microsoft.Attention): attribute do_rotary is 1, which is not supported"),
    "hidden sizes": (contributed("Attention", "x w", num_heads=3, qkv_hidden_sizes=[3, 6]), "node 'fused' (com.microsoft.Attention): attribute qkv_hidden_sizes has 2 values, expected 3"),
    "scores": (contributed("MultiHeadAttention", "x x x", "y keys values qk", num_heads=3), "node 'fused' (com.microsoft.MultiHeadAttention): output 3 (qk) is not supported"),
    "shared heads": (contributed("GroupQueryAttention", "x x x", num_heads=3, kv_num_heads=2), "node 'fused' (com.microsoft.GroupQueryAttention): attribute num_heads is 3, expected a multiple of kv_num_heads, 2"),
    "activation": (contributed("FusedConv", "x w", activation="Swish"), "node 'fused' (com.microsoft.FusedConv): attribute activation is 'Swish', which is not supported"),
    "experts": (contributed("MoE", "x x w w w", activation_type="mish"), "node 'fused' (com.microsoft.MoE): attribute activation_type is 'mish', expected relu, gelu, silu, swiglu or identity"),
    "gates": (contributed("MoE", "x x w w w", activation_type="swiglu"), "node 'fused' (com.microsoft.MoE): swiglu_fusion is 0 and fc3_experts_weights missing, expected one of both"),
    "parameters": (contributed("FusedConv", "x w", activation="LeakyRelu"), "node 'fused' (com.microsoft.FusedConv): attribute activation_params has 0 values, expected 1"),
    "mean": (contributed("SkipLayerNormalization", "x x scale", "y mean"), "node 'fused' (com.microsoft.SkipLayerNormalization): output 1 (mean) is not supported"),
}


@pytest.mark.parametrize("name", CONTRIBUTED)
def test_contributed_refused(onnx2halide, tmp_path, name):
    bad, message = CONTRIBUTED[name]
    (tmp_path / "tiny.onnx").write_bytes(bad.SerializeToString())
    done = onnx2halide("compile", "tiny.onnx", "-o", "out")
    assert (done.returncode, done.stderr) == (1, f"tiny.onnx: {message}\n")


def gelu(inputs: str, **attributes):
    fused = node("FastGelu", inputs, "y", name="act", domain="com.microsoft", **attributes)
    made = model([fused], [X], [("y", FLOAT, [4, 2, 3])], {"bias": np.ones(3, np.float32), "more": np.ones(3, np.float32)})
    made.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    return made


def test_too_many_inputs(onnx2halide, tmp_path):
    (tmp_path / "tiny.onnx").write_bytes(gelu("x bias more").SerializeToString())
    done = onnx2halide("compile", "tiny.onnx", "-o", "out")
    assert (done.returncode, done.stderr) == (1, "tiny.onnx: node 'act' (com.microsoft.FastGelu): has 3 inputs, expected at most 2\n")


def test_names_of_a_body(onnx2halide, tmp_path):
    (tmp_path / "tiny.onnx").write_bytes(gelu("x bias").SerializeToString())
    done = onnx2halide("compile", "tiny.onnx", "-o", "out", "--sources-only")
    assert (done.returncode, done.stderr) == (0, "")
    assert "act_sum = Add(x, bias)" in (tmp_path / "out" / "tiny_generators.cpp").read_text()


def test_node_of_a_branch():
    """The body reads a value of the outer graph, and its own names differ between the branches."""
    branches = {}
    for name in ("then_branch", "else_branch"):
        nodes = [node("Neg", "x", f"{name}_in"), node("FastGelu", f"{name}_in bias", f"{name}_out", name="act", domain="com.microsoft")]
        branches[name] = helper.make_graph(nodes[name == "then_branch" :], name, [], [helper.make_tensor_value_info(f"{name}_out", FLOAT, [4, 2, 3])])
    branches["then_branch"].node[0].input[0] = "x"
    made = model([node("If", "c", "y", **branches)], [X, ("c", TensorProto.BOOL, [])], [("y", FLOAT, [4, 2, 3])], {"bias": np.ones(3, np.float32)})
    made.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    x = np.linspace(-3, 3, 24, dtype=np.float32).reshape(4, 2, 3)
    compiled = onnx2halide.compile(made)
    for condition in (True, False):
        inputs = {"x": x, "c": np.array(condition)}
        np.testing.assert_allclose(compiled.run_by_name(inputs)["y"], OnnxRuntime(made).run(inputs)["y"], rtol=1e-5, atol=1e-6)
