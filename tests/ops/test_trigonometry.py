"""Sin, Cos and Tan against numpy in double: small angles, those of long sequences, and what is no angle."""

import numpy as np
import onnx
import onnx2halide
import pytest
from onnx import TensorProto, helper

FUNCTIONS = {"Sin": np.sin, "Cos": np.cos, "Tan": np.tan}
COUNT = 4099  # fills no whole vectors


@pytest.fixture(scope="module", params=FUNCTIONS)
def function(request):
    """The compiled operator and numpy's function."""
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [COUNT]) for name in "xy"]
    graph = helper.make_graph([helper.make_node(request.param, ["x"], ["y"])], request.param, ports[:1], ports[1:])
    return onnx2halide.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)), FUNCTIONS[request.param]


@pytest.mark.parametrize("largest", [0.5, 10, 1e4, 1e8])
def test_units_in_the_last_place(function, largest):
    model, expected = function
    x = (np.random.default_rng(0).uniform(-largest, largest, COUNT)).astype(np.float32)
    (got,) = model.run([x])
    exact = expected(x.astype(np.float64))
    units = np.abs(got - exact) / np.spacing(np.abs(exact).astype(np.float32))
    assert units.max() < (4 if expected is np.tan else 2)


def test_no_angles(function):
    model, expected = function
    x = np.zeros(COUNT, np.float32)
    x[:6] = [np.nan, np.inf, -np.inf, 1e30, -3e38, 1e-42]
    (got,) = model.run([x])
    assert np.isnan(got[:3]).all() and np.isfinite(got[3:]).all()
    assert (got[6:] == expected(0)).all()
    if expected is not np.tan:
        assert np.abs(got[3:]).max() <= 1
