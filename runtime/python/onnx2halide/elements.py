"""Element types: ONNX's codes and numpy's dtypes."""

import functools
import math

import numpy as np

_STRING, BFLOAT16 = 8, 16
_numpy = {
    1: np.float32, 2: np.uint8, 3: np.int8, 4: np.uint16, 5: np.int16, 6: np.int32, 7: np.int64, _STRING: object, 9: np.bool_,
    10: np.float16, 11: np.float64, 12: np.uint32, 13: np.uint64, 14: np.complex64, 15: np.complex128,
}  # fmt: skip
_ml_dtypes = {
    16: "bfloat16", 17: "float8_e4m3fn", 18: "float8_e4m3fnuz", 19: "float8_e5m2", 20: "float8_e5m2fnuz", 21: "uint4", 22: "int4",
    23: "float4_e2m1fn", 24: "float8_e8m0fnu", 25: "uint2", 26: "int2",
}  # fmt: skip
_packed_bits = {"uint4": 4, "int4": 4, "float4_e2m1fn": 4, "uint2": 2, "int2": 2}

@functools.cache
def dtype_of(code: int) -> np.dtype:
    """The dtype of an ONNX TensorProto.DataType. Raises TypeError if there is none."""
    if code in _numpy:
        return np.dtype(_numpy[code])
    if code in _ml_dtypes:
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, _ml_dtypes[code]))
    raise TypeError(f"elements of type number {code} cannot be passed from Python")


def storable(array: np.ndarray) -> np.ndarray:
    """The array as it is stored in numpy's files: elements of types that numpy lacks become plain bytes, and strings numpy's own rather than
    pickled objects."""
    if array.dtype.hasobject:
        return array.astype(str)
    return array if array.dtype.isbuiltin == 1 else array.view(f"V{array.dtype.itemsize}")


def stored(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """The inverse of storable(), for an array that should have this dtype; arrays of other types are returned as they are."""
    return array.view(dtype) if array.dtype == f"V{dtype.itemsize}" else array


def is_integer(dtype: np.dtype) -> bool:
    return dtype.kind in "iub" or dtype.name in ("uint4", "int4", "uint2", "int2")


@functools.cache
def is_packed(dtype: np.dtype) -> bool:
    """Whether ONNX stores several elements in a byte. In an array each has its own byte."""
    # Cached because numpy takes longer to compute the name than a small model takes to run.
    return dtype.name in _packed_bits


def pack(array: np.ndarray) -> np.ndarray:
    """Packs the elements of a packed type into bytes as ONNX stores them, the first in the low bits."""
    bits = _packed_bits[array.dtype.name]
    codes = np.zeros((-(-array.size * bits // 8), 8 // bits), np.uint8)
    codes.reshape(-1)[: array.size] = array.reshape(-1).view(np.uint8) & (1 << bits) - 1
    return np.bitwise_or.reduce(codes << np.arange(0, 8, bits, dtype=np.uint8), axis=1)


def unpack(packed: np.ndarray, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
    """The inverse of pack()."""
    bits = _packed_bits[dtype.name]
    codes = (packed[:, None] >> np.arange(0, 8, bits, dtype=np.uint8)) & (1 << bits) - 1
    return codes.reshape(-1)[: math.prod(shape)].view(dtype).reshape(shape)
