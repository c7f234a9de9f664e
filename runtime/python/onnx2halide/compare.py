"""Compares arrays with the expected ones."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from onnx2halide.elements import is_integer


@dataclass(frozen=True)
class Difference:
    """The largest difference between two arrays, and where it is."""

    max_abs: float = 0.0
    magnitude: float = 1.0  # max |expected|, or 1 if that is 0
    index: tuple[int, ...] = ()
    got: object = None
    expected: object = None
    mismatch: str = ""  # set if shapes or element types differ; the other fields are then meaningless

    def text(self) -> str:
        if self.mismatch:
            return self.mismatch
        place = f" at {list(map(int, self.index))}: {self.got}, expected {self.expected}" if self.max_abs else ""
        return f"max |a - b| {self.max_abs:.3g}, relative {self.relative:.3g}{place}"

    @property
    def relative(self) -> float:
        return self.max_abs / self.magnitude

    def exceeds(self, tolerance: float, floor: float = 0.0) -> bool:
        """Whether it is more than `tolerance` times the largest magnitude plus `floor`."""
        return bool(self.mismatch) or not self.max_abs <= tolerance * self.magnitude + floor


def difference(got: np.ndarray, expected: np.ndarray) -> Difference:
    """The difference of two arrays, in which equal infinities, and NaNs at the same index, count as equal."""
    got, expected = np.asarray(got), np.asarray(expected)
    if got.shape != expected.shape:
        return Difference(mismatch=f"shape {list(got.shape)}, expected {list(expected.shape)}")
    if got.dtype != expected.dtype:
        return Difference(mismatch=f"element type {got.dtype}, expected {expected.dtype}")
    if got.size == 0:
        return Difference()
    if got.dtype.kind in "OSU":
        index = np.unravel_index(np.argmax(got != expected), got.shape)
        return Difference(float(got[index] != expected[index]), 1.0, index, got[index], expected[index])
    wide = np.complex128 if got.dtype.kind == "c" else np.float64
    a, b = got.astype(wide), expected.astype(wide)
    with np.errstate(invalid="ignore"):
        distance = np.where((got == expected) | (np.isnan(a) & np.isnan(b)), 0.0, np.abs(a - b))
    distance = np.where(np.isnan(distance), np.inf, distance)
    index = np.unravel_index(np.argmax(distance), distance.shape)
    finite = np.abs(b[np.isfinite(b)])
    scale = finite.max() if finite.size and finite.max() > 0 else 1.0
    return Difference(float(distance[index]), float(scale), index, got[index], expected[index])


def default_tolerance(dtype: np.dtype) -> float:
    """The relative difference that rounding may cause."""
    if is_integer(dtype) or dtype.kind in "OSU":
        return 0.0
    if dtype.itemsize == 1:  # 4-bit and 8-bit floats: a step
        import ml_dtypes

        return float(ml_dtypes.finfo(dtype).eps)
    return 1e-2 if dtype.itemsize == 2 else 1e-4


def default_floor(dtype: np.dtype, inputs: Iterable[np.ndarray]) -> float:
    """The absolute difference that rounding may cause however small a result is: 1e-6, or 1e-4 for 16-bit floats (which are computed in 32
    bits). A Sigmoid computed as 0.5 + 0.5 tanh(x / 2) has an error of 1e-7 even if its result is 1e-8, and whatever is computed from it
    inherits that error. If all inputs are less than 1, the floor shrinks with the largest."""
    floats = [np.abs(array.astype(np.float64)) for array in inputs if isinstance(array, np.ndarray) and array.dtype.kind in "fV" and array.size]
    scale = min(1.0, max(float(np.nanmax(array)) for array in floats)) if floats else 1.0
    return default_tolerance(dtype) / 100 * scale
