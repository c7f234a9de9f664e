"""Seeded random weights for models that come without real ones, such as ONNX's light_* models, whose weights are all 0.02: if all weights
are equal, wrong indices give right results."""

import zlib

import numpy as np
import onnx
from onnx import helper, numpy_helper

# Nodes through which a weight reaches the node that decides its role.
_PASSED_THROUGH = {"Reshape", "Unsqueeze", "Squeeze", "Transpose", "Identity"}

# Readers after which a product needs no gain: no activation is between them.
_LINEAR = {"Conv", "ConvTranspose", "Gemm", "MatMul", "Concat", "Split", "Slice", "AveragePool", "GlobalAveragePool", "Softmax"}


def with_random_weights(model: onnx.ModelProto, seed: int = 0) -> onnx.ModelProto:
    """A copy of the model in which every float32 weight (an initialiser, or the result of ConstantOfShape on one) is a random initialiser.
    Weights of products have He's scale, but less where no activation follows, so that activations neither vanish nor explode; scales
    and variances are near 1, and all others are small."""
    result = onnx.ModelProto()
    result.CopyFrom(model)
    graph = result.graph
    shapes = _weight_shapes(graph)
    uses = _uses(graph)
    weights = []
    for name, shape in shapes.items():
        rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
        node, index = _role(name, uses)
        gain = _gain(node, uses, shapes) if node is not None else 1
        weights.append(numpy_helper.from_array(_random(rng, shape, node, index, gain).astype(np.float32), name))
    nodes = [node for node in graph.node if not (node.op_type == "ConstantOfShape" and node.output[0] in shapes)]
    used = {name for node in nodes for name in node.input}
    kept = [tensor for tensor in graph.initializer if tensor.name not in shapes and tensor.name in used]
    constants = {tensor.name for tensor in graph.initializer} | set(shapes)
    inputs = [value for value in graph.input if value.name not in constants]
    for field, items in (("node", nodes), ("initializer", kept + weights), ("input", inputs)):
        graph.ClearField(field)
        getattr(graph, field).extend(items)
    result.ir_version = max(result.ir_version, 4)  # from 4 on, initialisers need not be inputs
    return result


def _weight_shapes(graph: onnx.GraphProto) -> dict[str, tuple[int, ...]]:
    tensors = {tensor.name: tensor for tensor in graph.initializer}
    shapes = {name: tuple(tensor.dims) for name, tensor in tensors.items() if tensor.data_type == onnx.TensorProto.FLOAT}
    for node in graph.node:
        if node.op_type != "ConstantOfShape" or node.input[0] not in tensors:
            continue
        value = next((attribute.t for attribute in node.attribute if attribute.name == "value"), None)
        if value is None or value.data_type == onnx.TensorProto.FLOAT:
            shapes[node.output[0]] = tuple(int(size) for size in numpy_helper.to_array(tensors[node.input[0]]))
    return shapes


def _uses(graph: onnx.GraphProto) -> dict[str, tuple[onnx.NodeProto, int]]:
    """The first node that reads each value, and the index of that input."""
    uses = {}
    for node in graph.node:
        for index, name in enumerate(node.input):
            uses.setdefault(name, (node, index))
    return uses


def _role(name: str, uses) -> tuple[onnx.NodeProto | None, int]:
    node, index = uses.get(name, (None, 0))
    while node is not None and node.op_type in _PASSED_THROUGH:
        node, index = uses.get(node.output[0], (None, 0))
    return node, index


def _random(rng: np.random.Generator, shape: tuple[int, ...], node: onnx.NodeProto | None, index: int, gain: float) -> np.ndarray:
    op = node.op_type if node else ""
    if op in ("Conv", "Gemm", "MatMul") and index == 1 and len(shape) > 1:
        return rng.normal(0, np.sqrt(gain / _fan_in(node, shape)), shape)
    if op == "Mul" or (op == "BatchNormalization" and index in (1, 4)):  # a scale or a variance
        return rng.uniform(0.5, 1.5, shape)
    return rng.normal(0, 0.1, shape)


def _gain(node: onnx.NodeProto, uses, weights) -> float:
    """What a product multiplies the variance of its input by: 2 before an activation, which halves it again, 1 before another linear
    node, and less for a term of a sum of activations, of which there may be many."""
    reader, _ = uses.get(node.output[0], (None, 0))
    while reader is not None and reader.op_type in _PASSED_THROUGH | {"BatchNormalization"}:
        reader, _ = uses.get(reader.output[0], (None, 0))
    if reader is not None and reader.op_type in ("Add", "Sum") and not any(name in weights for name in reader.input):
        return 0.5
    return 1 if reader is None or reader.op_type in _LINEAR else 2


def _fan_in(node: onnx.NodeProto, shape: tuple[int, ...]) -> int:
    if node.op_type == "Conv":
        return int(np.prod(shape[1:]))
    attributes = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
    return shape[-1] if attributes.get("transB") else shape[-2]
