"""TopK against ONNX's reference: see test_against_reference.py."""

import pytest
from test_against_reference import Case, check, indices, x


def top_k():
    # Extents around powers of two, and small ones of k, for which heats come first.
    for extent, k in ((1, 1), (5, 5), (17, 3), (64, 64), (100, 1), (513, 7), (1000, 5), (1000, 1000)):
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
