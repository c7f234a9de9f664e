"""Attention whose past and sequence have open dims, against onnxruntime: a program serves every length."""

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


@pytest.mark.parametrize("text", [ATTENTION, GROUPED], ids=["Attention", "GroupQueryAttention"])
def test_open_dims(text):
    model = onnx.parser.parse_model(HEADER + text)
    compiled, engine = onnx2halide.compile(model, dims={"past": "0..64"}), OnnxRuntime(model)
    for batch, length, past in SIZES:
        dims = {"batch": batch, "length": length, "past": past, "total": past + length}
        inputs = {port.name: sample(port, dims) for port in model.graph.input}
        expected = engine.run(inputs)
        for name, array in compiled.run_by_name(inputs).items():
            found = difference(array, expected[name])
            assert not found.exceeds(default_tolerance(array.dtype), default_floor(array.dtype, inputs.values())), f"{dims} {name}: {found.text()}"


def test_mask_that_a_run_may_broadcast():
    """Rows of every size take the version of the kernel that reads vectors of the mask, or the one that reads one element."""
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
