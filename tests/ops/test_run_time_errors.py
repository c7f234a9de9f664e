"""Errors about indices and sizes known only at run time, after which the session still works."""

import numpy as np
import onnx2halide
import pytest
from onnx import parser


def compiled(text: str) -> onnx2halide.Model:
    return onnx2halide.compile(parser.parse_model(f'<ir_version: 10, opset_import: ["" : 22]> {text}'))


def ints(*values):
    return np.array(values, np.int64)


def ones(*shape):
    return np.ones(shape, np.float32)


LOOP = """g (int64 n, float[2] x) => (float[2] y) {
    c = Constant <value = bool {1}> ()
    y = Loop (n, c, x) <body = b (int64 i, bool g, float[2] v) => (bool h, float[2] w) { h = Identity (g) w = Add (v, v) }>
}"""
ENDLESS = LOOP.replace("int64 n, float", "float").replace("(n, c, x)", '("", c, x)')
FILLED = "g (int64[1] d) => (float[k] y) { y = ConstantOfShape (d) }"
TOP = "g (float[n] x, int64[1] k) => (float[a] y, int64[a] z) { y, z = TopK (x, k) }"

# A network whose last product requires images of 4 pixels, and channels that are concatenated at run time.
FLAT = "g (float[n,1,h,w] x, float[2,1,1,1] k) => (float[n,3] y) { c = Conv (x, k) f = Flatten (c) w = Constant <value = float[8,3] {%s}> () y = MatMul (f, w) }" % ",".join(["0.5"] * 24)
JOINED = "g (float[n,p,h] a, float[n,q,h] b) => (float[n,4,h] y) { x = Concat <axis = 1> (a, b) k = Constant <value = float[4,%s,1] {%s}> () y = Conv <group = %d> (x, k) }"
ADDED = "g (float[n,k] a, float[k,m] b, float[p,q] c) => (float[n,m] y) { y = Gemm (a, b, c) }"

