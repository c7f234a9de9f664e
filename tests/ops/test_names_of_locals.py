"""Names that emitted algorithms declare themselves may also be a model's."""

import numpy as np
import onnx2halide
from make_models import FLOAT, model, node
from onnx import TensorProto
from onnx2halide.references import OnnxRuntime


def test_max_pool_with_indices():
    nodes = [node("Relu", "x", "value"), node("MaxPool", "value", "best index", kernel_shape=[2, 2]), node("Neg", "best", "is_better")]
    pooled = [1, 2, 3, 4]
    pools = model(nodes, [("x", FLOAT, [1, 2, 4, 5])], [("is_better", FLOAT, pooled), ("index", TensorProto.INT64, pooled)])
    x = np.random.default_rng(0).standard_normal((1, 2, 4, 5)).astype(np.float32)
    expected = OnnxRuntime(pools).run({"x": x})
    for name, array in onnx2halide.compile(pools).run_by_name({"x": x}).items():
        assert np.array_equal(array, expected[name])
