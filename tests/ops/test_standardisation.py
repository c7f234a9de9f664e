"""Layer and RMS normalisations that exporters write out, against onnxruntime, with what follows them."""

import numpy as np
import onnx
import onnx2halide
import pytest
from onnx2halide.references import OnnxRuntime

SHAPES = {"b, t, 48": (2, 5, 48), "b, 12, 7": (3, 12, 7), "3, 12, 33": (3, 12, 33)}
LAYER = "m = ReduceMean<axes = [{axis}]>(x) d = Sub(x, m) s = Pow(d, two) v = ReduceMean<axes = [{axis}]>(s) e = Add(v, epsilon) r = Sqrt(e) n = Div(d, r)"
FACTORED = "m = ReduceMean<axes = [{axis}]>(x) d = Sub(x, m) s = Mul(d, d) v = ReduceMean<axes = [{axis}]>(s) e = Add(v, epsilon) q = Sqrt(e) r = Reciprocal(q) f = Mul(r, scale) a = Mul(x, f) b = Mul(m, f) c = Sub(shift, b) n = Add(a, c)"
RMS = "s = Pow(x, two) v = ReduceMean<axes = [{axis}]>(s) e = Add(v, epsilon) q = Sqrt(e) r = Div(one, q) n = Mul(x, r)"


@pytest.mark.parametrize("element, dtype, tolerance", [("float", np.float32, 1e-5), ("double", np.float64, 1e-12), ("float16", np.float16, 4e-3)])
@pytest.mark.parametrize("axis", [-1, 1])
@pytest.mark.parametrize("dims", SHAPES)
@pytest.mark.parametrize("nodes", [LAYER, FACTORED, RMS], ids=["layer", "factored", "rms"])
def test_written_out(nodes, dims, axis, element, dtype, tolerance):
    shape = SHAPES[dims]
    weights = [1] * 3
    weights[axis] = shape[axis]
    proto = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 13]> g ({element}[{dims}] x) => ({element}[{dims}] y) {{
            {nodes.format(axis=axis)} scaled = Mul(n, scale) shifted = Add(scaled, shift) y = Add(shifted, x) }}"""
    )
    draw = np.random.default_rng(0)
    constants = {"two": 2, "one": 1, "epsilon": 1e-3, "scale": draw.normal(size=weights), "shift": draw.normal(size=weights)}
    proto.graph.initializer.extend(onnx.numpy_helper.from_array(np.asarray(value, dtype), name) for name, value in constants.items())
    inputs = {"x": (draw.normal(size=shape) * 3 + 1).astype(dtype)}
    found, expected = onnx2halide.compile(proto).run_by_name(inputs)["y"], OnnxRuntime(proto).run(inputs)["y"]
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
