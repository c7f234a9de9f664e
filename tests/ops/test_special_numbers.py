"""NaN, infinities and numbers near the ends of functions' domains, against ONNX's reference: alone, and after a convolution, whose
results LLVM assumes to be finite."""

from dataclasses import dataclass

import ml_dtypes
import numpy as np
import onnx
import onnx2halide
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx2halide.references import OnnxReference, OnnxRuntime

NUMBERS = np.float32(
    [np.nan, -np.nan, np.inf, -np.inf, 0, -0.0, 0.25, -0.25, 9.4, -9.4, 20, -20, 87, -87, 88.5, -88.5, 104, -104, 1e30, -1e30, 3e38, -3e38, 1e-30]
)
# Whole vectors of every machine, and a remainder.
SHAPE = (1, 23, 5, 7)


@dataclass
class Special:
    op: str
    attributes: dict
    bounds: tuple = ()  # operands behind the first
    behind_conv: bool = False

    def __str__(self):
        texts = [f"{key}={value}" for key, value in self.attributes.items()] + [str(bound) for bound in self.bounds]
        return " ".join([self.op, *texts, *(["behind Conv"] if self.behind_conv else [])])

    def model(self) -> onnx.ModelProto:
        channels = SHAPE[1]
        named = [(f"bound{i}", bound) for i, bound in enumerate(self.bounds) if bound is not None]
        constants = [numpy_helper.from_array(np.float32(bound), name) for name, bound in named]
        operands = [f"bound{i}" if bound is not None else "" for i, bound in enumerate(self.bounds)]
        only = helper.make_node(self.op, ["c" if self.behind_conv else "x", *operands], ["y"], **self.attributes)
        nodes = [only]
        if self.behind_conv:
            constants.append(numpy_helper.from_array(np.ones((channels, 1, 1, 1), np.float32), "w"))
            nodes.insert(0, helper.make_node("Conv", ["x", "w"], ["c"], group=channels))
        ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, SHAPE) for name in ("x", "y")]
        graph = helper.make_graph(nodes, "special", ports[:1], ports[1:], constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)], ir_version=10)


