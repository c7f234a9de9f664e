"""Sequences and optional values against ONNX's reference."""

import numpy as np
import onnx
import onnx2halide
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
TENSORS = [np.arange(6, dtype=np.float32).reshape(2, 3), np.ones((1, 3), np.float32), np.zeros((0, 3), np.float32)]


def model(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 18]>\n{text}')


def same(found, expected) -> None:
    if isinstance(expected, list):
        assert isinstance(found, list) and len(found) == len(expected)
        for a, b in zip(found, expected):
            same(a, b)
    elif expected is None:
        assert found is None
    else:
        assert found.dtype == expected.dtype and found.shape == expected.shape
        np.testing.assert_array_equal(found, expected)


def check(text: str, *inputs) -> None:
    """Runs twice, as the second run reuses the first one's memory."""
    made = model(text)
    compiled = onnx2halide.compile(made)
    for _ in range(2):
        expected = ReferenceEvaluator(made).run(None, dict(zip([port.name for port in made.graph.input], inputs)))
        same(list(compiled.run(list(inputs))), expected)


INSERT = "g (seq(float[?,3]) x, float[1,3] t, int64 p) => (seq(float[?,3]) y) { y = SequenceInsert (x, t, p) }"


@pytest.mark.parametrize("position", [0, 1, -1, -3])
def test_insert(position):
    check(INSERT, TENSORS, TENSORS[1], np.array(position))


def test_insert_behind_the_last():
    """The specification allows n as position, which ONNX's reference reduces modulo n."""
    (found,) = onnx2halide.compile(model(INSERT)).run([TENSORS, TENSORS[1], np.array(len(TENSORS))])
    same(found, [*TENSORS, TENSORS[1]])


@pytest.mark.parametrize("position", [0, 1, 2, -1, -3])
def test_erase_and_at(position):
    text = """g (seq(float[?,3]) x, int32 p) => (seq(float[?,3]) y, float[?,3] t, int64 n) {
        y = SequenceErase (x, p)
        t = SequenceAt (x, p)
        n = SequenceLength (y)
    }"""
    check(text, TENSORS, np.array(position, np.int32))


def test_sequences_share_what_they_hold():
    """What is added to one sequence does not appear in another with the same beginning."""
    text = """g (float[2] a, float[1] b) => (seq(float[?]) p, seq(float[?]) q, seq(float[?]) r, seq(float[?]) s) {
        x = SequenceConstruct (a, a)
        p = SequenceInsert (x, b)
        q = SequenceInsert (x, a)
        r = SequenceErase (q)
        s = SequenceInsert (r, b)
    }"""
    check(text, np.float32([1, 2]), np.float32([3]))


@pytest.mark.parametrize("axis, new_axis", [(0, 0), (1, 0), (0, 1), (2, 1), (-1, 1), (-2, 0)])
def test_concat(axis, new_axis):
    text = f"g (seq(float[?,?]) x) => (float[{'?,?,?' if new_axis else '?,?'}] y) {{ y = ConcatFromSequence <axis={axis}, new_axis={new_axis}> (x) }}"
    check(text, [TENSORS[0], TENSORS[0] + 1, TENSORS[0] * 2])


def test_split_and_pool():
    """Parts of fixed extents pass through a node that must know them."""
    text = """g (float[6,4] x) => (float[2,4] y, float[3,4] z) {
        two = Constant <value_int=2> ()
        sizes = Constant <value_ints=[3, 3]> ()
        one = Constant <value_int=1> ()
        parts = SplitToSequence (x, two)
        halves = SplitToSequence (x, sizes)
        part = SequenceAt (parts, one)
        y = Softmax (part)
        half = SequenceAt (halves, one)
        z = Relu (half)
    }"""
    made = model(text)
    x = np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32)
    for found, expected in zip(onnx2halide.compile(made).run([x]), ReferenceEvaluator(made).run(None, {"x": x})):
        np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize("split", [[2, 0, 3], [5], [1, 1, 1, 1, 1]])
@pytest.mark.parametrize("axis", [0, 1])
def test_split(split, axis):
    shape = [5, 2] if axis == 0 else [2, 5]
    text = f"g (float{shape} x, int64[{len(split)}] s) => (seq(float[?,?]) y) {{ y = SplitToSequence <axis={axis}> (x, s) }}"
    check(text, np.arange(10, dtype=np.float32).reshape(shape), np.array(split))


@pytest.mark.parametrize("size", [1, 2, 5, 2**63 - 1])
def test_split_into_parts_of_a_size(size):
    check("g (float[n] x, int64 s) => (seq(float[?]) y) { y = SplitToSequence (x, s) }", np.arange(5, dtype=np.float32), np.array(size))


def test_open_dims_that_nothing_computes_with_may_be_0():
    text = "g (float[n] x, int64[3] s, int64 p) => (int64 count, float[?] y) { parts = SplitToSequence (x, s) count = SequenceLength (parts) y = SequenceAt (parts, p) }"
    for size, sizes in ((0, [0, 0, 0]), (4, [1, 0, 3])):
        check(text, np.arange(size, dtype=np.float32), np.array(sizes), np.array(2))
    bounded = onnx2halide.compile(model(text), dims={"n": "1..8"})
    with pytest.raises(ValueError, match="dim 0 .* is 0, expected 1 to 8"):
        bounded.run([np.zeros(0, np.float32), np.array([0, 0, 0]), np.array(0)])


