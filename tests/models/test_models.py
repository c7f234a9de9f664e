"""Real models of fixed shapes, or with shipped data, which are not part of the project: in $ONNX2HALIDE_MODELS, or in shared/models beside
the checkout. Each folder holds model.onnx and perhaps data; without data, results are compared with onnxruntime's."""

import numpy as np
import onnx2halide
import pytest
from onnx2halide.compare import difference
from onnx2halide.data import DataSet, data_sets, sample
from onnx2halide.references import OnnxRuntime
from paths import real_model

# The largest |a - b| / max |b|, and numbers for open dims.
CASES = {
    "attention-flow": (1e-4, {}),
    "dtln-1": (1e-4, {}),
    "gtcrn-simple": (1e-4, {}),
    "mnist-8": (1e-5, {}),
    "super_resolution_10": (1e-4, {"batch_size": 1}),
    "squeezenet-fp16": (1e-2, {}),
    "ultraface-RFB-320": (1e-4, {}),
    "yolox_nano": (1e-4, {}),
    "fastestdet": (1e-4, {}),
    "micro_kws_m_static_fp32": (1e-4, {}),
    "mujoco-go1-policy": (1e-4, {}),
    # If a float between quantised layers is about halfway between two steps, rounding decides.
    "micro_kws_m_qoperator_softmax": (1e-2, {}),
    "micro_kws_m_static_qoperator": (1e-2, {}),
}

# Models that read pixels from 0 to this number. On noise around 0, unlike on images, yolox_nano is so ill-conditioned that onnxruntime
# itself differs from the same network in float64 by 1.3e-4 of the largest output (onnx2halide: by 1.0e-4).
PIXELS = {"yolox_nano": 255}


def check(name: str, model: onnx2halide.Model, sets: list[DataSet]) -> None:
    tolerance, _ = CASES[name]
    for data in sets:
        expected = data.outputs or OnnxRuntime(real_model(name)).run(data.inputs)
        assert set(expected) == {port.name for port in model.outputs}
        for output, array in model.run_by_name(data.inputs).items():
            found = difference(array, expected[output])
            assert not found.exceeds(tolerance), f"{data.name}, {output}: {found.text()}"


def seeded(name: str, model: onnx2halide.Model, seed: int) -> dict[str, np.ndarray]:
    inputs = sample(model.inputs, seed)
    if name not in PIXELS:
        return inputs
    rng = np.random.default_rng(seed)
    return {port: rng.uniform(0, PIXELS[name], array.shape).astype(array.dtype) for port, array in inputs.items()}


@pytest.mark.parametrize("name", CASES)
def test_results(name):
    _, dims = CASES[name]
    file = real_model(name)
    model = onnx2halide.compile(file, dims, name=name)
    sets = data_sets(file.parent, model.inputs, model.outputs)
    check(name, model, sets or [DataSet(f"seed {seed}", seeded(name, model, seed)) for seed in range(2)])


def test_mnist_data_set_1():
    """Numbers that results on the shipped data must have, so that a mistake in reading the data hides none in running the model."""
    file = real_model("mnist-8")
    model = onnx2halide.compile(file, name="mnist-8")
    sets = {data.name: data for data in data_sets(file.parent, model.inputs, model.outputs)}
    assert sorted(sets) == ["test_data_set_0", "test_data_set_1", "test_data_set_2"]
    scores = model.run(sets["test_data_set_1"].inputs)[0]
    assert scores[0, :3] == pytest.approx([5041.8887, -3568.878, -187.82423], rel=1e-5)
