"""Conversions to and from floats of 8 and 4 bits and integers of 4 and 2: every code, and many numbers around each."""

import ml_dtypes
import numpy as np
import onnx
import onnx2halide
import pytest
from onnx import TensorProto, helper
from onnx2halide.elements import is_integer
from onnx2halide.references import OnnxReference

MINIFLOATS = {
    TensorProto.FLOAT8E4M3FN: ml_dtypes.float8_e4m3fn,
    TensorProto.FLOAT8E4M3FNUZ: ml_dtypes.float8_e4m3fnuz,
    TensorProto.FLOAT8E5M2: ml_dtypes.float8_e5m2,
    TensorProto.FLOAT8E5M2FNUZ: ml_dtypes.float8_e5m2fnuz,
    TensorProto.FLOAT4E2M1: ml_dtypes.float4_e2m1fn,
    TensorProto.FLOAT8E8M0: ml_dtypes.float8_e8m0fnu,
}
INTEGERS = {
    TensorProto.INT4: ml_dtypes.int4,
    TensorProto.UINT4: ml_dtypes.uint4,
    TensorProto.INT2: ml_dtypes.int2,
    TensorProto.UINT2: ml_dtypes.uint2,
}
WIDE = {TensorProto.FLOAT: np.float32, TensorProto.FLOAT16: np.float16, TensorProto.BFLOAT16: ml_dtypes.bfloat16, TensorProto.DOUBLE: np.float64}


EXPONENT = TensorProto.FLOAT8E8M0
SIGNED = [code for code in MINIFLOATS if code != EXPONENT]


def casts(arrays: dict[int, np.ndarray], *targets: dict) -> onnx.ModelProto:
    """A Cast of every array (by its type) with every target's attributes; outputs are called TYPE_I."""
    ways = [(code, f"{code}_{i}", target) for code in arrays for i, target in enumerate(targets)]
    nodes = [helper.make_node("Cast", [f"{code}"], [name], **target) for code, name, target in ways]
    inputs = [helper.make_tensor_value_info(f"{code}", code, array.shape) for code, array in arrays.items()]
    outputs = [helper.make_tensor_value_info(name, target["to"], arrays[code].shape) for code, name, target in ways]
    graph = helper.make_graph(nodes, "casts", inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=12)


def run(model: onnx.ModelProto, arrays: dict) -> dict[str, np.ndarray]:
    return onnx2halide.compile(model).run_by_name({f"{name}": array for name, array in arrays.items()})


def reference(model: onnx.ModelProto, arrays: dict) -> dict[str, np.ndarray]:
    with np.errstate(all="ignore"):
        return OnnxReference(model).run({f"{name}": array for name, array in arrays.items()})