def test_other_open_dims_are_1_or_more():
    text = "g (float[n] x, int64[3] s) => (int64 count, float[n] y) { parts = SplitToSequence (x, s) count = SequenceLength (parts) y = Relu (x) }"
    with pytest.raises(ValueError, match="dim 0 .* is 0, expected 1 to"):
        onnx2halide.compile(model(text)).run([np.zeros(0, np.float32), np.array([0, 0, 0])])


def test_loop():
    """A sequence that grows and shrinks from iteration to iteration."""
    text = """g (int64 n, float[2] x) => (seq(float[2]) y) {
        start = SequenceEmpty ()
        go = Constant <value = bool {1}> ()
        y = Loop (n, go, start) <body = b (int64 i, bool c, seq(float[2]) s) => (bool d, seq(float[2]) t) {
            d = Identity (c)
            f = Cast <to = 1> (i)
            z = Add (x, f)
            longer = SequenceInsert (s, z)
            first = Constant <value_int = 0> ()
            more = SequenceInsert (longer, x, first)
            t = SequenceErase (more)
            }>
    }"""
    check(text, np.array(7), np.float32([1, -1]))


def test_optional():
    text = """g (optional(float[2]) x, optional(seq(float[2])) s) => (bool has, bool has_s, optional(float[2]) y, optional(seq(float[2])) t) {
        has = OptionalHasElement (x)
        has_s = OptionalHasElement (s)
        y = Identity (x)
        t = Identity (s)
    }"""
    compiled = onnx2halide.compile(model(text))
    x = np.float32([1, 2])
    for value, sequence in ((x, [x, x]), (None, []), (x, None), (None, None)):
        has, has_sequence, y, t = compiled.run([value, sequence])
        assert (has, has_sequence) == (value is not None, sequence is not None)
        same(y, value)
        same(t, sequence)


RUN_ERRORS = [
    ("y = SequenceErase (x, p)", "node 'y' (SequenceErase): position is 5 in a sequence of 2 tensors, expected one in [-2, 1]"),
    ("y = SequenceInsert (x, t, p)", "node 'y' (SequenceInsert): position is 5 in a sequence of 2 tensors, expected one in [-2, 2]"),
]


@pytest.mark.parametrize("node, message", RUN_ERRORS, ids=["erase", "insert"])
def test_errors_of_runs(node, message):
    compiled = onnx2halide.compile(model(f"g (seq(float[2]) x, float[2] t, int64 p) => (seq(float[2]) y) {{ {node} }}"), name="errors")
    x = np.float32([1, 2])
    with pytest.raises(ValueError) as error:
        compiled.run([[x, x], x, np.array(5)])
    assert str(error.value) == f"errors: {message}"
    with pytest.raises(ValueError, match=r"input 'x' has shape \[3\], expected \[2\]"):
        compiled.run([[np.zeros(3, np.float32)], x, np.array(0)])


def test_nothing_has_no_element():
    compiled = onnx2halide.compile(model("g (optional(float[2]) x) => (float[2] y) { y = OptionalGetElement (x) }"), name="errors")
    with pytest.raises(ValueError, match=r"errors: node 'y' \(OptionalGetElement\): the optional value is not there"):
        compiled.run([None])


ERRORS = [
    ("g (seq(float[2]) x, int64[2] t) => (seq(float[2]) y) { y = SequenceInsert (x, t) }", "node 'y' (SequenceInsert): input 1 has type int64, expected float32 as the sequence has"),
    ("g (seq(float[2]) x) => (seq(float[2]) y) { y = Relu (x) }", "node 'y' (Relu): input 0 is a sequence of float32 2, expected a tensor"),
    ("g (float[2] x, int64 p) => (float[2] y) { y = SequenceAt (x, p) }", "node 'y' (SequenceAt): input 0 is float32 2, expected a sequence of tensors"),
    ("g (seq(int4[2]) x) => (seq(int4[2]) y) { y = Identity (x) }", "value 'x' is a sequence of int4 2, which is not supported"),
]


@pytest.mark.parametrize("text, message", ERRORS, ids=["insert", "relu", "at", "int4"])
def test_errors(text, message):
    with pytest.raises(onnx2halide.CompileError) as error:
        onnx2halide.compile(model(text))
    assert message in str(error.value)


def test_split_into_as_many_parts_as_there_are():
    """By sizes that are all one, but whose number is open, as PyTorch writes repeat_interleave."""
    check(
        """g (float[n,3] x, int64[n] r) => (float[m,3] y) {
            shape = Shape(r) sizes = ConstantOfShape<value = int64[1] {1}>(shape)
            rows = SplitToSequence<axis = 0>(x, sizes) repeats = SplitToSequence<axis = 0>(r, sizes)
            second = Constant<value = int64 {1}>()
            row = SequenceAt(rows, second) repeat = SequenceAt(repeats, second) three = Constant<value = int64[1] {3}>()
            wanted = Concat<axis = 0>(repeat, three) y = Expand(row, wanted) }""",
        TENSORS[0],
        np.array([1, 4]),
    )


def test_map_whose_body_declares_no_type():
    made = model("""g (float[n,3] x, float[n,3] y) => (float[n,6] z) {
        items = SequenceConstruct (x, y)
        mapped = SequenceMap <body = f (float[?,?] a) => (float[?,?] b) { b = Neg (a) }> (items)
        z = ConcatFromSequence <axis = 1> (mapped) }""")
    body = made.graph.node[1].attribute[0].g
    for value in (*body.input, *body.output):
        value.ClearField("type")
    same(onnx2halide.compile(made).run([TENSORS[0], TENSORS[0]]), [np.concatenate([-TENSORS[0]] * 2, axis=1)])
