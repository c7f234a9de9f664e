"""Conversions to and from floats of 8 and 4 bits and integers of 4 and 2: every code, and many numbers around each."""

import itertools

import ml_dtypes
import numpy as np
import onnx
import onnx2halide
import pytest
from onnx import TensorProto, helper
from onnx2halide.references import OnnxReference

MINIFLOATS = {
    TensorProto.FLOAT8E4M3FN: ml_dtypes.float8_e4m3fn,
    TensorProto.FLOAT8E4M3FNUZ: ml_dtypes.float8_e4m3fnuz,
    TensorProto.FLOAT8E5M2: ml_dtypes.float8_e5m2,
    TensorProto.FLOAT8E5M2FNUZ: ml_dtypes.float8_e5m2fnuz,
    TensorProto.FLOAT4E2M1: ml_dtypes.float4_e2m1fn,
    TensorProto.FLOAT8E8M0: ml_dtypes.float8_e8m0fnu,
}
EXPONENT = TensorProto.FLOAT8E8M0
INTEGERS = {
    TensorProto.INT4: ml_dtypes.int4,
    TensorProto.UINT4: ml_dtypes.uint4,
    TensorProto.INT2: ml_dtypes.int2,
    TensorProto.UINT2: ml_dtypes.uint2,
}
WIDE = {TensorProto.FLOAT: np.float32, TensorProto.FLOAT16: np.float16, TensorProto.BFLOAT16: ml_dtypes.bfloat16, TensorProto.DOUBLE: np.float64}


def named(*tables) -> list:
    return [pytest.param(code, dtype, id=TensorProto.DataType.Name(code)) for table in tables for code, dtype in table.items()]


def model(*nodes: onnx.NodeProto, takes: dict, gives: dict, constants=()) -> onnx.ModelProto:
    """Takes and gives: types and shapes by name."""
    ports = [[helper.make_tensor_value_info(name, *port) for name, port in table.items()] for table in (takes, gives)]
    graph = helper.make_graph(nodes, "tiny", *ports, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=12)


def cast(array: np.ndarray, source: int, target: int, **attributes) -> np.ndarray:
    made = model(helper.make_node("Cast", ["x"], ["y"], to=target, **attributes), takes={"x": (source, array.shape)}, gives={"y": (target, array.shape)})
    return onnx2halide.compile(made).run([array])[0]


def assert_same(got: np.ndarray, expected: np.ndarray) -> None:
    """The same bits, but for those of NaN."""
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
    bits = np.dtype(f"u{got.dtype.itemsize}")
    same = (got.view(bits) == expected.view(bits)) | (np.isnan(got) & np.isnan(expected))
    assert same.all(), f"{got[~same][:9]}, expected {expected[~same][:9]}"


def numbers(dtype, wide) -> np.ndarray:
    """All of a type's, their midpoints, the neighbours of both in a wide type, and what is beyond."""
    codes = np.arange(16 if dtype is ml_dtypes.float4_e2m1fn else 256, dtype=np.uint8).view(dtype).astype(np.float64)
    own = np.unique(codes[np.isfinite(codes)])
    edges = np.concatenate([own, (own[1:] + own[:-1]) / 2, 2 * own, np.random.default_rng(0).normal(size=9999) * np.abs(own).max() / 3])
    with np.errstate(over="ignore"):
        edges = edges.astype(wide)
    special = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0]).astype(wide)
    return np.concatenate([edges, *(np.nextafter(edges, wide(limit)) for limit in (-np.inf, np.inf)), special])


@pytest.mark.parametrize("code, dtype", named(MINIFLOATS))
def test_number_of_every_code(code, dtype):
    codes = np.arange(16 if code == TensorProto.FLOAT4E2M1 else 256, dtype=np.uint8).view(dtype)
    for target, wide in WIDE.items():
        assert_same(cast(codes, code, target), codes.astype(np.float32).astype(wide))


@pytest.mark.parametrize("source, wide", named(WIDE))
@pytest.mark.parametrize("saturate", [1, 0])
@pytest.mark.parametrize("code, dtype", [row for row in named(MINIFLOATS) if row.values[0] != EXPONENT])
def test_code_of_numbers(code, dtype, saturate, source, wide):
    x = numbers(dtype, wide)
    made = model(helper.make_node("Cast", ["x"], ["y"], to=code, saturate=saturate), takes={"x": (source, x.shape)}, gives={"y": (code, x.shape)})
    with np.errstate(all="ignore"):
        expected = OnnxReference(made).run({"x": x})["y"]
    assert_same(onnx2halide.compile(made).run([x])[0], expected)
