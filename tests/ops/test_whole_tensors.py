"""Reductions of all elements to one: of many elements, each thread takes a slab."""

import numpy as np
import onnx
import onnx2halide
import pytest

OPERATORS = {
    "ReduceSum": (np.sum, "float int32 double"),
    "ReduceMean": (np.mean, "float double"),
    "ReduceMax": (np.max, "float int8 int64 double"),
    "ReduceMin": (np.min, "float uint8 double"),
    "ReduceL2": (lambda x: np.sqrt(np.sum(x * x)), "float"),
    "ReduceProd": (np.prod, "float"),
}
SHAPES = [(1, 1), (1, 3), (2, 9), (40, 100), (130, 511), (1, 65536), (331, 1000), (4099, 260)]
TYPES = {"float": np.float32, "double": np.float64}


def reduction(operator: str, dtype: str, shape: str) -> onnx2halide.Model:
    model = onnx.parser.parse_model(
        f'<ir_version: 9, opset_import: ["" : 18]> whole ({dtype}[{shape}] x) => ({dtype}[] y) {{ y = {operator}<keepdims = 0>(x) }}'
    )
    return onnx2halide.compile(model, threads=3)


def elements(shape: tuple[int, int], dtype: str, operator: str) -> np.ndarray:
    rng = np.random.default_rng(0)
    if operator == "ReduceProd":  # without rounding
        x = rng.choice(np.float32([-1, 1]), shape)
        x.reshape(-1)[:: x.size // 3 + 1] = 3
        return x
    if dtype in TYPES:
        return (rng.standard_normal(shape) + 0.5).astype(TYPES[dtype])
    return rng.integers(0 if dtype.startswith("u") else -100, 100, shape).astype(dtype)


@pytest.mark.parametrize("operator, dtype", [(operator, dtype) for operator, (_, types) in OPERATORS.items() for dtype in types.split()])
def test_open_shapes(operator, dtype):
    compiled = reduction(operator, dtype, "n, m")
    for shape in SHAPES:
        check(compiled, operator, dtype, shape)


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("shape", [(130, 511), (65536, 3)])
def test_known_shapes(operator, shape):
    check(reduction(operator, "float", "{}, {}".format(*shape)), operator, "float", shape)


def check(compiled: onnx2halide.Model, operator: str, dtype: str, shape: tuple[int, int]) -> None:
    x = elements(shape, dtype, operator)
    expected = OPERATORS[operator][0](x.astype(np.float64) if dtype in TYPES else x)
    found = compiled.run([x])[0]
    if dtype in TYPES:
        # The error of a sum of many parts: a single running sum of a million elements has ten times that.
        allowed = 4e-7 if dtype == "float" else 1e-14
        assert abs(found - expected) <= allowed * max(1, abs(expected)), shape
    else:
        assert found == expected, shape


@pytest.mark.parametrize("operator", ["ReduceMax", "ReduceMin"])
def test_nan_anywhere(operator):
    compiled = reduction(operator, "float", "n, m")
    for shape in SHAPES:
        for place in (0, -1):
            x = np.ones(shape, np.float32)
            x.reshape(-1)[place] = np.nan
            assert np.isnan(compiled.run([x])[0]), (shape, place)
        assert compiled.run([np.full(shape, -np.inf, np.float32)])[0] == -np.inf


@pytest.mark.parametrize("shape", ["n, m", "130, 511", "1, 3"])
def test_dynamic_quantisation(shape):
    model = onnx.parser.parse_model(
        f'<ir_version: 9, opset_import: ["" : 18]> whole (float[{shape}] x) => (uint8[{shape}] y, float[] s, uint8[] z) {{ y, s, z = DynamicQuantizeLinear(x) }}'
    )
    compiled = onnx2halide.compile(model, threads=3)
    rng = np.random.default_rng(0)
    for size in SHAPES:
        if shape[0].isdigit() and shape != "{}, {}".format(*size):
            continue
        for shift in (-9, 0, 9):
            x = (rng.standard_normal(size) + shift).astype(np.float32)
            least, greatest = (f(x, initial=np.float32(0)) for f in (np.min, np.max))
            scale = (greatest - least) / np.float32(255) if greatest > least else np.float32(1 / 255)
            zero = np.clip(np.rint(-least / scale), 0, 255)
            y, s, z = compiled.run([x])
            assert s == scale and z == zero, (size, shift)
            assert np.array_equal(y, np.clip(np.rint(x / scale) + zero, 0, 255).astype(np.uint8)), (size, shift)
