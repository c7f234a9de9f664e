"""Calls of functions that a model defines, against onnxruntime and ONNX's reference."""

import numpy as np
import onnx2halide
from make_models import FLOAT, node
from onnx import helper, parser
from onnx2halide.references import OnnxReference, OnnxRuntime

DOMAIN = "local"


def test_functions_of_other_opsets():
    """One function calls another, and has a subgraph."""
    inner = [node("Softmax", "a", "s", axis=1), node("Relu", "s", "r")]
    branch = helper.make_graph([node("Neg", "a", "t")], "other", [], [helper.make_tensor_value_info("t", FLOAT, None)])
    other = helper.make_graph([node("Identity", "a", "e")], "same", [], [helper.make_tensor_value_info("e", FLOAT, None)])
    outer = [
        node("SumRows", "a", "rows", domain=DOMAIN),
        node("ReduceMax", "rows", "most", keepdims=0),
        node("Greater", "most zero", "is_large"),
        node("If", "is_large", "picked", then_branch=branch, else_branch=other),
        node("Mul", "picked most", "b"),
    ]
    imports = [helper.make_opsetid("", 14), helper.make_opsetid(DOMAIN, 1)]
    functions = [
        helper.make_function(DOMAIN, "Scaled", ["a", "zero"], ["b"], outer, imports),
        helper.make_function(DOMAIN, "SumRows", ["a"], ["r"], inner, imports),
    ]
    graph = helper.make_graph(
        [node("Scaled", "x zero", "m", domain=DOMAIN), node("ReduceSum", "m axis", "y", keepdims=1)],
        "calls",
        [helper.make_tensor_value_info("x", FLOAT, ["n", 3])],
        [helper.make_tensor_value_info("y", FLOAT, ["k", 1])],
        [helper.make_tensor("zero", FLOAT, [], [0.0]), helper.make_tensor("axis", 7, [1], [1])],
    )
    proto = helper.make_model(graph, functions=functions, opset_imports=[helper.make_opsetid("", 15), helper.make_opsetid(DOMAIN, 1)], ir_version=8)
    compiled, reference = onnx2halide.compile(proto), OnnxRuntime(proto)
    for sign, rows in ((1, 4), (-1, 4), (1, 1)):
        inputs = {"x": sign * np.random.default_rng(rows).random((rows, 3), np.float32)}
        np.testing.assert_allclose(compiled.run_by_name(inputs)["y"], reference.run(inputs)["y"], rtol=1e-5)


def test_functions_of_opsets_in_which_operators_were_others():
    """Squeeze has its axes as an attribute before 13, ReduceMax before 18; the same inside of a branch.
    onnxruntime uses the model's opset for the function."""
    branch = helper.make_graph([node("Squeeze", "m", "t", axes=[1])], "then", [], [helper.make_tensor_value_info("t", FLOAT, None)])
    other = helper.make_graph([node("ReduceMin", "a", "e", axes=[1, 2], keepdims=0)], "else", [], [helper.make_tensor_value_info("e", FLOAT, None)])
    old = [
        node("Softmax", "a", "s", axis=2),
        node("ReduceMax", "s", "k", axes=[2], keepdims=0),
        node("ReduceSum", "k", "m", axes=[1], keepdims=1),
        node("ReduceSum", "a", "all", keepdims=0),
        node("Greater", "all zero", "is_large"),
        node("If", "is_large", "b", then_branch=branch, else_branch=other),
    ]
    function = helper.make_function(DOMAIN, "Old", ["a", "zero"], ["b"], old, [helper.make_opsetid("", 11)])
    graph = helper.make_graph(
        [node("Old", "x zero", "m", domain=DOMAIN), node("ReduceMax", "x axes", "n", keepdims=0), node("Add", "m n", "y")],
        "calls",
        [helper.make_tensor_value_info("x", FLOAT, ["n", 3, 2])],
        [helper.make_tensor_value_info("y", FLOAT, ["n"])],
        [helper.make_tensor("zero", FLOAT, [], [0.0]), helper.make_tensor("axes", 7, [2], [1, 2])],
    )
    proto = helper.make_model(graph, functions=[function], opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid(DOMAIN, 1)], ir_version=9)
    compiled, reference = onnx2halide.compile(proto), OnnxReference(proto)
    for sign in (1, -1):
        inputs = {"x": sign * np.random.default_rng(2).random((4, 3, 2), np.float32)}
        np.testing.assert_allclose(compiled.run_by_name(inputs)["y"], reference.run(inputs)["y"], rtol=1e-5)


def test_function_operators_in_branches():
    """Attention is one. Both branches use the same names, and one has an inner branch that captures from both outer graphs."""
    inner = """If (deep) <
        then_branch = deepest () => (float[1,2,a,4] best) { keys = Abs (keys_of_branch) best = Attention (x, keys, same) },
        else_branch = other () => (float[1,2,a,4] rest) { rest = Neg (x) }>"""
    text = f"""<ir_version: 10, opset_import: ["" : 23]> g (float[1,2,n,4] x, bool long, bool deep) => (float[b,2,c,4] y) {{
        same = Relu (x)
        y = If (long) <
            then_branch = whole () => (float[1,2,d,4] z) {{ keys_of_branch = Neg (x) z = {inner} }},
            else_branch = half () => (float[1,1,e,8] z) {{
                shape = Constant <value_ints = [1, 1, -1, 8]> ()
                keys_of_branch = Reshape (x, shape)
                z = Attention (keys_of_branch, keys_of_branch, keys_of_branch)
            }}>
    }}"""
    proto = parser.parse_model(text)
    compiled, reference = onnx2halide.compile(proto), OnnxRuntime(proto)
    for rows, long, deep in ((3, True, True), (5, True, False), (4, False, True)):
        inputs = {"x": np.random.default_rng(rows).random((1, 2, rows, 4), np.float32), "long": np.array(long), "deep": np.array(deep)}
        np.testing.assert_allclose(compiled.run_by_name(inputs)["y"], reference.run(inputs)["y"], rtol=1e-5, atol=1e-6)
