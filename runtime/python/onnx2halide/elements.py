"""Element types: ONNX's codes and numpy's dtypes."""

import numpy as np

BFLOAT16 = 16

_dtypes = {
    1: np.float32, 2: np.uint8, 3: np.int8, 4: np.uint16, 5: np.int16, 6: np.int32, 7: np.int64, 9: np.bool_,
    10: np.float16, 11: np.float64, 12: np.uint32, 13: np.uint64, 14: np.complex64, 15: np.complex128,
}  # fmt: skip


def dtype_of(code: int) -> np.dtype:
    """The dtype of an ONNX TensorProto.DataType. Raises TypeError where numpy has none for it."""
    if code in _dtypes:
        return np.dtype(_dtypes[code])
    if code == BFLOAT16:
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    raise TypeError(f"elements of ONNX type {code} cannot be passed from Python")
