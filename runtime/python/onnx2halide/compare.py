"""How far arrays are from those expected."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Difference:
    """The largest difference between two arrays, and where it is."""

    max_abs: float = 0.0
    relative: float = 0.0  # max_abs / max |expected|
    index: tuple[int, ...] = ()
    got: object = None
    expected: object = None
    mismatch: str = ""  # set where shape or element type differ; then the rest says nothing

    def text(self) -> str:
        if self.mismatch:
            return self.mismatch
        place = f" at {list(map(int, self.index))}: {self.got}, expected {self.expected}" if self.max_abs else ""
        return f"max |a - b| {self.max_abs:.3g}, relative {self.relative:.3g}{place}"

    def exceeds(self, tolerance: float) -> bool:
        return bool(self.mismatch) or not self.relative <= tolerance


def difference(got: np.ndarray, expected: np.ndarray) -> Difference:
    """Equal infinities and NaNs in the same places do not differ."""
    got, expected = np.asarray(got), np.asarray(expected)
    if got.shape != expected.shape:
        return Difference(mismatch=f"shape {list(got.shape)}, expected {list(expected.shape)}")
    if got.dtype != expected.dtype:
        return Difference(mismatch=f"element type {got.dtype}, expected {expected.dtype}")
    if got.size == 0:
        return Difference()
    wide = np.complex128 if got.dtype.kind == "c" else np.float64
    a, b = got.astype(wide), expected.astype(wide)
    with np.errstate(invalid="ignore"):
        distance = np.where((got == expected) | (np.isnan(a) & np.isnan(b)), 0.0, np.abs(a - b))
    distance = np.where(np.isnan(distance), np.inf, distance)
    index = np.unravel_index(np.argmax(distance), distance.shape)
    finite = np.abs(b[np.isfinite(b)])
    scale = finite.max() if finite.size and finite.max() > 0 else 1.0
    largest = float(distance[index])
    return Difference(largest, largest / float(scale), index, got[index], expected[index])


def default_tolerance(dtype: np.dtype) -> float:
    """The relative difference that rounding explains."""
    if dtype.kind in "iubOSU":
        return 0.0
    return 1e-2 if dtype.itemsize <= 2 else 1e-4
