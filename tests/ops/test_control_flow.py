"""Branches and loops against onnxruntime, at several sizes of one library."""

import numpy as np
import onnx2halide
import pytest
from onnx import helper, numpy_helper, parser
from onnx2halide.compare import difference
from onnx2halide.references import OnnxRuntime

# Each dim of both states changes in every iteration, which appends two slices.
GROWING = """g (float[n,m] a, float[p,q] b, int64 turns) => (float[c,d] x, float[e,f] y, float[r,s] u, float[t,2] v) {
    goes = Constant <value = bool {1}> ()
    x, y, u, v = Loop (turns, goes, a, b) <body = turn (int64 i, bool on, float[j,k] s, float[l,o] z)
        => (bool on_out, float[j2,k2] s_out, float[l2,o2] z_out, float[w] first, float[2] numbers) {
        on_out = Identity (on)
        wide = Concat <axis = 1> (s, s)
        s_out = Concat <axis = 0> (wide, wide)
        tall = Concat <axis = 0> (z, z)
        z_out = Concat <axis = 1> (tall, tall)
        zero = Constant <value_int = 0> ()
        column = Gather <axis = 1> (b, zero)
        first = Neg (column)
        step = Cast <to = 1> (i)
        axis_0 = Constant <value_ints = [0]> ()
        one = Unsqueeze (step, axis_0)
        numbers = Concat <axis = 0> (one, one)
    }>
}"""

# The loop ends by its own condition, in a branch that may be taken.
UNTIL = """g (float[n] x, float limit, bool whole) => (float[m] y) {
    y = If (whole) <then_branch = counting () => (float[k] sums) {
        goes = Constant <value = bool {1}> ()
        sums = Loop ("", goes, x) <body = turn (int64 i, bool on, float[n] s) => (bool on_out, float[n] s_out) {
            s_out = Add (s, s)
            most = ReduceMax <keepdims = 0> (s_out)
            on_out = Less (most, limit)
        }>
    }, else_branch = halves () => (float[h] half) {
        all = Shape (x)
        two = Constant <value_ints = [2]> ()
        end = Div (all, two)
        start = Constant <value_ints = [0]> ()
        half = Slice (x, start, end)
    }>
}"""


# The trip count is the number of steps, from a Shape.
STEPS = """g (float[n,t] x) => (float[n] last, float[t2,n] all) {
    goes = Constant <value = bool {1}> ()
    shape = Shape (x)
    axis = Constant <value_int = 1> ()
    turns = Gather <axis = 0> (shape, axis)
    zero = Constant <value_int = 0> ()
    first = Gather <axis = 1> (x, zero)
    last, all = Loop (turns, goes, first) <body = turn (int64 i, bool on, float[n] s) => (bool on_out, float[n] s_out, float[n] slice) {
        on_out = Identity (on)
        step = Gather <axis = 1> (x, i)
        s_out = Add (s, step)
        slice = Neg (s_out)
    }>
}"""

# The axes of an operator of the body are a constant of the enclosing graph.
CAPTURED_AXES = """g (float[n,3] x, int64 turns) => (float[m,3] y, float[k,3] sums) {
    goes = Constant <value = bool {1}> ()
    axes = Constant <value_ints = [0]> ()
    y, sums = Loop (turns, goes, x) <body = turn (int64 i, bool on, float[j,3] s) => (bool on_out, float[l,3] s_out, float[3] sum) {
        on_out = Identity (on)
        s_out = Concat <axis = 0> (s, s)
        sum = ReduceSum <keepdims = 0> (s, axes)
    }>
}"""

