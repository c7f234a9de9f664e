"""NonMaxSuppression of many boxes, whose positions determine which of them are compared, against onnxruntime."""

import numpy as np
import onnx
import onnx2halide
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx2halide.references import OnnxRuntime

COUNT = 3000


def corners(rng, span, size, offsets=1):
    """Boxes across `span`, of sides up to `size`; as many groups as offsets lie apart, as those of classes do."""
    first = rng.uniform(0, span, (COUNT, 2)) + rng.integers(0, offsets, (COUNT, 1)) * (span + size)
    return np.concatenate([first, first + rng.uniform(0, size, (COUNT, 2))], axis=1)


LAYOUTS = {
    "apart": lambda rng: corners(rng, 300, 40, offsets=20),
    "small": lambda rng: corners(rng, 1, 0.02),
    "wide": lambda rng: corners(rng, 10, 300),
    "one of them wide": lambda rng: np.concatenate([[[0, 0, 5, 400]], corners(rng, 400, 9)[1:]]),
    "in a column": lambda rng: corners(rng, 300, 20) * [1, 0, 1, 0] + [0, 5, 0, 9],
    "below zero": lambda rng: corners(rng, 300, 30) - 1000,
    "far away": lambda rng: corners(rng, 300, 30) + 1e6,
    "turned round": lambda rng: corners(rng, 300, 30)[:, [2, 3, 0, 1]],
}


@pytest.fixture(scope="module", params=[0, 1], ids=["corners", "centres"])
def model(request):
    node = helper.make_node("NonMaxSuppression", ["boxes", "scores", "most", "iou", "lowest"], ["selected"], center_point_box=request.param)
    ports = [helper.make_tensor_value_info("boxes", TensorProto.FLOAT, [1, COUNT, 4]), helper.make_tensor_value_info("scores", TensorProto.FLOAT, [1, 2, COUNT])]
    limits = {"most": np.int64([COUNT]), "iou": np.float32([0.4]), "lowest": np.float32([0.2])}
    result = helper.make_tensor_value_info("selected", TensorProto.INT64, ["count", 3])
    graph = helper.make_graph([node], "boxes", ports, [result], [numpy_helper.from_array(array, name) for name, array in limits.items()])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    return request.param, onnx2halide.compile(proto), OnnxRuntime(proto)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_boxes(model, layout):
    has_centres, compiled, reference = model
    rng = np.random.default_rng(0)
    boxes = LAYOUTS[layout](rng)
    if has_centres:
        low, high = np.minimum(boxes[:, :2], boxes[:, 2:]), np.maximum(boxes[:, :2], boxes[:, 2:])
        boxes = np.concatenate([(low + high) / 2, high - low], axis=1)
    inputs = {"boxes": boxes[None].astype(np.float32), "scores": rng.permutation(2 * COUNT).reshape(1, 2, COUNT).astype(np.float32) / (2 * COUNT)}
    (got,), expected = compiled.run(inputs), reference.run(inputs)["selected"]
    assert 0 < len(expected) < 2 * COUNT
    np.testing.assert_array_equal(got, expected)
