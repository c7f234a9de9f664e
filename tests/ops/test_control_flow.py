"""If whose branches' results differ in rank against ONNX's reference, and Scan of opset 8 against onnxruntime."""

import numpy as np
import onnx
import onnx2halide
import pytest
from onnx.reference import ReferenceEvaluator
from onnx2halide.references import OnnxRuntime


def model(text: str, opset: int = 18) -> onnx.ModelProto:
    return onnx.parser.parse_model(f'<ir_version: {10 if opset > 8 else 3}, opset_import: ["" : {opset}]>\n{text}')


def compare(compiled, expected: dict, inputs: dict):
    for name, found in compiled.run_by_name(inputs).items():
        assert found.dtype == expected[name].dtype and found.shape == expected[name].shape
        np.testing.assert_allclose(found, expected[name], rtol=1e-6, atol=1e-6)


def check(text: str, *runs: dict, **options):
    made = model(text)
    compiled, reference = onnx2halide.compile(made, **options), ReferenceEvaluator(made)
    names = [output.name for output in made.graph.output]
    for inputs in runs:
        compare(compiled, dict(zip(names, map(np.asarray, reference.run(names, inputs)))), inputs)


def both(**inputs) -> list[dict]:
    """The inputs with each condition."""
    return [inputs | {"c": np.array(c)} for c in (True, False, True)]


X = np.arange(6, dtype=np.float32).reshape(2, 3)
SCALAR_OR_ROW = """a = If (c) <then_branch = t () => (float p) { p = Constant <value_float = 2.0> () },
                               else_branch = e () => (float[1] q) { q = Constant <value_floats = [3.0]> () }>"""


def test_what_follows_is_in_both_branches():
    check(f"g (bool c, float[2,3] x) => (float[2,3] y, float[n] z) {{ {SCALAR_OR_ROW} y = Mul (x, a) w = ReduceSum <keepdims = 0> (y) one = Constant <value_ints = [-1]> () z = Reshape (w, one) }}",
          *both(x=X))


def test_what_does_not_follow_stays_outside():
    """Nodes behind the If that it does not concern, and results of it that have one rank."""
    check("""g (bool c, float[2,3] x) => (float[2,3] y, float[2,3] s, float[2,3] u) {
        a, s = If (c) <then_branch = t () => (float p, float[2,3] r) { p = Constant <value_float = 2.0> () r = Exp (x) },
                       else_branch = e () => (float[1] q, float[2,3] v) { q = Constant <value_floats = [3.0]> () v = Neg (x) }>
        u = Abs (x)
        d = Add (u, s)
        y = Mul (d, a)
    }""", *both(x=X - 2))


def test_two_ifs_in_a_row():
    check("""g (bool c, bool d, float[2,3] x) => (float[2,3] y) {
        a = If (c) <then_branch = t () => (float[3] p) { z = Constant <value_ints = [0]> () p = ReduceMax <keepdims = 0> (x, z) },
                    else_branch = e () => (float[2,3] q) { q = Neg (x) }>
        b = Sin (a)
        f = If (d) <then_branch = t2 () => (float[1,1] p2) { h = ReduceMax <keepdims = 0> (b) m = Constant <value_ints = [1, 1]> () p2 = Reshape (h, m) },
                    else_branch = e2 () => (float[k] q2) { i = ReduceMin <keepdims = 0> (b) n = Constant <value_ints = [-1]> () q2 = Reshape (i, n) }>
        w = Mul (f, x)
        y = Add (w, b)
    }""", *[run | {"d": np.array(d)} for run in both(x=X) for d in (True, False)])


def test_inside_of_a_loop():
    check(f"""g (int64 n, float[2,3] x) => (float[2,3] y) {{
        go = Constant <value = bool {{1}}> ()
        y = Loop (n, go, x) <body = b (int64 i, bool k, float[2,3] s) => (bool l, float[2,3] t) {{
            l = Identity (k)
            two = Constant <value_int = 2> ()
            zero = Constant <value_int = 0> ()
            m = Mod (i, two)
            c = Equal (m, zero)
            {SCALAR_OR_ROW}
            t = Mul (s, a)
        }}>
    }}""", *({"n": np.array(n), "x": X} for n in (0, 1, 4)))


def test_a_branch_reshapes_to_what_it_takes_from_outside():
    check("""g (bool c, float[6] x, int64[2] s) => (float[a,b] y) {
        y = If (c) <then_branch = t () => (float[a,b] p) { p = Reshape (x, s) }, else_branch = e () => (float[a,b] q) { z = Neg (x) q = Reshape (z, s) }>
    }""", *both(x=np.arange(6, dtype=np.float32), s=np.array([2, 3])), *both(x=np.arange(6, dtype=np.float32), s=np.array([-1, 1])))


