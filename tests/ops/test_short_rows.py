"""Rows that do not fill vectors, in elementwise kernels that group them into runs, against onnxruntime: with operands for each index
within a row, for each row and for each element, of sizes that do and do not fill runs, and in place of an operand."""

import numpy as np
import onnx
import onnx2halide
import pytest
from onnx2halide.references import OnnxRuntime

BODY = """
    <ir_version: 8, opset_import: ["" : 17]>
    rows (float[{n},{rows},{row}] a, float[{row}] place, float[{n},{rows},1] each, float[{n},{rows},{row}] b) => (float[{n},{rows},{row}] z, float[{n},{rows},{row}] w) {{
        p = Sub(a, place)
        q = Div(p, each)
        r = Exp(q)
        z = Min(r, b)
        w = Add(a, each)
    }}"""
SIZES = [(1, 224, 3), (2, 5, 3), (3, 7, 5), (1, 100, 10), (2, 33, 12), (1, 16, 14), (4, 1, 20), (1, 2, 6), (2, 50, 17), (2, 9, 48), (1, 40, 1)]


def check(compiled, proto: onnx.ModelProto, sizes: tuple) -> None:
    n, rows, row = sizes
    rng = np.random.default_rng(row)
    shapes = {"a": sizes, "place": (row,), "each": (n, rows, 1), "b": sizes}
    inputs = {name: rng.uniform(0.5, 2, shape).astype(np.float32) for name, shape in shapes.items()}
    found, expected = compiled.run_by_name(inputs), OnnxRuntime(proto).run(inputs)
    for name in ("z", "w"):
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-6, err_msg=f"{name} {sizes}")


@pytest.mark.parametrize("target", ["host", "x86-64-linux-sse41-avx-f16c-fma-avx2"])
def test_fixed_sizes(target):
    protos = [onnx.parser.parse_model(BODY.format(n=n, rows=rows, row=row)) for n, rows, row in SIZES]
    for proto, sizes, compiled in zip(protos, SIZES, onnx2halide.compile_many(protos, target=target), strict=True):
        check(compiled, proto, sizes)


@pytest.mark.parametrize("row", [3, 10, "row"])
def test_open_sizes(row):
    proto = onnx.parser.parse_model(BODY.format(n="n", rows="rows", row=row))
    compiled = onnx2halide.compile(proto)
    for n, rows, number in SIZES:
        check(compiled, proto, (n, rows, number if row == "row" else row))