FUNCTIONS = (
    [(op, {}) for op in ("Relu", "Sigmoid", "Tanh", "Exp", "Erf", "Softplus", "Softsign", "Mish", "HardSigmoid", "HardSwish", "Abs", "Sign", "Swish")]
    + [(op, {"alpha": 0.3}) for op in ("LeakyRelu", "Elu", "Celu", "ThresholdedRelu")]
    + [("Selu", {}), ("Gelu", {}), ("Gelu", {"approximate": "tanh"})]
)
CASES = [
    Special(op, attributes, bounds, behind_conv)
    for behind_conv in (False, True)
    for op, attributes, bounds in [
        *[(op, attributes, ()) for op, attributes in FUNCTIONS],
        *[("Clip", {}, bounds) for bounds in ((0, 6), (-1, None), (None, 2))],
        *[(op, {}, (bound,)) for op in ("Max", "Min") for bound in (1, np.nan)],
    ]
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_special_numbers(case):
    model, x = case.model(), np.resize(NUMBERS, SHAPE)
    with np.errstate(all="ignore"):
        expected = OnnxReference(model).run({"x": x})["y"]
    found = onnx2halide.compile(model).run_by_name({"x": x})["y"]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def signalling_nan(dtype: type) -> np.ndarray:
    """The NaN whose bits differ from infinity's only in the last one."""
    bits = np.dtype(f"uint{8 * np.dtype(dtype).itemsize}")
    return (np.array([np.inf], dtype).view(bits) + bits.type(1)).view(dtype)


# Kernels for other sizes, and after other arithmetic, are optimised differently.
@pytest.mark.parametrize("before", ["", "Neg", "Mul"])
@pytest.mark.parametrize("shape", ["n", "n,5", "40"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16], ids=lambda dtype: dtype.__name__)
def test_tests_for_nan_and_infinity(dtype, shape, before):
    numbers = np.concatenate([np.array([np.inf, 1, -np.inf, np.nan, -0.0, np.finfo(dtype).max, -7, 200, 0], dtype), signalling_nan(dtype)])
    x = np.tile(numbers, 4).reshape((8, 5) if shape == "n,5" else 40)
    element = {np.float32: "float", np.float64: "double", np.float16: "float16"}[dtype]
    arithmetic = {"": "a = Identity(x)", "Neg": "a = Neg(x)", "Mul": "a = Mul(x, x)"}[before]
    tests = ["IsInf(a)", "IsInf<detect_negative = 0>(a)", "IsInf<detect_positive = 0>(a)", "IsNaN(a)"]
    results = ", ".join(f"bool[{shape}] y{i}" for i in range(len(tests)))
    nodes = " ".join(f"y{i} = {test}" for i, test in enumerate(tests))
    model = onnx.parser.parse_model(
        f'<ir_version: 10, opset_import: ["": 20]> g ({element}[{shape}] x) => ({results}) {{ {arithmetic} {nodes} }}'
    )
    with np.errstate(all="ignore"):
        a = {"": x, "Neg": -x, "Mul": x * x}[before]
    found = onnx2halide.compile(model).run([x])
    expected = [np.isinf(a), np.isposinf(a), np.isneginf(a), np.isnan(a)]
    for test, result, right in zip(tests, found, expected, strict=True):
        np.testing.assert_array_equal(result, right, test)


@pytest.mark.parametrize("shape", ["n", "n,5", "45"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16], ids=lambda dtype: dtype.__name__)
def test_comparisons(dtype, shape):
    """A comparison with NaN is false, so a comparison's negation is not the opposite comparison."""
    numbers = np.array([np.nan, 1, -0.0, 0, np.inf, -np.inf, -7], dtype)
    a, b = (np.resize(grid, 45).reshape((9, 5) if shape == "n,5" else 45) for grid in np.meshgrid(numbers, numbers))
    element = {np.float32: "float", np.float64: "double", np.float16: "float16"}[dtype]
    tests = {"Less": np.less, "LessOrEqual": np.less_equal, "Greater": np.greater, "GreaterOrEqual": np.greater_equal, "Equal": np.equal}
    results = ", ".join(f"bool[{shape}] {test}, bool[{shape}] Not{test}" for test in tests)
    nodes = " ".join(f"{test} = {test}(a, b) Not{test} = Not({test})" for test in tests)
    model = onnx.parser.parse_model(
        f'<ir_version: 10, opset_import: ["": 20]> g ({element}[{shape}] a, {element}[{shape}] b) => ({results}) {{ {nodes} }}'
    )
    found = onnx2halide.compile(model).run_by_name([a, b])
    for name, compare in tests.items():
        np.testing.assert_array_equal(found[name], compare(a, b), name)
        np.testing.assert_array_equal(found[f"Not{name}"], ~compare(a, b), name)


def test_log_of_open_size():
    model = onnx.parser.parse_model('<ir_version: 10, opset_import: ["": 20]> g (float[n] x) => (float[n] y) { y = Log(x) }')
    x = np.resize(np.abs(NUMBERS), 40)
    with np.errstate(all="ignore"):
        expected = OnnxReference(model).run({"x": x})["y"]
    np.testing.assert_allclose(onnx2halide.compile(model).run([x])[0], expected, rtol=1e-6)


@pytest.mark.parametrize("target", ["host", "host-opencl"])
@pytest.mark.parametrize(
    "nodes",
    [
        "y = Div (x, zero)",
        "y = Div (x, negative_zero)",
        "a = Relu (x) y = Div (a, zero)",
        "r = Sqrt (zero) y = Div (x, r)",
        "r = Reciprocal (zero) y = Mul (x, r)",
    ],
)
def test_division_by_a_known_zero(nodes, target):
    zeros = "zero = Constant<value = float {0.0}>() negative_zero = Constant<value = float {-0.0}>()"
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 20]> g (float[n] x) => (float[n] y) {{ {zeros} {nodes} }}')
    with np.errstate(all="ignore"):
        expected = OnnxReference(model).run({"x": NUMBERS})["y"]
    np.testing.assert_array_equal(onnx2halide.compile(model, target=target).run([NUMBERS])[0], expected)