# Loop-invariant states, such as the weights and the axes, are as well known inside as outside, also in a nested loop.
STEADY = """g (float[n,3] x, float[3,3] w, int64 turns) => (float[m,3] y, float[3,3] w_out, float[p,3] w_all, float[n,3] z, float[3,3] w_last) {
    goes = Constant <value = bool {1}> ()
    axes = Constant <value_ints = [0]> ()
    axes_out, y, w_out, w_all = Loop (turns, goes, axes, x, w) <body = turn (int64 i, bool on, int64[1] a, float[j,3] s, float[3,3] v)
        => (bool on_out, int64[1] a_out, float[l,3] s_out, float[3,3] v_out, float[3] row) {
        on_out = Identity (on)
        v_out = Identity (v)
        a_out, sum = Loop (turns, on, a, s) <body = inner (int64 k, bool on_2, int64[1] a_2, float[q,3] s_2) => (bool on_3, int64[1] a_3, float[t,3] s_3) {
            on_3 = Identity (on_2)
            a_3 = Identity (a_2)
            total = ReduceSum (s_2, a_2)
            s_3 = Add (s_2, total)
        }>
        product = MatMul (sum, v)
        scaled = Tanh (product)
        s_out = Concat <axis = 0> (scaled, s)
        row = ReduceSum <keepdims = 0> (v, a_out)
    }>
    w_last, z = Scan <num_scan_inputs = 1, body = step (float[3,3] u, float[3] r) => (float[3,3] u_out, float[3] r_out) {
        u_out = Identity (u)
        r_out = MatMul (r, u)
    }> (w_out, x)
}"""

# Sizes in bodies are elements computed by the enclosing graph, of which the body has a view.
CAPTURED_SIZES = """g (float[n] x, float[m] q, bool choice) => (float[j] chosen, float[turns,k] all) {
    sum = ReduceSum (x)
    number = Cast <to = 7> (sum)
    scalar = Squeeze (number)
    one = Constant <value_ints = [1]> ()
    size = Reshape (scalar, one)
    chosen = If (choice) <then_branch = largest () => (float[a] first) {
        first, places = TopK (q, size)
    }, else_branch = front () => (float[b] part) {
        start = Constant <value_ints = [0]> ()
        part = Slice (q, start, size)
    }>
    goes = Constant <value = bool {1}> ()
    turns = Constant <value = int64 {3}> ()
    all = Loop (turns, goes) <body = turn (int64 i, bool on) => (bool on_out, float[c] slice) {
        on_out = Identity (on)
        slice, order = TopK (q, size)
    }>
}"""


# The size of slices follows from captured values; those of the last iteration come first.
BACKWARDS = """g (float[n,k] x, float[m,k] w, float[k] s) => (float[a] last, float[n,b,k] slices, float[n,k] sums) {
    last, slices, sums = Scan <num_scan_inputs = 1, scan_output_directions = [1, 0], body = step (float[k] a, float[k] v) => (float[k] next, float[b,k] slice, float[k] sum) {
        next = Add (a, v)
        sum = Identity (next)
        zero = Constant <value = float {0}> ()
        positive = Greater (w, zero)
        rows = NonZero (positive)
        line = Constant <value = int64 {0}> ()
        which = Gather (rows, line)
        picked = Gather (w, which)
        slice = Add (picked, next)
    }> (s, x)
}"""

# The size of an iteration's slices follows from elements at run time, and the kernel merges their axes.
LATE_SLICES = """g (float[4,3,5] x, int64[6] pads) => (float[a,b,c] slices) {
    padded = Pad (x, pads)
    slices = Scan <num_scan_inputs = 1, scan_output_directions = [1], body = step (v) => (w) { w = Tanh (v) }> (padded)
}"""

# Only the number of collected slices is used, not the slices.
COUNTED_TURNS = """g (float[n] x, int64 turns) => (int64 number) {
    last, slices = Loop (turns, , x) <body = turn (int64 i, bool on, float[n] a) => (bool on_out, float[n] b, float[n] slice) {
        on_out = Identity (on)
        b = Neg (a)
        slice = Abs (a)
    }>
    number = Size (slices)
}"""


def random(*shape):
    return np.random.default_rng(len(shape)).random(shape, np.float32) + 0.5


