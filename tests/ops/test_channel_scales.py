"""Convolutions followed by constant scales and shifts of channels, against onnxruntime."""

import numpy as np
import onnx2halide
import pytest
from make_models import FLOAT, model, node
from onnx2halide.references import OnnxRuntime

CHAINS = {
    "scaled and shifted": [node("Mul", "c k", "d"), node("Add", "d shift", "y")],
    "shifted by one number": [node("Sub", "c one", "y")],
    "divided": [node("Add", "c shift", "d"), node("Div", "d k", "e"), node("Mul", "two e", "y")],
    "normalised twice": [node("BatchNormalization", "c s s s s", "d"), node("Mul", "d k", "e"), node("BatchNormalization", "e s s s s", "y")],
    "divided by nothing": [node("Div", "c gaps", "y")],
    "subtracted from": [node("Sub", "k c", "y")],
    "read twice": [node("Mul", "c k", "d"), node("Sub", "d c", "y")],
}


@pytest.mark.parametrize("chain", CHAINS)
@pytest.mark.parametrize("operator", ["Conv", "ConvTranspose"])
@pytest.mark.parametrize("bias", ["", " b"])
def test_chain(operator, bias, chain):
    rng = np.random.default_rng(0)
    constants = {
        "w": rng.normal(size=(6, 6, 3, 3)), "b": rng.normal(size=6), "k": rng.uniform(0.5, 2, size=(1, 6, 1, 1)), "shift": rng.normal(size=(6, 1, 1)),
        "s": rng.uniform(0.5, 2, size=6), "one": np.array(1.0), "gaps": np.array([1, 0, 2, -0.0, 1e-40, 3]).reshape(6, 1, 1), "two": np.array([2.0]),
    }  # fmt: skip
    constants = {name: array.astype(np.float32) for name, array in constants.items()}
    proto = model([node(operator, "x w" + bias, "c"), *CHAINS[chain]], [("x", FLOAT, [2, 6, 7, 5])], [("y", FLOAT, [None] * 4)], constants)
    inputs = {"x": rng.normal(size=(2, 6, 7, 5)).astype(np.float32)}
    expected = OnnxRuntime(proto).run(inputs)["y"]
    np.testing.assert_allclose(onnx2halide.compile(proto).run_by_name(inputs)["y"], expected, rtol=1e-4, atol=1e-5 * np.abs(expected[np.isfinite(expected)]).max())
