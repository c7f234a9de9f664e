"""Mixtures of experts and products of 4-bit floats of com.microsoft, against onnxruntime or, if that has no kernel, numpy."""

import numpy as np
import onnx2halide
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx2halide.compare import difference
from onnx2halide.references import OnnxRuntime

EXPERTS, WIDTH, INNER = 4, 32, 48


def model(op: str, inputs: dict, names: list[str], constants: dict, output: list, kind=TensorProto.FLOAT, **attributes):
    node = helper.make_node(op, names, ["y"], domain="com.microsoft", **attributes)
    ports = [helper.make_tensor_value_info(name, kind, shape) for name, shape in inputs.items()]
    initialisers = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph([node], "experts", ports, [helper.make_tensor_value_info("y", kind, output)], initialisers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)], ir_version=9)


def numbers(*shape, seed=0, scale=1.0):
    return np.random.default_rng(sum(shape) + seed).normal(0, scale, shape).astype(np.float32)


def codes(*shape):
    return np.random.default_rng(sum(shape)).integers(0, 256, shape).astype(np.uint8)


def tokens(rows: int, **more) -> dict:
    return {"x": numbers(rows, WIDTH), "p": numbers(rows, EXPERTS, seed=1)} | more


def check(proto, runs: list[dict], tolerance=1e-5):
    compiled, reference = onnx2halide.compile(proto), OnnxRuntime(proto)
    for inputs in runs:
        distance = difference(compiled.run_by_name(inputs)["y"], reference.run(inputs)["y"])
        assert not distance.exceeds(tolerance), distance.text()


def mixture(activation: str, has_bias=True, has_gate=False, shape=("tokens", WIDTH), **attributes):
    rows = INNER * (2 if attributes.get("swiglu_fusion") else 1)
    constants = {"w1": numbers(EXPERTS, rows, WIDTH, scale=0.2), "w2": numbers(EXPERTS, WIDTH, INNER, scale=0.2)}
    if has_bias:
        constants |= {"b1": numbers(EXPERTS, rows), "b2": numbers(EXPERTS, WIDTH)}
    names = ["x", "p", "w1", "b1" if has_bias else "", "w2", "b2" if has_bias else ""]
    if has_gate:
        constants |= {"w3": numbers(EXPERTS, INNER, WIDTH, seed=3, scale=0.2)}
        names.append("w3")
    attributes = {"k": 2, "activation_type": activation} | attributes
    return model("MoE", {"x": list(shape), "p": ["rows", EXPERTS]}, names, constants, list(shape), **attributes), constants


SWIGLU = {"activation_alpha": 1.702, "activation_beta": 1.0, "swiglu_limit": 0.7}


@pytest.mark.parametrize(
    "activation, attributes",
    [
        ("relu", {"k": 1}),
        ("gelu", {"normalize_routing_weights": 1}),
        ("silu", {"has_bias": False, "k": 3}),
        ("identity", {}),
        ("swiglu", {"swiglu_fusion": 1}),
        ("swiglu", {"swiglu_fusion": 1, **SWIGLU}),
    ],
    ids=str,
)
def test_experts(activation, attributes):
    check(mixture(activation, **attributes)[0], [tokens(1), tokens(9)])


def test_experts_of_sequences():
    proto, _ = mixture("silu", shape=("batch", "sequence", WIDTH))
    check(proto, [{"x": numbers(2, 3, WIDTH), "p": numbers(6, EXPERTS)}])


