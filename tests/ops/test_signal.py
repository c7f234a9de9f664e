"""Windows, mel bands, determinants and caches against ONNX's reference: see reference_cases.py."""

import numpy as np
import pytest
from reference_cases import Case, check, indices, x


def signals():
    for op in ("HannWindow", "HammingWindow", "BlackmanWindow"):
        for periodic in (0, 1):
            yield Case(op, [np.int64(19)], {"periodic": periodic})
    yield Case("HannWindow", [np.int32(8)], {"output_datatype": 11})
    for bands, length, rate, low, high in ((8, 16, 8192, 0, 4096), (20, 512, 16000, 20, 7600), (3, 9, 100, 1, 20)):
        operands = [np.int32(bands), np.int32(length), np.int32(rate), np.float32(low), np.float32(high)]
        yield Case("MelWeightMatrix", operands)


def determinants():
    for shape in ((1, 1), (2, 2), (3, 5, 5), (2, 3, 17, 17)):
        yield Case("Det", [x(*shape)])


def caches():
    for shape, update, axis, places in (((2, 3, 8, 17), 3, -2, (1, 5)), ((3, 8, 4), 8, 1, (0, 3, 6)), ((2, 5, 17), 4, 2, (7, 16))):
        changed = list(shape)
        changed[axis] = update
        attributes = {"axis": axis, "mode": "circular"}
        yield Case("TensorScatter", [x(*shape), x(*changed), indices(*places)], attributes, opset=24)
        yield Case("TensorScatter", [x(*shape), x(*changed)], {"axis": axis}, opset=24)


@pytest.mark.parametrize("case", [*signals(), *determinants(), *caches()], ids=str)
def test_signal(case):
    check(case)
