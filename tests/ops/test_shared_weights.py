"""Weights that several nodes read: they are packed once, and the results are onnxruntime's."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx2halide.bench import Compiled
from onnx2halide.compiler import Options
from onnx2halide.model import Model
from onnx2halide.references import OnnxRuntime


def sharing(op_type: str, weights: list[int], inputs: list[list], **attributes) -> onnx.ModelProto:
    """A node for each input, which read the same weights: the first as they are, the others through an Identity each."""
    array = np.random.default_rng(0).normal(0, 0.05, weights).astype(np.float32)
    nodes = []
    for i in range(len(inputs)):
        operand = f"w{i}" if i > 0 else "w"
        if i > 0:
            nodes.append(helper.make_node("Identity", ["w"], [operand]))
        nodes.append(helper.make_node(op_type, [f"x{i}", operand], [f"y{i}"], name=f"node{i}", **attributes))
    tensors = [helper.make_tensor_value_info(f"x{i}", TensorProto.FLOAT, shape) for i, shape in enumerate(inputs)]
    results = [helper.make_tensor_value_info(f"y{i}", TensorProto.FLOAT, None) for i in range(len(inputs))]
    graph = helper.make_graph(nodes, "sharing", tensors, results, [numpy_helper.from_array(array, "w")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


IMAGES = [[1, 64, 40, 36], [1, 64, 13, 11], [2, 64, 3, 2]]
SEQUENCES = [[40, 256], [3, 17, 256], [1, 256]]


@pytest.mark.parametrize(
    "proto, extents",
    [
        (sharing("Conv", [64, 64, 3, 3], IMAGES, pads=[1] * 4), {}),
        (sharing("Conv", [64, 64, 3, 3], [[1, 64, f"height{i}", "width"] for i in range(3)], pads=[1] * 4), {"height0": 40, "height1": 9, "height2": 1, "width": 33}),
        (sharing("ConvTranspose", [64, 64, 4, 4], IMAGES, pads=[1] * 4, strides=[2, 2]), {}),
        (sharing("MatMul", [256, 96], SEQUENCES), {}),
        (sharing("Gemm", [96, 256], [SEQUENCES[0], SEQUENCES[2]], transB=1), {}),
    ],
    ids=["convolutions", "open-images", "transposed", "products", "gemm"],
)
def test_shared_weights(tmp_path, proto, extents):
    onnx.save(proto, tmp_path / "sharing.onnx")
    compiled = Compiled(tmp_path / "sharing.onnx", Options())
    rng = np.random.default_rng(1)
    shapes = {value.name: [extents.get(dim.dim_param, dim.dim_value) for dim in value.type.tensor_type.shape.dim] for value in proto.graph.input}
    values = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    expected = OnnxRuntime(proto).run(values).values()
    for got, reference in zip(Model(compiled.library, 1).run(values), expected, strict=True):
        assert np.abs(got - reference).max() <= 2e-5 * np.abs(reference).max()
    alone = onnx.ModelProto()
    alone.CopyFrom(proto)
    del alone.graph.node[1:], alone.graph.input[1:], alone.graph.output[1:]
    onnx.save(alone, tmp_path / "alone.onnx")
    # Convolutions have at most two forms: Winograd's, and a direct one for those that are too small.
    most = 2 if "Conv" in proto.graph.node[0].op_type else 1.1
    assert compiled.manifest["weights"]["bytes"] < most * Compiled(tmp_path / "alone.onnx", Options()).manifest["weights"]["bytes"]
