"""Calls of functions that a model defines, against onnxruntime and ONNX's reference."""

import numpy as np
import onnx2halide
import pytest
from make_models import FLOAT, node
from onnx import helper, numpy_helper, parser
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


def check(text, inputs, reference=OnnxRuntime):
    proto = parser.parse_model(text)
    got, expected = onnx2halide.compile(proto).run_by_name(inputs), reference(proto).run(inputs)
    for name, array in expected.items():
        np.testing.assert_allclose(got[name], array, rtol=1e-5, atol=1e-6, err_msg=name)


X = np.random.default_rng(1).normal(size=(3, 4)).astype(np.float32)


def test_default_attributes():
    """Of calls in the graph, in a branch and in another function, of which some are given and some passed on."""
    check(
        """<ir_version: 9, opset_import: ["" : 17, "local" : 1]> g (float[3,4] x, bool c) => (float[3,4] y, float[3,4] z, float[3,4] w) {
            y = local.Leaky (x) z = local.Leaky <slope = 0.5> (x)
            w = If (c) <then_branch = t () => (float[3,4] a) { a = local.Passed (x) }, else_branch = e () => (float[3,4] b) { b = local.Leaky (x) }> }
        <domain: "local", opset_import: ["" : 17]> Leaky <slope: float = 0.25> (a) => (b) { b = LeakyRelu <alpha: float = @slope> (a) }
        <domain: "local", opset_import: ["" : 17, "local" : 1]> Passed <own: float = 3.0> (a) => (b) { c = local.Leaky <slope: float = @own> (a) b = local.Leaky (c) }""",
        {"x": X, "c": np.array(True)},
    )


def test_bodies_that_return_what_no_node_of_theirs_makes():
    """An input, an initialiser, and a value twice."""
    check(
        """<ir_version: 8, opset_import: ["" : 17, "local" : 1]> g (float[3,4] x, bool c) => (float[3,4] y, float[3,4] z, float[2] k, float[3,4] u, float[3,4] v) {
            y = local.Repeat (x) z, k = local.Branch (x, c) u, v = local.Twice (x, c) }
        <domain: "local", opset_import: ["" : 17]> Repeat (a) => (b) {
            n = Constant <value_int = 3> () go = Constant <value = bool {1}> ()
            b = Loop (n, go, a) <body = turn (int64 i, bool on, float[3,4] v) => (on, float[3,4] w) { w = Add (v, a) }> }
        <domain: "local", opset_import: ["" : 17]> Branch (a, c) => (b, d) {
            b, d = If (c) <then_branch = t () => (float[3,4] o, float[2] k) <float[2] k = {1.0, 2.0}> { o = Neg (a) },
                           else_branch = e () => (float[3,4] p, float[2] l) <float[2] l = {3.0, 4.0}> { p = Relu (a) }> }
        <domain: "local", opset_import: ["" : 17]> Twice (a, c) => (b, d) {
            b, d = If (c) <then_branch = t () => (float[3,4] o, float[3,4] o) { o = Neg (a) }, else_branch = e () => (float[3,4] p, float[3,4] q) { p = Relu (a) q = Abs (a) }> }""",
        {"x": X, "c": np.array(False)},
    )


def test_function_that_returns_its_operand():
    check(
        """<ir_version: 9, opset_import: ["" : 17, "local" : 1]> g (float[3,4] x) => (float[3,4] w) { y, z = local.Both (x) w = Sub (y, z) }
        <domain: "local", opset_import: ["" : 17]> Both (a) => (a, b) { b = Neg (a) }""",
        {"x": X},
        OnnxReference,
    )


def test_domain_that_only_a_function_imports():
    check(
        """<ir_version: 8, opset_import: ["" : 17, "local" : 1]> g (int64[3] x) => (int64[3] y) { y = local.Encode (x) }
        <domain: "local", opset_import: ["local" : 1, "" : 17, "ai.onnx.ml" : 3]> Encode (a) => (b)
            { b = ai.onnx.ml.LabelEncoder <keys_int64s = [1, 2, 3], values_int64s = [10, 20, 30], default_int64 = -7> (a) }""",
        {"x": np.array([1, 3, 9])},
    )


@pytest.mark.parametrize("domain", ["", "ai.onnx"])
def test_function_operators_by_the_domains_name(domain):
    q = np.random.default_rng(2).normal(size=(2, 3, 8)).astype(np.float32)
    check(
        f"""<ir_version: 10, opset_import: ["{domain}" : 23]> g (float[2,3,8] q) => (float[2,3,8] y)
            {{ y = Attention <q_num_heads = 2, kv_num_heads = 2> (q, q, q) }}""",
        {"q": q},
    )


def test_function_operators_behind_recurrent_layers():
    rng = np.random.default_rng(2)
    inputs = {name: rng.normal(size=shape).astype(np.float32) / 3 for name, shape in (("q", (2, 3, 8)), ("w", (1, 32, 8)), ("r", (1, 32, 8)))}
    check(
        """<ir_version: 10, opset_import: ["" : 23]> g (float[2,3,8] q, float[1,32,8] w, float[1,32,8] r) => (float[2,3,8] y) {
            h = LSTM <hidden_size = 8> (q, w, r) one = Constant <value_ints = [1]> () k = Squeeze (h, one)
            y = Attention <q_num_heads = 2, kv_num_heads = 2> (q, k, k) }""",
        inputs,
    )


def test_names_that_a_branch_and_the_graph_use():
    """The output keeps its name, though a branch before it uses the same; the loss is a function operator."""
    check(
        """<ir_version: 10, opset_import: ["" : 23]> g (float[3,4] x, int64[3] labels, bool c) => (float[3,4] y, float z) {
            y = If (c) <then_branch = t () => (float[3,4] y) { y = Identity (x) }, else_branch = e () => (float[3,4] a) { a = Neg (x) }>
            z = NegativeLogLikelihoodLoss (x, labels) }""",
        {"x": X, "labels": np.array([1, 3, 0]), "c": np.array(True)},
    )


def test_function_operators_of_models_with_large_weights():
    """Which copies of the model lack while the operators are expanded."""
    proto = parser.parse_model(
        """<ir_version: 10, opset_import: ["" : 23]> g (float[3,4] x, int64[3] labels, bool c) => (float y, float z) {
            u = MatMul (x, w) v = If (c) <then_branch = t () => (float[3,400] a) { a = Add (u, b) }, else_branch = e () => (float[3,400] d) { d = Neg (u) }>
            y = NegativeLogLikelihoodLoss (v, labels) z = SoftmaxCrossEntropyLoss (u, labels) }"""
    )
    rng = np.random.default_rng(4)
    proto.graph.initializer.extend(numpy_helper.from_array(rng.normal(size=shape).astype(np.float32), name) for name, shape in (("b", (400,)), ("w", (4, 400))))
    inputs = {"x": X, "labels": np.array([1, 399, 0]), "c": np.array(True)}
    got, expected = onnx2halide.compile(proto).run_by_name(inputs), OnnxRuntime(proto).run(inputs)
    for name in "yz":
        np.testing.assert_allclose(got[name], expected[name], rtol=1e-5)
