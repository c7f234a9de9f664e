"""Kernels of 16-bit floats and doubles in OpenCL, which stores the former as bits and supports the latter by an extension."""

import ml_dtypes
import numpy as np
import onnx2halide
import pytest
from onnx import TensorProto, parser

# Numbers that round to even, up and down, beyond the largest, below the smallest, and what is none.
NUMBERS = [0.0, -0.0, 1.0, 1 / 3, 1.00048828125, 1.00146484375, -65504.0, 65519.0, 65520.0, 1e-7, 3e-8, 2.98e-8, -6e-5, 1e-40, 3e38, np.inf, -np.inf, np.nan]


def compiled(body: str, types: tuple[str, str]) -> onnx2halide.Model:
    text = f'<ir_version: 10, opset_import: ["" : 21]> g ({types[0]}[n] x) => ({types[1]}[n] y) {{ {body} }}'
    return onnx2halide.compile(parser.parse_model(text), target="host-opencl")


@pytest.mark.parametrize("name, dtype, code", [("float16", np.float16, TensorProto.FLOAT16), ("bfloat16", ml_dtypes.bfloat16, TensorProto.BFLOAT16)])
def test_casts(name, dtype, code):
    """Converts to the type and back, with numpy's rounding."""
    x = np.array([*NUMBERS, *np.random.default_rng(0).normal(size=200)], np.float32)
    with np.errstate(over="ignore"):
        expected = x.astype(dtype)
    (narrow,) = compiled(f"y = Cast <to = {code}> (x)", ("float", name)).run([x])
    assert narrow.dtype == dtype
    np.testing.assert_array_equal(narrow.astype(np.float32), expected.astype(np.float32))
    every = np.arange(65536, dtype=np.uint16).view(dtype)
    (wide,) = compiled("y = Cast <to = 1> (x)", (name, "float")).run([every])
    np.testing.assert_array_equal(wide, every.astype(np.float32))


def test_doubles():
    x = np.random.default_rng(0).normal(size=100)
    (y,) = compiled("z = Mul (x, x) y = Sqrt (z)", ("double", "double")).run([x])
    np.testing.assert_allclose(y, np.abs(x), rtol=1e-14)
