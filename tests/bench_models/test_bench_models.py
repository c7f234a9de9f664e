"""The networks of scripts/bench_models: they have the published sizes, and random weights do not make activations vanish."""

import sys

import numpy as np
import onnx
import pytest

from onnx2halide.references import OnnxRuntime
from paths import ROOT

sys.path.insert(0, str(ROOT / "scripts"))
from bench_models import MODELS  # noqa: E402

# Published numbers of parameters. If BatchNormalization is folded, each channel keeps one of two numbers. For ArcFace and
# FER+ the sizes of the zoo's files are published, 248.9 and 33.4 MiB: 4 bytes for each number, plus the nodes.
PARAMETERS = {
    "resnet18": 11_689_512 - 4_800,
    "mobilenetv2": 3_504_872 - 17_056,
    "vgg16": 138_357_544,
    "tinyyolov2": 15_867_885,
    "arcface_resnet100": 65_225_792,
    "emotion_ferplus": 8_757_704,
    "bert_base_qa": 108_893_186,
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_parameters(name):
    assert MODELS[name]().parameters == PARAMETERS[name]


def test_light_models_are_among_them():
    assert len([name for name in MODELS if name.startswith("light_")]) == 9


def test_weights_depend_on_the_seed_alone():
    network = MODELS["mobilenetv2"]()
    assert network.model(1) == network.model(1)
    assert network.model(1) != network.model(2)


@pytest.mark.parametrize("name", ["emotion_ferplus", "mobilenetv2"])
def test_runs(name, tmp_path):
    network = MODELS[name]()
    model = network.model()
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, tmp_path / "model.onnx")
    reference = OnnxRuntime(tmp_path / "model.onnx")
    first, second = (reference.run(network.inputs(seed)) for seed in (0, 1))
    for output in first:
        assert np.isfinite(first[output]).all()
        assert 0.01 < first[output].std() < 100
        assert not np.allclose(first[output], second[output], rtol=0.01)