def assert_same(got: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    """The same bits, but for those of NaN."""
    for name, array in expected.items():
        assert (got[name].dtype, got[name].shape) == (array.dtype, array.shape), name
        bits = np.dtype(f"u{array.dtype.itemsize}")
        same = got[name].view(bits) == array.view(bits)
        if not is_integer(array.dtype):
            same |= np.isnan(got[name]) & np.isnan(array)
        assert same.all(), f"{name}: {got[name][~same][:9]}, expected {array[~same][:9]}"


def codes(code: int) -> np.ndarray:
    """Every element of a type of 8 bits or fewer."""
    dtype = np.dtype((MINIFLOATS | INTEGERS)[code])
    if is_integer(dtype):
        return np.arange(ml_dtypes.iinfo(dtype).min, ml_dtypes.iinfo(dtype).max + 1).astype(dtype)
    return np.arange(16 if code == TensorProto.FLOAT4E2M1 else 256, dtype=np.uint8).view(dtype)


def numbers(wide) -> np.ndarray:
    """The numbers of all minifloats, their midpoints, the neighbours of both, and what is out of range."""
    result = [np.array([np.inf, -np.inf, np.nan, 0.0, -0.0])]
    for code in SIGNED:
        all_numbers = codes(code).astype(np.float64)
        own = np.unique(all_numbers[np.isfinite(all_numbers)])
        result += [own, (own[1:] + own[:-1]) / 2, 2 * own, np.random.default_rng(0).normal(size=999) * own[-1] / 3]
    with np.errstate(over="ignore"):
        edges = np.concatenate(result).astype(wide)
    return np.concatenate([edges, *(np.nextafter(edges, wide(limit)) for limit in (-np.inf, np.inf))])


def rounded_to_odd(x: np.ndarray) -> np.ndarray:
    """In float32, but such that rounding again yields the same as rounding once."""
    with np.errstate(over="ignore"):
        near = x.astype(np.float32)
    other = np.nextafter(near, np.where(near < x, np.float32(np.inf), np.float32(-np.inf)))
    return np.where((near == x) | np.isnan(x) | (near.view(np.uint32) & 1 == 1), near, other)


def test_number_of_every_code():
    arrays = {code: codes(code) for code in [*MINIFLOATS, *INTEGERS]}
    model = casts(arrays, *({"to": code} for code in (TensorProto.FLOAT, TensorProto.FLOAT16)))
    assert_same(run(model, arrays), reference(model, arrays))


@pytest.mark.parametrize("source", WIDE, ids=TensorProto.DataType.Name)
def test_codes_of_numbers(source):
    arrays = {source: numbers(WIDE[source])}
    model = casts(arrays, *({"to": code, "saturate": saturate} for code in SIGNED for saturate in (1, 0)))
    if source == TensorProto.DOUBLE:  # which the reference rounds to float32 first
        got, (narrow,) = run(model, arrays), (rounded_to_odd(x) for x in arrays.values())
        arrays = {source: narrow}
        assert_same(got, reference(model, arrays))
    else:
        assert_same(run(model, arrays), reference(model, arrays))


def exponents(x: np.ndarray, saturate: int, mode: str) -> np.ndarray:
    """Codes of float8e8m0 by the operator's table. The reference treats infinities as NaN, and float32's subnormal numbers incorrectly."""
    smallest, largest = 2.0**-127, 2.0**127
    size = np.abs(x.astype(np.float64))
    with np.errstate(divide="ignore", invalid="ignore"):
        down = np.floor(np.log2(np.clip(size, smallest, 2 * largest)))
    up = size > 2.0**down if mode == "up" else size >= 1.5 * 2.0**down if mode == "nearest" else np.zeros(x.shape, bool)
    code = down + np.where(up, 1, 0) + 127
    code = np.minimum(code, 254) if saturate else np.where(size < smallest, 255, np.minimum(code, 255))
    return np.where(np.isnan(x), 255, code).astype(np.uint8).view(ml_dtypes.float8_e8m0fnu)


def test_codes_of_exponents():
    own = codes(EXPONENT)[:-1].astype(np.float32)
    edges = np.concatenate([own, own * np.float32(1.5), [0, 1e-39, 3e-39, 5e-39, np.inf, np.nan]]).astype(np.float32)
    x = np.concatenate([edges, np.nextafter(edges, np.float32(0)), np.nextafter(edges, np.float32(np.inf))])
    ways = [(saturate, mode) for saturate in (1, 0) for mode in ("up", "down", "nearest")]
    model = casts({TensorProto.FLOAT: x}, *({"to": EXPONENT, "saturate": saturate, "round_mode": mode} for saturate, mode in ways))
    assert_same(run(model, {TensorProto.FLOAT: x}), {f"{TensorProto.FLOAT}_{i}": exponents(x, *way) for i, way in enumerate(ways)})


def test_other_types():
    """Integers wrap, bools are 0 and 1; what a float beyond an integer's bounds becomes is not defined."""
    some = np.array([0, 1, -1, 7, -8, 17, -100, 463, 464, 465, -447, 57343, 65536, 2**24 + 1, -(2**31), 2**31 - 1], np.int32)
    arrays = {TensorProto.INT8: np.arange(-128, 128).astype(np.int8), TensorProto.INT32: some, TensorProto.BOOL: np.array([True, False])}
    model = casts(arrays, *({"to": code} for code in (*INTEGERS, TensorProto.FLOAT8E5M2, TensorProto.FLOAT4E2M1)))
    assert_same(run(model, arrays), reference(model, arrays))
    arrays = {code: codes(code) for code in (TensorProto.FLOAT4E2M1, TensorProto.INT4, TensorProto.UINT2)}
    model = casts(arrays, *({"to": code} for code in (TensorProto.INT8, TensorProto.INT64, TensorProto.BOOL, TensorProto.FLOAT8E5M2)))
    assert_same(run(model, arrays), reference(model, arrays))
