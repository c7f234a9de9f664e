"""Normalisations of rows whose number only a run knows, several at once or, of few, one by one, against onnxruntime."""

import itertools

import numpy as np
import onnx
import onnx2halide
import pytest
from onnx2halide.references import OnnxRuntime

MODEL = """
    <ir_version: 9, opset_import: ["" : {opset}]>
    rows (float[n,{inner},rows,{row}] x, float[{row}] s, float[{row}] b) => (float[n,{inner},rows,{last}] y) {{
        {nodes}
    }}"""
NODES = {
    "LayerNormalization": "y = LayerNormalization <axis = -1> (x, s, b)",
    "a sum before and a product after": "q = Add(x, b) r = LayerNormalization <axis = -1> (q, s, b) y = Mul(r, x)",
    "RMSNormalization": "y = RMSNormalization(x, s)",
    "Softmax": "q = Mul(x, s) r = Add(q, b) y = Softmax <axis = -1> (r)",
    "LpNormalization": "q = Mul(x, s) r = Add(q, b) y = LpNormalization <axis = -1> (r)",
    "ReduceL2": "q = Mul(x, s) r = Add(q, b) y = ReduceL2 <axes = [-1]> (r)",
}


@pytest.mark.parametrize("inner, row", [(1, 256), (3, 37), (2, 16)])
@pytest.mark.parametrize("nodes", NODES)
def test_open_rows(nodes, inner, row):
    text = MODEL.format(inner=inner, row=row, last=1 if nodes.startswith("Reduce") else row, nodes=NODES[nodes], opset=23 if nodes.startswith("RMS") else 17)
    proto = onnx.parser.parse_model(text)
    compiled, reference = onnx2halide.compile(proto), OnnxRuntime(proto)
    for n, rows in itertools.product((1, 2), (1, 2, 3, 4, 5, 9, 22)):
        rng = np.random.default_rng(rows)
        inputs = {name: rng.normal(size=shape).astype(np.float32) for name, shape in {"x": (n, inner, rows, row), "s": (row,), "b": (row,)}.items()}
        found, expected = compiled.run_by_name(inputs)["y"], reference.run(inputs)["y"]
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5, err_msg=f"{n} {rows}")