@pytest.mark.parametrize("activation, attributes", [("silu", {"has_gate": True}), ("swiglu", {"has_gate": True, **SWIGLU}), ("swiglu", {"swiglu_fusion": 2})], ids=str)
def test_gates_of_experts(activation, attributes):
    """onnxruntime has no CPU kernel for these."""
    proto, weights = mixture(activation, has_bias=False, **attributes)
    inputs = tokens(5)
    shares = np.exp(inputs["p"]) / np.exp(inputs["p"]).sum(-1, keepdims=True)
    expected = np.zeros_like(inputs["x"])
    for row, x in enumerate(inputs["x"]):
        for expert in np.argsort(-shares[row])[:2]:
            first = weights["w1"][expert] @ x
            gate, linear = (first, weights["w3"][expert] @ x) if "w3" in weights else np.split(first, 2)
            if activation == "swiglu":
                limit = attributes.get("swiglu_limit", np.inf)
                gate, linear = np.minimum(gate, limit), np.clip(linear, -limit, limit) + attributes.get("activation_beta", 0)
            hidden = gate / (1 + np.exp(-gate * attributes.get("activation_alpha", 1))) * linear
            expected[row] += shares[row, expert] * (weights["w2"][expert] @ hidden)
    np.testing.assert_allclose(onnx2halide.compile(proto).run_by_name(inputs)["y"], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("bits, block, has_zeros, normalises", [(4, 0, True, 0), (4, 16, True, 1), (2, 16, False, 0), (8, 0, False, 1)])
def test_quantised_experts(bits, block, has_zeros, normalises):
    constants, blocks = {}, lambda columns: (columns // block,) if block else ()
    for name, rows, columns in (("w1", INNER, WIDTH), ("w2", WIDTH, INNER)):
        constants[name] = codes(EXPERTS, rows, columns * bits // 8)
        constants[name + "_s"] = np.abs(numbers(EXPERTS, rows, *blocks(columns), scale=0.02))
        if has_zeros:
            of_bytes = (rows, -(-columns // block * bits // 8)) if block else (rows * bits // 8,)
            constants[name + "_z"] = codes(EXPERTS, *of_bytes)
    names = ["x", "p", "w1", "w1_s", "", "w2", "w2_s", "", "", "", "", *(["w1_z", "w2_z"] if has_zeros else ["", ""]), "", "shares"]
    attributes = {"k": 2, "activation_type": "silu", "expert_weight_bits": bits, "normalize_routing_weights": normalises} | ({"block_size": block} if block else {})
    inputs = {"x": ["n", WIDTH], "p": ["n", EXPERTS], "shares": ["n", EXPERTS]}
    runs = [tokens(rows, shares=np.abs(numbers(rows, EXPERTS, seed=2))) for rows in (1, 6)]
    check(model("QMoE", inputs, names, constants, ["n", WIDTH], **attributes), runs)
    # Without shares of their own the experts share by a softmax over the chosen.
    del inputs["shares"]
    check(model("QMoE", inputs, names[:-1], constants, ["n", WIDTH], **attributes), [tokens(6)])


@pytest.mark.parametrize("kind", ["float32", "float16"])
@pytest.mark.parametrize("quant_type", [0, 1], ids=["fp4", "nf4"])
@pytest.mark.parametrize("depth, columns, block", [(64, 7, 16), (48, 9, 32), (17, 3, 64)])
def test_products_of_4_bit_floats(kind, quant_type, depth, columns, block):
    constants = {"w": codes((columns * depth + 1) // 2), "s": np.abs(numbers(-(-columns * depth // block))).astype(kind)}
    attributes = {"K": depth, "N": columns, "block_size": block, "quant_type": quant_type}
    proto = model("MatMulBnb4", {"x": ["n", depth]}, ["x", "w", "s"], constants, ["n", columns], helper.np_dtype_to_tensor_dtype(np.dtype(kind)), **attributes)
    check(proto, [{"x": numbers(rows, depth).astype(kind)} for rows in (1, 5)], 1e-5 if kind == "float32" else 2e-3)


def test_products_of_4_bit_floats_that_are_not_transposed():
    """onnxruntime ignores transB on CPUs."""
    constants = {"w": np.array([0x70, 0x0F, 0xF7, 0x7F], np.uint8), "s": np.array([1, 2], np.float32)}
    attributes = {"K": 2, "N": 4, "block_size": 4, "quant_type": 1, "transB": 0}
    proto = model("MatMulBnb4", {"x": ["n", 4]}, ["x", "w", "s"], constants, ["n", 2], **attributes)
    expected = [[0, -1], [-1, 1], [2, 0], [0, 2]]
    np.testing.assert_array_equal(onnx2halide.compile(proto).run([np.eye(4, dtype=np.float32)])[0], expected)
