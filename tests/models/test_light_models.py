"""The nine light_* models of ONNX's suite with seeded random weights: as shipped, with equal weights, they prove little."""


import onnx
import pytest

import onnx2halide
from onnx2halide.compare import difference
from onnx2halide.data import sample
from onnx2halide.random_weights import with_random_weights
from onnx2halide.references import OnnxRuntime
from paths import LIGHT

TOLERANCE = 1e-4


def with_scores(model: onnx.ModelProto) -> onnx.ModelProto:
    """Makes the input of the last Softmax an output, too, since random weights may drive its results to 0 and 1."""
    scores = {node.input[0] for node in model.graph.node if node.op_type == "Softmax"}
    typed = onnx.shape_inference.infer_shapes(model).graph.value_info
    model.graph.output.extend(value for value in typed if value.name in scores)
    return model


@pytest.mark.parametrize("name", [file.stem for file in sorted(LIGHT.glob("*.onnx"))])
def test_random_weights(name, tmp_path):
    file = tmp_path / f"{name}.onnx"
    onnx.save(with_scores(with_random_weights(onnx.load(LIGHT / file.name))), file)
    # These libraries are large and needed once, so they do not go to the user's cache.
    model = onnx2halide.compile(file, cache=tmp_path / "cache", threads=0)
    inputs = sample(model.inputs)
    expected = OnnxRuntime(file).run(inputs)
    for output, array in model.run_by_name(inputs).items():
        found = difference(array, expected[output])
        assert not found.exceeds(TOLERANCE), f"{output}: {found.text()}"
