"""Resize to the nearest element, against onnxruntime: with scales and sizes whose positions are halves and integers, except for the last bit."""

import numpy as np
import onnx2halide
import pytest
from onnx import numpy_helper, parser
from onnx2halide.references import OnnxRuntime

TRANSFORMATIONS = ["half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "asymmetric", "align_corners"]
ROUNDINGS = ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]
OPERANDS = {"scales": np.float32([0.7, 0.7]), "smaller": np.array([14, 21]), "larger": np.array([28, 42]), "quarters": np.float32([0.35, 1.3])}


def model(transformation: str, rounding: str, operand: np.ndarray, dims: str):
    attributes = f'mode = "nearest", coordinate_transformation_mode = "{transformation}", nearest_mode = "{rounding}", axes = [2, 3]'
    operands = "x, , s" if operand.dtype == np.float32 else "x, , , s"
    body = f"(float[{dims}] x) => (float[a,b,c,d] y) {{ y = Resize <{attributes}> ({operands}) }}"
    proto = parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]> g {body}')
    proto.graph.initializer.append(numpy_helper.from_array(operand, "s"))
    return proto


@pytest.mark.parametrize("operand", OPERANDS)
@pytest.mark.parametrize("transformation", TRANSFORMATIONS)
def test_nearest(transformation, operand):
    protos = [model(transformation, rounding, OPERANDS[operand], "1,1,20,30") for rounding in ROUNDINGS]
    protos += [model(transformation, rounding, OPERANDS[operand], "n,1,h,w") for rounding in ROUNDINGS[:2]]
    x = np.arange(600, dtype=np.float32).reshape(1, 1, 20, 30)
    for proto, compiled in zip(protos, onnx2halide.compile_many(protos), strict=True):
        np.testing.assert_array_equal(compiled.run([x])[0], OnnxRuntime(proto).run({"x": x})["y"], err_msg=str(proto.graph.node[0]))
