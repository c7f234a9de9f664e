"""TopK against ONNX's reference: see reference_cases.py."""

import numpy as np
import onnx2halide
import pytest
from onnx import TensorProto
from make_models import model, node
from onnx2halide.references import OnnxReference
from reference_cases import Case, check, indices, x


def top_k():
    # Extents around whole blocks; few and many elements requested, so that candidates are pruned never, once and often.
    for extent, k in ((1, 1), (5, 5), (17, 3), (64, 64), (100, 1), (513, 7), (1000, 5), (1000, 1000), (5000, 40)):
        for largest in (0, 1):
            yield Case("TopK", [x(2, extent), indices(k)], {"largest": largest}, outputs=2)
    # Few different numbers, so that many are equal.
    for dtype in ("int8", "uint8", "int32", "int64", "uint64", "float16", "float64"):
        yield Case("TopK", [x(2, 3, 200, dtype=dtype), indices(6)], {"largest": 0}, outputs=2)
        yield Case("TopK", [x(2, 40, 3, dtype=dtype), indices(20)], {"axis": 1}, outputs=2)
    yield Case("TopK", [x(300), indices(6)], {"axis": 0}, outputs=2)


@pytest.mark.parametrize("case", [*top_k()], ids=lambda case: f"{case} k={case.operands[1][0]}")
def test_top_k(case):
    check(case)


@pytest.mark.parametrize("dtype", ["FLOAT", "DOUBLE", "FLOAT16", "INT8", "UINT8", "INT64", "UINT64"])
@pytest.mark.parametrize("largest", [0, 1])
def test_open_axis(dtype, largest):
    """Both axes are open, with many equal elements, negative ones and zeros of both signs."""
    element = getattr(TensorProto, dtype)
    top = node("TopK", "x k", "y z", axis=0, largest=largest)
    ports = [("x", element, ["rows", "columns"]), ("k", TensorProto.INT64, [1])], [("y", element, ["k", "columns"]), ("z", TensorProto.INT64, ["k", "columns"])]
    compiled, reference = onnx2halide.compile(model([top], *ports)), OnnxReference(model([top], *ports))
    rng = np.random.default_rng(0)
    for rows, columns, k in ((1, 1, 1), (7, 3, 2), (40, 5, 40), (1000, 2, 17), (9, 4, 0)):
        numbers = rng.integers(0 if dtype.startswith("U") else -20, 20, (rows, columns))
        array = (numbers / 4 if "FLOAT" in dtype or dtype == "DOUBLE" else numbers).astype(dtype.lower().replace("float16", "half").replace("float", "single"))
        inputs = {"x": -array if array.dtype.kind == "f" else array, "k": np.array([k])}
        expected = reference.run(inputs)
        for name, found in compiled.run_by_name(inputs).items():
            assert np.array_equal(found, expected[name]), (name, rows, columns, k)
