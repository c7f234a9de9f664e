"""Attention with open lengths of past and sequence, all served by one program, against onnxruntime."""

import numpy as np
import onnx
import onnx2halide
import pytest
from onnx2halide.compare import default_floor, default_tolerance, difference
from onnx2halide.references import OnnxRuntime

HEADER = '<ir_version: 10, opset_import: ["" : 21, "com.microsoft" : 1]>'

ATTENTION = """
    decoder (float[batch, length, 6] x, int32[batch, total] mask, float[2, batch, 2, past, 4] before, float[6, 24] weights, float[24] bias)
        => (float[batch, length, 8] y, float[2, batch, 2, total, 4] after) {
        y, after = com.microsoft.Attention<num_heads = 2, unidirectional = 1>(x, weights, bias, mask, before)
    }"""

GROUPED = """
    decoder (float[batch, length, 64] x, int64[batch, total] mask, float[batch, 1, past, 16] keys, float[batch, 1, past, 16] values,
             float[32, 8] cos, float[32, 8] sin)
        => (float[batch, length, 32] y, float[batch, 1, present, 16] all_keys, float[batch, 1, present, 16] all_values) {
        row = Constant<value_ints = [1]>()
        counts = ReduceSum<keepdims = 0>(mask, row)
        one = Constant<value_int = 1>()
        last = Sub(counts, one)
        lengths = Cast<to = 6>(last)
        shape = Shape(mask)
        total = Gather(shape, one)
        total_length = Cast<to = 6>(total)
        y, all_keys, all_values = com.microsoft.GroupQueryAttention<num_heads = 2, kv_num_heads = 1, do_rotary = 1>(
            x, , , keys, values, lengths, total_length, cos, sin)
    }"""

SIZES = [(2, 1, 4), (1, 3, 4), (1, 1, 9), (1, 5, 0), (3, 1, 1)]  # batch, length, past


def sample(port: onnx.ValueInfoProto, dims: dict[str, int]) -> np.ndarray:
    shape = [dim.dim_value or dims[dim.dim_param] for dim in port.type.tensor_type.shape.dim]
    dtype = onnx.helper.tensor_dtype_to_np_dtype(port.type.tensor_type.elem_type)
    return np.ones(shape, dtype) if port.name == "mask" else np.random.default_rng(len(port.name)).normal(size=shape).astype(dtype)


# The past's keys have another order of axes and have been quantised, the values are cast; without a cache none of that
# may be needed.
JOINED = """
    decoder (float[batch, length, 8] x, float[batch, past, 2, 4] keys, float[batch, 2, past, 4] values)
        => (float[batch, 2, length, 4] y, float[batch, 2, total, 4] all_keys) {
        shape = Constant<value_ints = [0, 0, 2, 4]>()
        new = Reshape(x, shape)
        heads = Transpose<perm = [0, 2, 1, 3]>(new)
        scale = Constant<value_float = 0.02>()
        zero = Constant<value = int8 {0}>()
        quantised = QuantizeLinear(keys, scale, zero)
        old_keys = DequantizeLinear(quantised, scale, zero)
        old = Transpose<perm = [0, 2, 1, 3]>(old_keys)
        all_keys = Concat<axis = 2>(old, heads)
        old_values = Cast<to = 1>(values)
        all_values = Concat<axis = -2>(old_values, heads)
        turned = Transpose<perm = [0, 1, 3, 2]>(all_keys)
        scores = MatMul(heads, turned)
        weights = Softmax(scores)
        y = MatMul(weights, all_values)
    }"""

CHOSEN = """
    decoder (float[batch, length, 4] x, float[batch, past, 4] cache, bool has_cache) => (float[batch, length, 4] y) {
        y = If(has_cache)<then_branch = cached () => (float[batch, length, 4] z) {
            turned = Transpose<perm = [0, 2, 1]>(cache)
            scores = MatMul(x, turned)
            weights = Softmax(scores)
            z = MatMul(weights, cache)
        }, else_branch = first () => (float[batch, length, 4] z) { z = Relu(x) }>
    }"""