@pytest.mark.parametrize("special", [1, 0, np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("channels", [1, 16])
@pytest.mark.parametrize("p", [1, 2, 3, 5])
@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=lambda dtype: dtype.__name__)
def test_norms_of_windows(dtype, p, channels, special):
    x = np.random.default_rng(0).standard_normal((1, channels, 9)).astype(dtype)
    x[:, :, 3] = special
    sums = (np.abs(np.lib.stride_tricks.sliding_window_view(x.astype(np.float64), 3, 2)) ** p).sum(-1)
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    ports = [helper.make_tensor_value_info("x", kind, x.shape), helper.make_tensor_value_info("y", kind, sums.shape)]
    graph = helper.make_graph([helper.make_node("LpPool", ["x"], ["y"], p=p, kernel_shape=[3])], "norms", ports[:1], ports[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    np.testing.assert_allclose(onnx2halide.compile(model).run([x])[0], sums ** (1 / p), rtol=1e-5 if dtype == np.float32 else 1e-12)


def binary(op: str, dtype: type, size: int | str, **attributes) -> onnx.ModelProto:
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    ports = [helper.make_tensor_value_info(name, kind, [size]) for name in "aby"]
    graph = helper.make_graph([helper.make_node(op, ["a", "b"], ["y"], **attributes)], op, ports[:2], ports[2:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16], ids=lambda dtype: dtype.__name__)
def test_powers(dtype, is_open):
    numbers = [np.nan, np.inf, -np.inf, 0, -0.0, 1, -1, 0.5, -0.5, 2, -2, 3, -3, 2.5, -2.5, 2**15 + 32, np.finfo(dtype).max / 16, np.finfo(dtype).min / 16, 1e-3]
    a, b = (grid.ravel() for grid in np.meshgrid(np.array(numbers, dtype), np.array(numbers, dtype)))
    with np.errstate(all="ignore"):
        expected = np.power(a, b)
    (found,) = onnx2halide.compile(binary("Pow", dtype, "n" if is_open else a.size)).run([a, b])
    np.testing.assert_allclose(found, expected, rtol=1e-3 if dtype is np.float16 else 2e-5)
    np.testing.assert_array_equal(np.signbit(found)[expected == 0], np.signbit(expected)[expected == 0])


@pytest.mark.parametrize("target", ["host", "x86-64-linux"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=lambda dtype: dtype.__name__)
def test_rounding(dtype, target):
    """Without SSE4.1 Halide rounds by way of integers."""
    numbers = [np.nan, np.inf, -np.inf, 0, -0.0, 0.5, -0.5, -0.2, 1.5, 2.5, -2.5, 2**22 + 0.5, 2.0**31, -(2.0**40), 2.0**52 + 0.5, 2.0**63, -1e30]
    x = np.resize(np.array(numbers, dtype), 40)
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    ports = [helper.make_tensor_value_info(name, kind, [40]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Round", ["x"], ["y"])], "rounds", ports[:1], ports[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    (found,) = onnx2halide.compile(model, target=target).run([x])
    np.testing.assert_array_equal(found, np.rint(x))
    np.testing.assert_array_equal(np.signbit(found)[found == 0], np.signbit(x)[found == 0])


@pytest.mark.parametrize("steps", [["float16"], ["float", "float16"], ["double", "float16"]], ids="-".join)
def test_casts_of_bfloat16(steps):
    """Each of which keeps what is no number, also if Halide may merge them."""
    text, value = "", "x"
    for i, step in enumerate(steps):
        text += f"v{i} = Cast <to = {onnx.TensorProto.DataType.Value(step.upper())}> ({value}) "
        value = f"v{i}"
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]> g (bfloat16[40] x) => (float16[40] y) {{ {text} y = Identity ({value}) }}')
    x = np.resize(np.float32([np.nan, -np.nan, np.inf, -np.inf, 1, -2.5, 0, 1e-5]), 40).astype(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(onnx2halide.compile(model).run([x])[0], x.astype(np.float32).astype(np.float16))


@pytest.mark.parametrize("exponent", [0, 0.5, -0.5, 1, -1, 2, 3, -3, 2.5, 17, -17, 1e10])
def test_powers_with_known_exponents(exponent):
    model = binary("Pow", np.float32, 40)
    model.graph.initializer.append(numpy_helper.from_array(np.float32([exponent]), "b"))
    del model.graph.input[1]
    a = np.resize(np.float32([np.nan, np.inf, -np.inf, 0, -0.0, 1, -1, 0.5, -0.5, 2, 7, -7, 3e38, -3e38]), 40)
    expected = OnnxRuntime(model).run({"a": a})["y"]
    np.testing.assert_allclose(onnx2halide.compile(model).run([a])[0], expected, rtol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=lambda dtype: dtype.__name__)
def test_powers_of_subnormal_numbers(dtype):
    a, b = np.resize(np.array([1e-40, 1e-44, -1e-42], dtype), 40), np.resize(np.array([0.25, 1 / 3, 0.5, 0], dtype), 40)
    with np.errstate(all="ignore"):
        expected = np.power(a, b)
    np.testing.assert_allclose(onnx2halide.compile(binary("Pow", dtype, 40)).run([a, b])[0], expected, rtol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16], ids=lambda dtype: dtype.__name__)
def test_remainders(dtype):
    """They are exact, whatever the quotient is."""
    rng, count = np.random.default_rng(0), 5003
    bits = np.dtype(f"uint{8 * np.dtype(dtype).itemsize}")
    a, b = (rng.integers(0, np.iinfo(bits).max, count, dtype=bits).view(dtype) for _ in range(2))
    a[:500], b[:500] = rng.normal(size=500), rng.normal(size=500)
    a[500:999], b[500:999] = rng.integers(-99, 99, 499), rng.integers(-9, 9, 499)
    smallest = np.finfo(dtype).smallest_subnormal
    a[1000:1007] = [np.inf, 1, np.finfo(dtype).max, np.finfo(dtype).max, 77 * smallest, -0.0, -3]
    b[1000:1007] = [1, -np.inf, smallest, 3 * smallest, 10 * smallest, 1, 0]
    with np.errstate(all="ignore"):
        expected = np.fmod(a, b)
    (found,) = onnx2halide.compile(binary("Mod", dtype, count, fmod=1)).run([a, b])
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(np.signbit(found)[expected == 0], np.signbit(expected)[expected == 0])


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_divided_integers(dtype):
    """Also by 0, which gives 0, and with a quotient that wraps around."""
    rng, bounds = np.random.default_rng(0), np.iinfo(dtype)
    edges = np.array([bounds.min, bounds.min + 1, 0, 1, 2, 7, bounds.max - 1, bounds.max], dtype)
    edges = np.concatenate([edges, ~edges])  # with -1 and other negative ones
    random = rng.integers(bounds.min, bounds.max, (2, 1000), dtype, endpoint=True)
    random[1, ::2] = rng.integers(1, 9, 500)
    a, b = np.concatenate([np.reshape(np.meshgrid(edges, edges), (2, -1)), random], axis=1)
    with np.errstate(all="ignore"):
        expected = {"Div": (a - np.fmod(a, b)) // b, "fmod": np.fmod(a, b), "Mod": np.mod(a, b)}
    for op, wanted in expected.items():
        model = binary("Mod", dtype, a.size, fmod=1) if op == "fmod" else binary(op, dtype, a.size)
        np.testing.assert_array_equal(onnx2halide.compile(model).run([a, b])[0], wanted, op)


@pytest.mark.parametrize("wide, narrow", [(np.int64, np.uint8), (np.int32, np.uint16), (np.int16, np.uint8), (np.int64, np.int32), (np.int64, np.uint64)], ids=lambda dtype: dtype.__name__)
@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=lambda dtype: dtype.__name__)
def test_casts_that_wrap_around(dtype, wide, narrow):
    """A float that is in the range of an integer but not in that of the next one."""
    kinds = [helper.np_dtype_to_tensor_dtype(np.dtype(kind)) for kind in (wide, narrow, dtype)]
    nodes = [helper.make_node("Cast", [name], [to], to=kind) for name, to, kind in zip("xab", "aby", kinds, strict=True)]
    ports = [helper.make_tensor_value_info(name, kinds[2], [40]) for name in "xy"]
    model = helper.make_model(helper.make_graph(nodes, "casts", ports[:1], ports[1:]), opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    x = np.resize(np.array([-3, -100.5, 5, 300, 7], dtype) * (2**33 if narrow is np.int32 else 1), 40)
    expected = x.astype(wide).astype(narrow).astype(dtype)
    np.testing.assert_array_equal(onnx2halide.compile(model).run([x])[0], expected)


@pytest.mark.parametrize("op, numpys", [("ReduceMax", np.max), ("ReduceMin", np.min)])
@pytest.mark.parametrize("shape, axis", [((5, 333), 1), ((333, 5), 0), ((3, 7), 1), ((6, 64), 1)], ids=str)
def test_extremes_of_rows_with_special_numbers(op, numpys, shape, axis):
    """A NaN anywhere in a row is its extreme: in a whole vector, or in the remainder."""
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    x.flat[[1, 3, x.size - 1, x.size // 2]] = [np.inf, -np.inf, np.nan, -np.nan]
    constant = numpy_helper.from_array(np.array([axis]), "axis")
    ports = [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape), helper.make_tensor_value_info("y", TensorProto.FLOAT, [shape[1 - axis]])]
    graph = helper.make_graph([helper.make_node(op, ["x", "axis"], ["y"], keepdims=0)], op, ports[:1], ports[1:], [constant])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    np.testing.assert_array_equal(onnx2halide.compile(model).run([x])[0], numpys(x, axis=axis))


@pytest.mark.parametrize("op, numpys", [("ArgMax", np.argmax), ("ArgMin", np.argmin)])
@pytest.mark.parametrize("dims", [[6, 333], ["n", "length"]], ids=str)
def test_places_of_extremes_with_special_numbers(op, numpys, dims):
    """The first NaN of a row is its extreme, in whatever lane of a vector, and the first of equal elements in others."""
    x = np.random.default_rng(0).normal(size=(6, 333)).astype(np.float32)
    for row, places in enumerate([[332], [5, 300], [40, 8, 73], [0, 32], [], []]):
        x[row, places] = np.nan
    x[4, [331, 17, 50]] = [np.inf, np.inf, -np.inf]
    x[5] = np.inf
    ports = [helper.make_tensor_value_info("x", TensorProto.FLOAT, dims), helper.make_tensor_value_info("y", TensorProto.INT64, dims[:1])]
    graph = helper.make_graph([helper.make_node(op, ["x"], ["y"], axis=1, keepdims=0)], op, ports[:1], ports[1:])
    compiled = onnx2halide.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9))
    np.testing.assert_array_equal(compiled.run([x])[0], numpys(x, axis=1))
    np.testing.assert_array_equal(compiled.run([-x])[0], numpys(-x, axis=1))