CASES = {
    "growing": (GROWING, [{"a": random(n, m), "b": random(p, q), "turns": np.array(turns)} for n, m, p, q, turns in ((2, 3, 1, 4, 3), (1, 1, 2, 2, 1), (3, 1, 2, 5, 2))]),
    "steps": (STEPS, [{"x": random(*shape)} for shape in ((2, 3), (1, 1), (4, 7))]),
    "captured axes": (CAPTURED_AXES, [{"x": random(n, 3), "turns": np.array(turns)} for n, turns in ((2, 3), (1, 1))]),
    "steady": (STEADY, [{"x": random(n, 3), "w": random(3, 3), "turns": np.array(turns)} for n, turns in ((2, 2), (1, 0), (4, 1))]),
    "captured sizes": (CAPTURED_SIZES, [{"x": np.ones(n, np.float32), "q": random(7), "choice": np.array(choice)} for n, choice in ((3, True), (3, False), (6, True))]),
    "backwards": (BACKWARDS, [{"x": random(n, 3), "w": random(m, 3), "s": random(3)} for n, m in ((3, 2), (1, 4), (4, 1))]),
    "late slices": (LATE_SLICES, [{"x": random(4, 3, 5), "pads": np.array(pads)} for pads in ((0, 1, 0, 2, 0, 3), (1, 0, 0, 0, 0, -2))]),
    "counted turns": (COUNTED_TURNS, [{"x": random(n), "turns": np.array(turns)} for n, turns in ((4, 3), (1, 2), (3, 0))]),
    "until": (UNTIL, [{"x": random(n), "limit": np.float32(limit), "whole": np.array(whole)} for n, limit, whole in ((4, 9, True), (5, 9, False), (7, 1000, True), (1, 0, True))]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_control_flow(name):
    text, runs = CASES[name]
    model = parser.parse_model(f'<ir_version: 10, opset_import: ["" : 22]> {text}')
    compiled, reference = onnx2halide.compile(model), OnnxRuntime(model)
    for inputs in runs:
        inputs = {key: np.asarray(value) for key, value in inputs.items()}
        expected = reference.run(inputs)
        for output, found in compiled.run_by_name(inputs).items():
            distance = difference(found, expected[output])
            assert not distance.exceeds(1e-6), (output, distance.text())


TWO_RANKS = "If (k) <then_branch = a () => (float[n] z, float[n] v) { z = Neg (x) v = Abs (x) }, else_branch = b () => (float[1,n] z, float[n] v) { o = Constant <value_ints = [0]> () z = Unsqueeze (x, o) v = Exp (x) }>"


@pytest.mark.parametrize(
    "text",
    [
        f"g (float[n] x, bool k, bool l) => (y) {{ y, w = {TWO_RANKS} }}",
        f"g (float[n] x, bool k, bool l) => (y, float[m] s, t) {{ y, t = {TWO_RANKS} f = Constant <value_ints = [-1]> () r = Exp (y) s = Reshape (r, f) }}",
        f"g (float[n] x, bool k, bool l) => (s) {{ y, t = {TWO_RANKS} s = Mul (y, t) }}",
        f"g (float[n] x, bool k, bool l) => (y) {{ y = If (l) <then_branch = c () => (u) {{ u, w = {TWO_RANKS} }}, else_branch = d () => (float[n] u) {{ u = Tanh (x) }}> }}",
    ],
    ids=["alone", "read, too", "after others", "in a branch"],
)
def test_results_of_two_ranks(text):
    """A model's result may have another rank in one branch than in the other."""
    model = parser.parse_model(f'<ir_version: 10, opset_import: ["" : 20]> {text}')
    compiled, reference = onnx2halide.compile(model), OnnxRuntime(model)
    for first, second in ((True, True), (False, True), (True, False)):
        inputs = {"x": random(4), "k": np.array(first), "l": np.array(second)}
        for output, expected in reference.run(inputs).items():
            found = compiled.run_by_name(inputs)[output]
            assert found.shape == expected.shape and not difference(found, expected).exceeds(1e-6)


# What follows reduces three axes, which only one of the branches has.
ONE_FITS = """<ir_version: 10, opset_import: ["" : 20]> g (float[2,3] x, bool k) => (float[n] y) {{
    z = If (k) <
        {} = a () => (float[2,3] u) {{ u = Identity (x) }},
        {} = b () => (float[2,3,1] v) {{ last = Constant <value_ints = [2]> () v = Unsqueeze (x, last) }}>
    axes = Constant <value_ints = [0, {}]> ()
    y = ReduceSum <keepdims = 0> (z, axes)
}}"""


@pytest.mark.parametrize("unfit, fits, chosen", [("then_branch", "else_branch", "true"), ("else_branch", "then_branch", "false")])
def test_a_branch_that_does_not_fit_fails_at_run_time(unfit, fits, chosen):
    with pytest.warns(UserWarning, match=f"node 'z' .If.: {unfit} fails at run time"):
        compiled = onnx2halide.compile(parser.parse_model(ONE_FITS.format(unfit, fits, 2)))
    x = random(2, 3)
    for _ in range(2):
        np.testing.assert_allclose(compiled.run([x, np.array(fits == "then_branch")])[0], x.sum(0), rtol=1e-6)
        with pytest.raises(ValueError, match=f"the condition is {chosen}, and the results of {unfit} have a rank that the model cannot go on with"):
            compiled.run([x, np.array(unfit == "then_branch")])


def test_branches_of_which_none_fits():
    with pytest.raises(onnx2halide.CompileError, match="the results of its branches have different ranks, and neither fits what follows: .*; and in else_branch, "):
        onnx2halide.compile(parser.parse_model(ONE_FITS.format("then_branch", "else_branch", 3)))


# The body defines both values; the one before the loop is never read, or has another rank.
DEFINED_BY_BODY = """g (float[n] x, int64 turns) => (float[m,k] rows, float[p] sums, float[q] number) {
    goes = Constant <value = bool {1}> ()
    none = Constant <value = float {0}> ()
    rows, sums, number = Loop (turns, goes, none, x, none) <body = turn (int64 i, bool on, float unread, float[j] s, float step)
        => (bool on_out, float[r,w] rows_out, float[v] s_out, float[u] step_out) {
        on_out = Identity (on)
        axis_0 = Constant <value_ints = [0]> ()
        s_out = Add (s, step)
        rows_out = Unsqueeze (s_out, axis_0)
        one = Constant <value = float[1] {1}> ()
        step_out = Add (step, one)
    }>
}"""


def test_carried_values_that_change_rank():
    model = parser.parse_model(f'<ir_version: 10, opset_import: ["" : 20]> {DEFINED_BY_BODY}')
    compiled, reference = onnx2halide.compile(model), OnnxRuntime(model)
    for length, turns in ((3, 1), (5, 4)):
        inputs = {"x": random(length), "turns": np.array(turns)}
        for output, expected in reference.run(inputs).items():
            np.testing.assert_array_equal(compiled.run_by_name(inputs)[output], expected, output)
    without_turns = compiled.run_by_name({"x": random(3), "turns": np.array(0)})
    assert (without_turns["rows"].shape, without_turns["number"].tolist()) == ((1, 0), [0])


def test_carried_values_whose_rank_grows():
    body = "turn (int64 i, bool on, float s) => (bool on_out, float[u] s_out) { on_out = Identity (on) axis = Constant <value_ints = [0]> () s_out = Unsqueeze (s, axis) }"
    text = f"g (float x, int64 turns) => (float[n] y) {{ goes = Constant <value = bool {{1}}> () y = Loop (turns, goes, x) <body = {body}> }}"
    with pytest.raises(onnx2halide.CompileError, match="value 0 is float32 1 before an iteration and float32 1x1 after it, expected the same type and rank"):
        onnx2halide.compile(parser.parse_model(f'<ir_version: 10, opset_import: ["" : 20]> {text}'))


def test_scan_of_nothing():
    text = "g (float[n] x) => (float[n] y) { y = Scan <num_scan_inputs = -1, body = b (float v) => (float w) { w = Neg (v) }> (x) }"
    with pytest.raises(onnx2halide.CompileError) as error:
        onnx2halide.compile(parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> {text}'))
    assert str(error.value).endswith("node 'y' (Scan): num_scan_inputs is -1, expected 1 or more")


def test_conditions_of_an_open_size():
    """Sizes other than one element fail at run time."""
    model = parser.parse_model("""<ir_version: 10, opset_import: ["" : 20]> g (float[n] x, bool[k] c, int64[l] turns) => (float[m] y) {
        half = Constant <value = float {0.5}> ()
        picked = If (c) <then_branch = a () => (float[p] u) { u = Mul (x, half) }, else_branch = b () => (float[q] v) { v = Neg (x) }>
        y = Loop (turns, c, picked) <body = t (int64 i, bool[g] on, float[r] s) => (bool[h] on_out, float[w] s_out) { on_out = Identity (on) s_out = Add (s, x) }>
    }""")
    compiled, reference = onnx2halide.compile(model), OnnxRuntime(model)
    for condition in (True, False):
        inputs = {"x": random(4), "c": np.array([condition]), "turns": np.array([3])}
        assert not difference(compiled.run_by_name(inputs)["y"], reference.run(inputs)["y"]).exceeds(1e-6)
    with pytest.raises(ValueError, match="the shape's number of elements is 1, expected 2"):
        compiled.run_by_name({"x": random(4), "c": np.array([True, True]), "turns": np.array([3])})


def test_loops_without_a_count_of_what_is_transposed():
    """The transposed tensor is a view of the input, which the body must not treat as row-major."""
    model = parser.parse_model("""<ir_version: 10, opset_import: ["" : 20]> g (float[a,b,4] x, int64 n) => (float[c,d,4] y) {
        turned = Transpose <perm = [1, 0, 2]> (x) zero = Constant <value_int = 0> () one = Constant <value_int = 1> () go = Less (zero, n)
        last, y = Loop ("", go, zero) <body = t (int64 i, bool on, int64 k) => (bool on_out, int64 next, float[e,4] row) { next = Add (k, one) on_out = Less (next, n) row = Gather (turned, k) }>
    }""")
    compiled, reference = onnx2halide.compile(model), OnnxRuntime(model)
    for shape in ((2, 3, 4), (5, 3, 4)):
        inputs = {"x": random(*shape), "n": np.array(shape[1])}
        np.testing.assert_array_equal(compiled.run_by_name(inputs)["y"], reference.run(inputs)["y"])


def test_initialisers_that_are_inputs():
    """As IR versions up to 3 demand, also of subgraphs."""
    k = numpy_helper.from_array(np.float32([1, 2, 3]), "k")
    info = {name: helper.make_tensor_value_info(name, element, shape) for name, element, shape in [("i", 7, []), ("c", 9, []), ("c2", 9, []), ("v", 1, [3]), ("v2", 1, [3]), ("k", 1, [3]), ("o", 1, [3]), ("y", 1, [3]), ("z", 1, [3]), ("n", 7, []), ("x", 1, [3])]}
    body = helper.make_graph([helper.make_node("Identity", ["c"], ["c2"]), helper.make_node("Add", ["v", "k"], ["v2"])], "b", [info[name] for name in "icvk"], [info["c2"], info["v2"]], [k])
    branches = {name: helper.make_graph([helper.make_node(op, ["x", "k"], ["o"])], name, [info["k"]], [info["o"]], [k]) for name, op in (("then_branch", "Add"), ("else_branch", "Mul"))}
    nodes = [helper.make_node("Loop", ["n", "c", "x"], ["y"], body=body), helper.make_node("If", ["c"], ["z"], **branches)]
    proto = helper.make_model(helper.make_graph(nodes, "g", [info[name] for name in "xnc"], [info["y"], info["z"]]), opset_imports=[helper.make_opsetid("", 8)], ir_version=3)
    inputs = {"x": np.float32([1, 2, 3]), "n": np.array(3), "c": np.array(True)}
    got, expected = onnx2halide.compile(proto).run_by_name(inputs), OnnxRuntime(proto).run(inputs)
    for name, array in expected.items():
        np.testing.assert_array_equal(got[name], array)