def test_a_loop_reshapes_to_what_it_takes_from_outside():
    check("""g (int64 n, float[a,b] x, int64[2] s) => (float[p,q] y) {
        go = Constant <value = bool {1}> ()
        y = Loop (n, go, x) <body = b (int64 i, bool k, float[a,b] t) => (bool l, float[p,q] u) { l = Identity (k) v = Neg (t) u = Reshape (v, s) }>
    }""", *({"n": np.array(n), "x": X, "s": np.array(s)} for n, s in ((1, [3, 2]), (2, [6, 1]), (3, [-1, 3]))))


ERRORS = [
    ("y = If (c) <then_branch = t () => (float p) { p = Constant <value_float = 2.0> () }, else_branch = e () => (float[1] q) { q = Constant <value_floats = [3.0]> () }>",
     "node 'y' (If): output 0 is float32 scalar in then_branch and float32 1 in else_branch, expected the same type and rank"),
    ("a = If (c) <then_branch = t () => (float[3] p) { p = Constant <value_floats = [1.0, 2.0, 3.0]> () }, else_branch = e () => (float[2,3] q) { q = Neg (x) }> y = Transpose <perm = [1, 0]> (a)",
     "node 'a' (If): the results of its branches have different ranks, and those of then_branch do not fit what follows: node 'y' (Transpose): perm is 1, 0, expected an order of 1 axes"),
    ("a = If (c) <then_branch = t () => (float p) { p = Constant <value_float = 2.0> () }, else_branch = e () => (double[1] q) { v = Constant <value_floats = [3.0]> () q = Cast <to = 11> (v) }> y = Cast <to = 1> (a)",
     "node 'a' (If): output 0 is float32 scalar in then_branch and float64 1 in else_branch, expected the same type and rank"),
]


@pytest.mark.parametrize("nodes, message", ERRORS, ids=range(len(ERRORS)))
def test_errors(nodes, message):
    with pytest.raises(onnx2halide.CompileError) as error:
        onnx2halide.compile(model(f"g (bool c, float[2,3] x) => (float y) {{ {nodes} }}"))
    assert str(error.value).partition(": ")[2] == message


def scan(lengths: str, shape: str, attributes: str = "") -> onnx.ModelProto:
    """Two states and a scale from around, which go over two inputs."""
    lens = "int64[b] lens, " if lengths else ""
    return model(f"""g ({lens}float[{shape},2] first, float[{shape}] second, float[{shape},t,2] x, float[{shape},t] w)
            => (float[{shape},2] sum, float[{shape}] last, float[{shape},t,2] sums, float[{shape},t] lasts) {{
        scale = Constant <value = float {{0.5}}> ()
        sum, last, sums, lasts = Scan ({lengths}, first, second, x, w) <num_scan_inputs = 2 {attributes},
            body = body (float[2] s, float v, float[2] a, float h) => (float[2] s2, float v2, float[2] o, float p) {{
                k = Mul (a, scale) m = Mul (k, h) s2 = Add (s, m) v2 = Sub (h, v) o = Identity (s2) p = Mul (v2, v2)
            }}>
    }}""", 8)


@pytest.mark.parametrize("directions", ["", ", directions = [0, 1]", ", directions = [1, 1]"])
@pytest.mark.parametrize("batch, lengths", [(1, None), (3, None), (3, [4, 1, 2]), (1, [3]), (2, [1, 4])])
def test_scan_of_batches(batch, lengths, directions):
    rng = np.random.default_rng(batch)
    inputs = {name: rng.normal(size=shape).astype(np.float32)
              for name, shape in (("first", (batch, 2)), ("second", (batch,)), ("x", (batch, 4, 2)), ("w", (batch, 4)))}
    made = scan("" if lengths is None else "lens", str(batch), directions)
    if lengths is not None:
        inputs["lens"] = np.array(lengths)
    compare(onnx2halide.compile(made), OnnxRuntime(made).run(inputs), inputs)


def test_scan_of_open_batches():
    made = scan("lens", "b")
    compiled, reference = onnx2halide.compile(made), OnnxRuntime(made)
    for batch, turns in ((1, 3), (4, 5), (2, 1)):
        inputs = {name: np.random.default_rng(batch).normal(size=shape).astype(np.float32)
                  for name, shape in (("first", (batch, 2)), ("second", (batch,)), ("x", (batch, turns, 2)), ("w", (batch, turns)))}
        inputs["lens"] = np.arange(batch) % turns + 1
        compare(compiled, reference.run(inputs), inputs)


def test_scan_that_lacks_inputs():
    made = model("""g (float[1,3,2] x) => (float[1,3,2] y) {
        y = Scan (, x) <num_scan_inputs = 2, body = body (float[2] a) => (float[2] b) { b = Neg (a) }>
    }""", 8)
    with pytest.raises(onnx2halide.CompileError, match="node 'y' .Scan.: has 2 inputs, expected at least 3, and num_scan_inputs 1 or more"):
        onnx2halide.compile(made)