# The model, what it rejects, its message, and what it then accepts.
CASES = [
    ("g (float[n,3] x, int64[k] i) => (float[k,3] y) { y = Gather (x, i) }", (ones(2, 3), ints(5)), "'y' (Gather): input 1 has the index 5, expected one in [-2, 1]", (ones(2, 3), ints(1))),
    ("g (float[n,3] x) => (float[1,3] y) { i = Constant <value = int64[1,3] {5,-1,0}> () y = GatherElements <axis = 0> (x, i) }", (ones(2, 3),), "'y' (GatherElements): an index of input 1 is 5, expected one in [-2, 1]", (ones(6, 3),)),
    ("g (float[n,m] x, float[2] u) => (float[n,m] y) { i = Constant <value = int64[2,2] {0,2,-4,1}> () y = ScatterND (x, i, u) }", (ones(3, 3), ones(2)), "'y' (ScatterND): an index of input 1 is -4, expected one in [-3, 2]", (ones(4, 3), ones(2))),
    ("g (float[n,m] x, float[2] u) => (float[n,m] y) { i = Constant <value = int64[2,2] {0,2,-4,1}> () y = ScatterND (x, i, u) }", (ones(4, 2), ones(2)), "'y' (ScatterND): an index of input 1 is 2, expected one in [-2, 1]", (ones(4, 3), ones(2))),
    ("g (float[n,3] x, int64[k,2] i) => (float[k] y) { y = GatherND (x, i) }", (ones(2, 3), ints([0, 3])), "'y' (GatherND): input 1 has the index 3, expected one in [-3, 2]", (ones(2, 3), ints([0, 2]))),
    ("g (float[n,3] x, int64[k,3] i) => (float[k,3] y) { y = GatherElements <axis = 0> (x, i) }", (ones(2, 3), ints([0, 2, 0])), "'y' (GatherElements): input 1 has the index 2", (ones(2, 3), ints([0, 1, 0]))),
    ("g (float[n,3] x, int64[k,1] i, float[k,3] u) => (float[n,3] y) { y = ScatterND (x, i, u) }", (ones(2, 3), ints([2]), ones(1, 3)), "'y' (ScatterND): input 1 has the index 2", (ones(2, 3), ints([1]), ones(1, 3))),
    ("g (float[n,3] x, int64[k,3] i, float[k,3] u) => (float[n,3] y) { y = ScatterElements (x, i, u) }", (ones(2, 3), ints([-3, 0, 0]), ones(1, 3)), "'y' (ScatterElements): input 1 has the index -3", (ones(2, 3), ints([-2, 0, 0]), ones(1, 3))),
    ("g (float[n,3] x, int64[2] s) => (float[a,b] y) { y = Reshape (x, s) }", (ones(2, 3), ints(4, 2)), "'y' (Reshape): the shape's number of elements is 8, expected 6", (ones(2, 3), ints(3, -1))),
    ("g (float[n] x, int64[1] s) => (float[a] y) { y = Expand (x, s) }", (ones(3), ints(5)), "'y' (Expand): dim 0 of 'x' is 3, expected 5 or 1", (ones(1), ints(4))),
    ("g (float[n] a, float[m] b) => (float[k] y) { y = Add (a, b) }", (ones(3), ones(2)), "'y' (Add): dim 0 of 'b' is 2, expected 3 or 1", (ones(3), ones(1))),
    ("g (float[n,3] a, float[m,k] b, float[n,1] c) => (float[a,b] y) { s = Relu (b) t = Mul (a, s) y = Sub (t, c) }", (ones(4, 3), ones(4, 2), ones(4, 1)), "'t' (Mul): dim 1 of 's' is 2, expected 3 or 1", (ones(4, 3), ones(1, 3), ones(4, 1))),
    ("g (float[n,k] a, float[m,5] b) => (float[n,5] y) { y = MatMul (a, b) }", (ones(2, 3), ones(4, 5)), "'y' (MatMul): dim 0 of 'b' is 4, expected 3", (ones(2, 4), ones(4, 5))),
    ("g (float[n,2,k] a, float[m,k,5] b) => (float[n,2,5] y) { y = MatMul (a, b) }", (ones(2, 2, 3), ones(3, 3, 5)), "'y' (MatMul): dim 0 of 'a' is 2, expected 3 or 1", (ones(3, 2, 3), ones(3, 3, 5))),
    ('g (float[n,k] a) => (float[n,5] y) { b = Constant <value = float[3,5] {1,1,1,1,1,1,1,1,1,1,1,1,1,1,1}> () y = Einsum <equation = "nk,km->nm"> (a, b) }', (ones(2, 4),), "'y' (Einsum): dim 1 of 'a' is 4, expected 3", (ones(2, 3),)),
    (FLAT, (ones(2, 1, 1, 3), ones(2, 1, 1, 1)), "'y' (MatMul): dim 1 of 'f' is 6, expected 8", (ones(2, 1, 2, 2), ones(2, 1, 1, 1))),
    (JOINED % (3, ",".join(["0.5"] * 12), 1), (ones(2, 1, 5), ones(2, 1, 5)), "'y' (Conv): dim 1 of 'x' is 2, expected 3", (ones(2, 1, 5), ones(2, 2, 5))),
    (JOINED % (1, ",".join(["0.5"] * 4), 4), (ones(2, 4, 5), ones(2, 1, 5)), "'y' (Conv): dim 1 of 'x' is 5, expected 4", (ones(2, 3, 5), ones(2, 1, 5))),
    (ADDED, (ones(3, 4), ones(4, 5), ones(2, 5)), "'y' (Gemm): dim 0 of 'c' is 2, expected 3 or 1", (ones(3, 4), ones(4, 5), ones(1, 5))),
    ("g (float[n,2] a, float[n,m] b) => (float[x,2] y) { y = Concat <axis = 0> (a, b) }", (ones(2, 2), ones(2, 3)), "'y' (Concat): dim 1 of 'b' is 3, expected 2", (ones(3, 2), ones(3, 2))),
    ("g (float[n,1] a, float[1,m] b) => (float[n,m] y) { y = Add (a, b) }", (ones(2**16, 1), ones(1, 2**16)), "'y' of rank 2 has extent 65536 at axis 0, expected 0 or more, and at most 2147483646 elements", (ones(3, 1), ones(1, 2))),
    (FILLED, (ints(-4),), "'y' (ConstantOfShape): dim 0 of the result is -4, expected one in [0, 2147483646]", (ints(4),)),
    (FILLED, (ints(2**40),), "'y' (ConstantOfShape): dim 0 of the result is 2147483647", (ints(0),)),
    (FILLED.replace("[1]", "[2]").replace("[k]", "[k,m]"), (ints(2**20, 2**20),), "expected 0 or more, and at most 2147483646 elements", (ints(0, 4),)),
    (FILLED.replace("[1]", "[4]").replace("[k]", "[k,l,m,n]"), (ints(2**20, 2**20, 2**20, 0),), "expected 0 or more, and at most 2147483646 elements", (ints(2**30, 0, 1, 1),)),
    (TOP, (ones(5), ints(6)), "'y' (TopK): k is 6, expected 0 to 5", (ones(7), ints(6))),
    (TOP, (ones(5), ints(-1)), "'y' (TopK): k is -1, expected 0 to 5", (ones(5), ints(0))),
    ("g (float[n] x) => (float[2,3] y) { s = Constant <value = int64[2] {2,3}> () y = Reshape (x, s) }", (ones(5),), "'y' (Reshape): the shape's number of elements is 6, expected 5", (ones(6),)),
    ("g (float[n] x) => (float[2,3] y) { s = Constant <value = int64[2] {2,3}> () a = Relu (x) b = Reshape (a, s) y = Softmax (b) }", (ones(7),), "'b' (Reshape): the shape's number of elements is 6, expected 7", (ones(6),)),
    ("g (float[n,3] x) => (float[3] y) { a = Constant <value = int64[1] {0}> () y = Squeeze (x, a) }", (ones(2, 3),), "'y' (Squeeze): dim 0 of 'x' is 2, expected 1", (ones(1, 3),)),
    ("g (float[n,1,m] x) => (float[n,m] y) { y = Squeeze (x) }", (ones(3, 1, 1),), "'y' (Squeeze): the number of open axes that are 1 in this run (fix them with --dim) is 1, expected 0", (ones(3, 1, 2),)),
    ("g (float[n,1,m] x) => (float[n,m] y) { a = Relu (x) b = Squeeze (a) y = Neg (b) }", (ones(1, 1, 1),), "'b' (Squeeze): the number of open axes that are 1 in this run (fix them with --dim) is 2, expected 0", (ones(3, 1, 2),)),
    (LOOP, (np.array(2**62), ones(2)), "'y' (Loop): the trip count is 4611686018427387904, expected at most 2147483647", (np.array(-1), ones(2))),
]  # fmt: skip


@pytest.mark.parametrize("text, refused, message, accepted", CASES)
def test_refused(text, refused, message, accepted):
    model = compiled(text)
    for _ in range(2):
        with pytest.raises((ValueError, RuntimeError)) as error:
            model.run(list(refused))
        assert message in str(error.value)
        model.run(list(accepted))


def test_endless_loop():
    with pytest.raises(ValueError, match=r"'y' \(Loop\): the trip count is 9223372036854775807, expected at most 2147483647"):
        compiled(ENDLESS).run([ones(2)])
