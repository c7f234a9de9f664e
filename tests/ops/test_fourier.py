"""Fourier transforms against ONNX's reference: see reference_cases.py."""

import numpy as np
import pytest
from onnx2halide.references import OnnxRuntime
from reference_cases import Case, check, constant, x


def transforms():
    rows = [
        ((3, 16, 1), None, -2, {}),
        ((3, 16, 2), 12, 1, {}),  # cut off
        ((3, 16, 1), 20, 1, {"onesided": 1}),  # zeros behind
        ((3, 64, 2), None, -2, {}),
        ((1, 10, 10, 2), None, 1, {"inverse": 1}),
        ((3, 9, 2), None, 1, {"inverse": 1, "onesided": 1}),
        ((3, 4, 20, 2), 33, 2, {"inverse": 1, "onesided": 1}),
        ((2, 400, 1), 512, 1, {"onesided": 1}),
        ((2, 31, 1), None, 1, {}),  # a prime
        ((2, 307, 1), None, 1, {}),  # one that is too large for a table
        ((40, 6, 2), None, 0, {}),
        ((7, 1, 2), None, 1, {}),
    ]
    for shape, length, axis, attributes in rows:
        yield Case("DFT", [x(*shape), None if length is None else np.int64(length), np.int64(axis)], attributes)
    for dtype in ("float16", "float64"):
        yield Case("DFT", [x(3, 40, 1, dtype=dtype), None, np.int64(1)])


def frames():
    for shape, step, window, length, onesided in (
        ((1, 128, 1), 8, 16, None, 1),
        ((2, 200, 1), 7, None, 20, 1),
        ((2, 200, 2), 50, 100, 100, 0),
        ((1, 1600, 1), 160, 400, None, 1),
    ):
        operands = [x(*shape), np.int64(step), None if window is None else constant(window), None if length is None else np.int64(length)]
        yield Case("STFT", operands, {"onesided": onesided})
    # In a model exported by PyTorch, real numbers do not have a last axis.
    for is_open in (False, True):
        yield Case("STFT", [x(2, 200), np.int64(7), constant(20), None], {}, engine=OnnxRuntime, is_open=is_open)


@pytest.mark.parametrize("case", [*transforms(), *frames()], ids=str)
def test_fourier(case):
    check(case)
