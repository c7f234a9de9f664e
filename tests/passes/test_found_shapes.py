"""Passes and memory planning with values whose shapes a run finds, or which a branch or an iteration makes, against onnxruntime."""

import numpy as np
import onnx
import onnx2halide
import pytest
from onnx2halide.references import OnnxRuntime


def numbers(*shape):
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


def check(text, inputs):
    proto = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> g {text}')
    got, expected = onnx2halide.compile(proto).run_by_name(inputs), OnnxRuntime(proto).run(inputs)
    assert got.keys() == expected.keys()
    for name, array in got.items():
        np.testing.assert_allclose(array, expected[name], rtol=1e-4, atol=1e-5)


def test_part_whose_end_a_run_finds():
    check(
        """(float[16,8] x, int64[1] end, float[8,8] w) => (float[k,8] y)
            { start = Constant <value_ints = [3]> () axes = Constant <value_ints = [0]> ()
              part = Slice (x, start, end, axes) y = MatMul (part, w) }""",
        {"x": numbers(16, 8), "end": np.array([9]), "w": numbers(8, 8)},
    )


@pytest.mark.parametrize("condition", [True, False])
def test_parts_of_a_view_that_a_branch_returns(condition):
    check(
        """(float[2,8] x, bool c) => (float[k] y) {
            flat = Constant <value_ints = [-1]> ()
            y = If (c) <
                then_branch = two () => (float[i] r) { a = Relu (x) b = Neg (x) both = Concat <axis = 0> (a, b) r = Reshape (both, flat) },
                else_branch = one () => (float[j] s) { d = Abs (x) s = Reshape (d, flat) }> }""",
        {"x": numbers(2, 8), "c": np.array(condition)},
    )


def test_operand_that_other_layouts_would_make_a_view():
    """Its elements are read when a step has made them."""
    check(
        """(float[2,4,6] x, int64[3,2] n) => (float[a,b,c] y)
            { flat = Constant <value_ints = [-1]> () t = Transpose <perm = [1, 0]> (n) pads = Reshape (t, flat) y = Pad (x, pads) }""",
        {"x": numbers(2, 4, 6), "n": np.array([[1, 0], [0, 2], [3, 1]])},
    )


@pytest.mark.parametrize("time", [16, 7])
def test_normalised_columns_of_a_flattened_product(time):
    """The axis of the channels is the last one only while the tensor is a matrix."""
    check(
        f"""(float[2,{time},8] x, float[8,16] w, float[16] s, float[16] b, float[16] m, float[16] v) => (float[k,16] y)
            {{ p = MatMul (x, w) rows = Constant <value_ints = [-1, 16]> () f = Reshape (p, rows) y = BatchNormalization (f, s, b, m, v) }}""",
        {"x": numbers(2, time, 8), "w": numbers(8, 16), "s": numbers(16), "b": numbers(16), "m": numbers(16), "v": np.abs(numbers(16)) + 1},
    )


def test_selections_by_one_mask():
    """As a detector selects boxes, scores and labels."""
    text = """(float[16,4] boxes, float[16] scores, float threshold) => (float[k,4] y, float[l] z, int64[1,m] places)
        { mask = Greater (scores, threshold)
          a = NonZero (mask) b = Transpose <perm = [1, 0]> (a) chosen = GatherND (boxes, b)
          c = NonZero (mask) d = Transpose <perm = [1, 0]> (c) s = GatherND (scores, d)
          last = Constant <value_ints = [-1]> () column = Unsqueeze (s, last) y = Mul (chosen, column) z = Neg (s)
          places = NonZero (mask) }"""
    inputs = {"boxes": numbers(16, 4), "scores": np.linspace(0, 1, 16, dtype=np.float32)}
    for threshold in (0.4, 0.99, 2.0):
        check(text, inputs | {"threshold": np.array(threshold, np.float32)})


NON_ZERO = "If ({0}) <then_branch = t () => (int64[1,i] nz) {{ nz = NonZero ({1}) }}, else_branch = e () => (int64[1,j] nz) {{ nz = NonZero ({2}) }}>"


@pytest.mark.parametrize("condition", [True, False])
def test_equal_names_in_both_branches(condition):
    """The larger of the two bounds counts."""
    check(
        f"""(float[4] a, float[50] b, bool c) => (int64[1,k] y)
            {{ n = {NON_ZERO.format("c", "a", "b")} zero = Constant <value_ints = [0]> () ten = Constant <value_ints = [10]> ()
               one = Constant <value_ints = [1]> () y = Slice (n, zero, ten, one) }}""",
        {"a": np.ones(4, np.float32), "b": np.ones(50, np.float32), "c": np.array(condition)},
    )


def test_equal_names_in_several_ifs():
    check(
        f"""(float[6] a, float[6] b, float[6] p, float[6] q, bool c, bool d) => (int64[1,k] y, int64[1,l] z)
            {{ n = {NON_ZERO.format("c", "a", "b")} m = {NON_ZERO.format("d", "p", "q")} y = Neg (n) z = Neg (m) }}""",
        {name: np.ones(6, np.float32) for name in "ab"} | {name: np.eye(6, dtype=np.float32)[0] for name in "pq"} | {name: np.array(True) for name in "cd"},
    )


def test_slice_computed_in_place_that_has_parts():
    check(
        """(float[3,4,16] x, float[16,16] w) => (float[3,64] v, float[3,4,16] u, float[3,2,16] r) {
            flat = Constant <value_ints = [64]> () two = Constant <value_ints = [2]> ()
            four = Constant <value_ints = [4]> () zero = Constant <value_ints = [0]> ()
            v, u, r = Scan (x) <num_scan_inputs = 1, body = b (float[4,16] step) => (float[64] whole, float[4,16] product, float[2,16] low) {
                t = MatMul (step, w) product = MatMul (t, w) n = Neg (t) whole = Reshape (n, flat)
                part = Slice (n, two, four, zero) low = MatMul (part, w) }> }""",
        {"x": numbers(3, 4, 16), "w": numbers(16, 16)},
    )


def test_zero_point_made_after_the_movement_before_it():
    check(
        """(float[4,6] x, int32 z) => (uint8[6,4] y) { scale = Constant <value = float {0.1}> ()
            t = Transpose <perm = [1, 0]> (x) zero = Cast <to = 2> (z) y = QuantizeLinear (t, scale, zero) }""",
        {"x": numbers(4, 6), "z": np.array(3, np.int32)},
    )
