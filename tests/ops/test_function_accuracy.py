"""Functions that approximate in float32, against numpy in double, in units in the last place."""

import math

import numpy as np
import onnx
import onnx2halide
import pytest
from onnx import TensorProto, helper

ANGLES = {"Sin": np.sin, "Cos": np.cos, "Tan": np.tan}
COUNT = 4099  # not whole vectors


def compiled(operator: str, **attributes) -> onnx2halide.Model:
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [COUNT]) for name in "xy"]
    graph = helper.make_graph([helper.make_node(operator, ["x"], ["y"], **attributes)], operator, ports[:1], ports[1:])
    return onnx2halide.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9))


def most_units(model: onnx2halide.Model, function, lowest: float, highest: float) -> float:
    """The largest error in units in the last place, for evenly spread numbers."""
    x = np.random.default_rng(0).uniform(lowest, highest, COUNT).astype(np.float32)
    (got,) = model.run([x])
    exact = function(x.astype(np.float64))
    return (np.abs(got - exact) / np.spacing(np.abs(exact).astype(np.float32))).max()


@pytest.fixture(scope="module", params=ANGLES)
def angle(request):
    """The compiled operator and numpy's function."""
    return compiled(request.param), ANGLES[request.param]


@pytest.mark.parametrize("largest", [0.5, 10, 1e4, 1e8])
def test_units_of_angles(angle, largest):
    model, expected = angle
    assert most_units(model, expected, -largest, largest) < (4 if expected is np.tan else 2)


@pytest.mark.parametrize("lowest, highest", [(-1, 1), (-87, 87)])
def test_units_of_sigmoids(lowest, highest):
    assert most_units(compiled("Sigmoid"), lambda x: 1 / (1 + np.exp(-x)), lowest, highest) < 6


def test_units_of_powers_of_e():
    assert most_units(compiled("Exp"), np.exp, -86.9, 88.7) < 6


@pytest.mark.parametrize("lowest, highest", [(1e-44, 1e-40), (1e-41, 2e-38), (1e-38, 0.1), (2, 3e38)])
def test_units_of_logarithms(lowest, highest):
    """Including those of subnormal numbers."""
    assert most_units(compiled("Log"), np.log, lowest, highest) < 2


def test_powers_of_e_of_extremes():
    x = np.zeros(COUNT, np.float32)
    x[:8] = [np.nan, np.inf, 3e38, 88.73, -np.inf, -3e38, -104, -88]
    (got,) = compiled("Exp").run([x])
    assert np.isnan(got[0]) and np.isinf(got[1:4]).all() and (got[8:] == 1).all()
    assert (0 <= got[4:8]).all() and got[4:8].max() < 1e-37


def test_sigmoids_of_extremes():
    x = np.zeros(COUNT, np.float32)
    x[:6] = [np.nan, np.inf, -np.inf, 3e38, -3e38, -100]
    (got,) = compiled("Sigmoid").run([x])
    assert np.isnan(got[0]) and (got[[1, 3]] == 1).all() and (got[6:] == 0.5).all()
    assert (0 <= got[[2, 4, 5]]).all() and got[[2, 4, 5]].max() < 1e-37


def test_no_angles(angle):
    model, expected = angle
    x = np.zeros(COUNT, np.float32)
    x[:6] = [np.nan, np.inf, -np.inf, 1e30, -3e38, 1e-42]
    (got,) = model.run([x])
    assert np.isnan(got[:3]).all() and np.isfinite(got[3:]).all()
    assert (got[6:] == expected(0)).all()
    if expected is not np.tan:
        assert np.abs(got[3:]).max() <= 1


