"""Layer and RMS normalisations as exporters decompose them, with what follows them, against onnxruntime."""

from itertools import product

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnx2halide.references import OnnxRuntime
from recipes import Recipe

SHAPES = {"b, t, 48": (2, 5, 48), "b, 12, 7": (3, 12, 7), "3, 12, 33": (3, 12, 33)}
LAYER = "m = ReduceMean<axes = [{axis}]>(x) d = Sub(x, m) s = Pow(d, two) v = ReduceMean<axes = [{axis}]>(s) e = Add(v, epsilon) r = Sqrt(e) n = Div(d, r)"
FACTORED = "m = ReduceMean<axes = [{axis}]>(x) d = Sub(x, m) s = Mul(d, d) v = ReduceMean<axes = [{axis}]>(s) e = Add(v, epsilon) q = Sqrt(e) r = Reciprocal(q) f = Mul(r, scale) a = Mul(x, f) b = Mul(m, f) c = Sub(shift, b) n = Add(a, c)"
RMS = "s = Pow(x, two) v = ReduceMean<axes = [{axis}]>(s) e = Add(v, epsilon) q = Sqrt(e) r = Div(one, q) n = Mul(x, r)"


NODES = {"layer": LAYER, "factored": FACTORED, "rms": RMS}
# By the element's type.
TOLERANCES = {"float": 1e-5, "double": 1e-12, "float16": 4e-3}


def written_out(nodes: str, dims: str, axis: int, element: str) -> onnx.ModelProto:
    weights = [1] * 3
    weights[axis] = SHAPES[dims][axis]
    proto = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 13]> g ({element}[{dims}] x) => ({element}[{dims}] y) {{
            {NODES[nodes].format(axis=axis)} scaled = Mul(n, scale) shifted = Add(scaled, shift) y = Add(shifted, x) }}"""
    )
    draw = np.random.default_rng(0)
    constants = {"two": 2, "one": 1, "epsilon": 1e-3, "scale": draw.normal(size=weights), "shift": draw.normal(size=weights)}
    dtype = helper.tensor_dtype_to_np_dtype(proto.graph.input[0].type.tensor_type.elem_type)
    proto.graph.initializer.extend(numpy_helper.from_array(np.asarray(value, dtype), name) for name, value in constants.items())
    return proto


@pytest.mark.parametrize("case", [Recipe(written_out, *kind) for kind in product(NODES, SHAPES, (-1, 1), TOLERANCES)], ids=str)
def test_written_out(case):
    _, dims, _, element = case.model.args
    proto = case.model()
    dtype = helper.tensor_dtype_to_np_dtype(proto.graph.input[0].type.tensor_type.elem_type)
    inputs = {"x": (np.random.default_rng(1).normal(size=SHAPES[dims]) * 3 + 1).astype(dtype)}
    found, expected = case.compile().run_by_name(inputs)["y"], OnnxRuntime(proto).run(inputs)["y"]
    np.testing.assert_allclose(found, expected, rtol=TOLERANCES[element], atol=TOLERANCES[element])


GROUPS = """<ir_version: 8, opset_import: ["": 17]> g (float[{dims}] x, float[12, 8, 1, 1] w) => (float[{dims_of_result}] y) {{
    images = Conv(x, w)
    joined_shape = Constant<value_ints = [0, {groups}, -1]>()
    joined = Reshape(images, joined_shape)
    standardised = InstanceNormalization<epsilon: float = 0.01>(joined, factor, offset)
    shape = Shape(images)
    parts = Reshape(standardised, shape)
    scaled = Mul(parts, scale)
    shifted = Add(scaled, shift)
    y = Relu(shifted)
}}"""


def grouped(groups: int, dims: str) -> onnx.ModelProto:
    """GroupNormalization as PyTorch exports it for ONNX before that had it."""
    proto = onnx.parser.parse_model(GROUPS.format(groups=groups, dims=dims, dims_of_result=dims.replace("8,", "12,")))
    draw = np.random.default_rng(0)
    constants = {"factor": draw.normal(size=groups), "offset": draw.normal(size=groups), "scale": draw.normal(size=(12, 1, 1)), "shift": draw.normal(size=(12, 1, 1))}
    proto.graph.initializer.extend(numpy_helper.from_array(np.float32(value), name) for name, value in constants.items())
    return proto


@pytest.mark.parametrize("case", [Recipe(grouped, *kind) for kind in product((1, 3, 12), ("2, 8, 9, 11", "b, 8, h, l"))], ids=str)
def test_groups_of_channels(case):
    proto = case.model()
    draw = np.random.default_rng(1)
    inputs = {"x": draw.normal(size=(2, 8, 9, 11)).astype(np.float32), "w": draw.normal(size=(12, 8, 1, 1)).astype(np.float32)}
    found, expected = case.compile().run_by_name(inputs)["y"], OnnxRuntime(proto).run(inputs)["y"]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