# Here nothing may be empty.
COMPUTED = """
    decoder (float[batch, length, 4] x, float[batch, past, 4] cache) => (float[batch, total, 4] y, float[batch, 4] z) {
        y = Concat<axis = 1>(cache, x)
        axis = Constant<value_ints = [1]>()
        z = ReduceMax<keepdims = 0>(cache, axis)
    }"""


@pytest.mark.parametrize("bounds", [{}, {"past": "0..64"}], ids=["unbounded", "bounded"])
@pytest.mark.parametrize("text", [ATTENTION, GROUPED, JOINED], ids=["Attention", "GroupQueryAttention", "Concat"])
def test_open_dims(text, bounds):
    model = onnx.parser.parse_model(HEADER + text)
    compiled, engine = onnx2halide.compile(model, dims=bounds), OnnxRuntime(model)
    for batch, length, past in SIZES:
        dims = {"batch": batch, "length": length, "past": past, "total": past + length}
        inputs = {port.name: sample(port, dims) for port in model.graph.input}
        expected = engine.run(inputs)
        for name, array in compiled.run_by_name(inputs).items():
            found = difference(array, expected[name])
            assert not found.exceeds(default_tolerance(array.dtype), default_floor(array.dtype, inputs.values())), f"{dims} {name}: {found.text()}"


def test_mask_is_one_of_all_keys():
    model = onnx.parser.parse_model(HEADER + ATTENTION)
    compiled = onnx2halide.compile(model)
    for total in (1, 6):
        inputs = {port.name: sample(port, {"batch": 2, "length": 1, "past": 4, "total": total}) for port in model.graph.input}
        with pytest.raises(ValueError, match="number of elements"):
            compiled.run_by_name(inputs)


def test_empty_cache_that_no_branch_reads():
    model = onnx.parser.parse_model(HEADER + CHOSEN)
    compiled, engine = onnx2halide.compile(model), OnnxRuntime(model)
    for past in (0, 3):
        inputs = {"x": np.ones((2, 3, 4), np.float32), "cache": np.full((2, past, 4), 0.5, np.float32), "has_cache": np.array(past > 0)}
        np.testing.assert_allclose(compiled.run_by_name(inputs)["y"], engine.run(inputs)["y"], rtol=1e-5)


def test_cache_that_may_not_be_empty():
    compiled = onnx2halide.compile(onnx.parser.parse_model(HEADER + COMPUTED))
    with pytest.raises(ValueError, match=r"input 'cache': dim 1 \(past\) is 0, expected 1"):
        compiled.run([np.ones((2, 3, 4), np.float32), np.ones((2, 0, 4), np.float32)])


def test_mask_that_a_run_may_broadcast():
    """Rows of every size use the version of the kernel that reads vectors of the mask, or the one that reads single elements."""
    model = onnx.parser.parse_model(
        HEADER
        + """
        masked (float[heads, length, 8] q, float[heads, 8, keys] k, float[length, shown] mask, float[heads, keys, 8] v) => (float[heads, length, 8] y) {
            products = MatMul(q, k)
            scores = Add(products, mask)
            rows = Softmax<axis = -1>(scores)
            y = MatMul(rows, v)
        }"""
    )
    compiled, engine = onnx2halide.compile(model), OnnxRuntime(model)
    for heads, length, keys in [(2, 5, 10), (1, 9, 33), (3, 16, 7), (1, 1, 1)]:
        for shown in (keys, 1):
            inputs = {port.name: sample(port, {"heads": heads, "length": length, "keys": keys, "shown": shown}) for port in model.graph.input}
            inputs["mask"] = np.random.default_rng(shown).normal(size=(length, shown)).astype(np.float32)
            found = difference(compiled.run_by_name(inputs)["y"], engine.run(inputs)["y"])
            assert not found.exceeds(default_tolerance(np.dtype(np.float32)), default_floor(np.dtype(np.float32), inputs.values())), f"{length}x{keys}, {shown}: {found.text()}"