INVERSES_AND_HYPERBOLICS = [
    # operator, numpy's function, ranges, most units
    ("Atan", np.arctan, [(-1, 1), (-50, 50), (1e-6, 1e-3), (1e6, 1e30)], 4),
    ("Asin", np.arcsin, [(-1, 1), (-1e-3, 1e-3), (0.999, 1)], 4),
    ("Acos", np.arccos, [(-1, 0.5), (0.5, 0.999), (0.999, 1)], 4),
    ("Sinh", np.sinh, [(-1, 1), (1, 20), (-89.4, -20), (1e-6, 1e-3)], 8),
    ("Cosh", np.cosh, [(-1, 1), (1, 20), (-89.4, -20)], 8),
    ("Asinh", np.arcsinh, [(-1, 1), (-100, 100), (1e3, 1e5), (1e20, 3e38), (1e-6, 1e-3)], 5),
    ("Acosh", np.arccosh, [(1, 2), (1, 1.001), (1e3, 1e5), (1e20, 3e38)], 4),
    ("Atanh", np.arctanh, [(-0.5, 0.5), (-0.999, 0.999), (0.9999, 0.99999), (1e-6, 1e-3)], 4),
]


@pytest.mark.parametrize("operator, function, ranges, units", INVERSES_AND_HYPERBOLICS)
def test_units_of_inverses_and_hyperbolics(operator, function, ranges, units):
    model = compiled(operator)
    for lowest, highest in ranges:
        assert most_units(model, function, lowest, highest) < units, (lowest, highest)


@pytest.mark.parametrize("operator, function, ranges, units", INVERSES_AND_HYPERBOLICS)
def test_extremes_of_inverses_and_hyperbolics(operator, function, ranges, units):
    x = np.ones(COUNT, np.float32)
    x[:13] = [np.nan, np.inf, -np.inf, 3e38, -3e38, 1, -1, 1.5, -1.5, 0.0, -0.0, 1e-42, 90]
    (got,) = compiled(operator).run([x])
    with np.errstate(all="ignore"):
        expected = function(x)
    np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-40)
    assert (np.signbit(got[9:11]) == np.signbit(expected[9:11])).all()


def normal_share(x: float) -> float:
    return math.erfc(-x / math.sqrt(2)) / 2


def tanh_share(x: float) -> float:
    return (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2


@pytest.mark.parametrize("approximate, share", [("none", normal_share), ("tanh", tanh_share)])
def test_gelu(approximate, share):
    """The factor of x, including where it is nearly 0 or 1."""
    model = compiled("Gelu", approximate=approximate)
    x = np.random.default_rng(0).uniform(-8, 8, COUNT).astype(np.float32)
    (got,) = model.run([x])
    assert np.abs(got / x.astype(np.float64) - [share(number) for number in x.tolist()]).max() < 5e-7
    x[:6] = [np.nan, np.inf, 3e38, -3e38, -6, 0]
    (got,) = model.run([x])
    assert np.isnan(got[0]) and np.isinf(got[1]) and np.isclose(got[2], 3e38) and (got[3:6] == 0).all()


def compiled_response(channels: int, **attributes) -> onnx2halide.Model:
    """LRN of rows of pixels, each element by itself."""
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, channels, 9, 11]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("LRN", ["x"], ["y"], size=1, alpha=1.0, **attributes)], "response", ports[:1], ports[1:])
    return onnx2halide.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9))


@pytest.mark.parametrize("channels", [1, 19, 300])
@pytest.mark.parametrize("largest", [1, 1e3, 1e15])
def test_units_of_local_responses(channels, largest):
    x = np.random.default_rng(0).uniform(-largest, largest, (1, channels, 9, 11)).astype(np.float32)
    (got,) = compiled_response(channels, bias=0.5).run([x])
    exact = x.astype(np.float64) * (0.5 + x.astype(np.float64) ** 2) ** -0.75
    assert (np.abs(got - exact) / np.spacing(np.abs(exact).astype(np.float32))).max() < 6


def test_local_responses_of_extremes():
    x = np.ones((1, 16, 9, 11), np.float32)
    x[0, :5, 0, 0] = [np.nan, 1e-30, 0, 1e18, 1e25]
    (got,) = compiled_response(16).run([x])
    assert np.isnan(got[0, 0, 0, 0])
    assert np.allclose(got[0, 1:4, 0, 0], [1e-30, 0, 1e-9], rtol=1e-6, atol=0)
    assert np.isfinite(got[0, 1:]).all() and np.allclose(got[0, 5:], 2**-0.75)
