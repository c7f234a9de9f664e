"""Element types: ONNX's codes and numpy's dtypes."""

import numpy as np

BFLOAT16 = 16

_dtypes = {
    1: np.float32, 2: np.uint8, 3: np.int8, 4: np.uint16, 5: np.int16, 6: np.int32, 7: np.int64, 9: np.bool_,
    10: np.float16, 11: np.float64, 12: np.uint32, 13: np.uint64, 14: np.complex64, 15: np.complex128,
}  # fmt: skip
_others = {
    8: "string", 17: "float8e4m3fn", 18: "float8e4m3fnuz", 19: "float8e5m2", 20: "float8e5m2fnuz", 21: "uint4", 22: "int4",
    23: "float4e2m1", 24: "float8e8m0", 25: "uint2", 26: "int2",
}  # fmt: skip


def dtype_of(code: int) -> np.dtype:
    """The dtype of an ONNX TensorProto.DataType. Raises TypeError where numpy has none for it."""
    if code in _dtypes:
        return np.dtype(_dtypes[code])
    if code == BFLOAT16:
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    raise TypeError(f"elements of type {_others.get(code, f'number {code}')} cannot be passed from Python")
