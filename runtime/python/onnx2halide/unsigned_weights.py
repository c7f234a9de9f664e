"""Makes the signed weights of integer products unsigned, with the same results, so that onnxruntime is exact everywhere. It sums products of
uint8 by int8 in 16 bits on processors without VNNI, where they saturate."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

# By operator: the index of its activations (None if it quantises them to uint8 itself), and those of each weight and its zero point.
_WEIGHTS = {
    "MatMulInteger": (0, [(1, 3)]),
    "ConvInteger": (0, [(1, 3)]),
    "QLinearMatMul": (0, [(3, 5)]),
    "QLinearConv": (0, [(3, 5)]),
    "MatMulIntegerToFloat": (0, [(1, 5)]),
    "QGemm": (0, [(3, 5)]),
    "QAttention": (0, [(1, 7)]),
    "DynamicQuantizeMatMul": (None, [(1, 3)]),
    "DynamicQuantizeLSTM": (None, [(1, 9), (2, 11)]),
}


def has_integer_products(model: onnx.ModelProto) -> bool:
    return any(node.op_type in _WEIGHTS for node in model.graph.node)


def with_unsigned_weights(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy of the model in which the weights of products of uint8 by int8 and their zero points are raised by 128. Products in functions
    and subgraphs are unchanged."""
    result = onnx.ModelProto()
    result.CopyFrom(model)
    graph, types = result.graph, _element_types(result)
    constants = {tensor.name: tensor for tensor in graph.initializer}
    nodes: list[onnx.NodeProto] = []
    made: dict[str, str] = {}

    def unsigned(name: str) -> str:
        """The name of the operand raised by 128; an omitted operand is 0."""
        if name in made:
            return made[name]
        made[name] = f"{name}_unsigned"
        if name and name not in constants:
            steps = [name, f"{name}_wide", f"{name}_raised", made[name]]
            nodes.append(helper.make_node("Cast", [steps[0]], [steps[1]], to=TensorProto.INT32))
            graph.initializer.append(numpy_helper.from_array(np.int32(128), f"{name}_128"))
            nodes.append(helper.make_node("Add", [steps[1], f"{name}_128"], [steps[2]]))
            nodes.append(helper.make_node("Cast", [steps[2]], [steps[3]], to=TensorProto.UINT8))
        else:
            signed = numpy_helper.to_array(constants[name]) if name else np.int8(0)
            graph.initializer.append(numpy_helper.from_array((signed.astype(np.int16) + 128).astype(np.uint8), made[name]))
        return made[name]

    for node in graph.node:
        activations, weights = _WEIGHTS.get(node.op_type, (None, []))
        if activations is None or types.get(node.input[activations]) == TensorProto.UINT8:
            for weight, zero_point in weights:
                if types.get(node.input[weight]) == TensorProto.INT8:
                    node.input.extend([""] * (zero_point + 1 - len(node.input)))
                    node.input[weight], node.input[zero_point] = unsigned(node.input[weight]), unsigned(node.input[zero_point])
        nodes.append(node)
    nodes = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del graph.node[:]
    graph.node.extend(nodes)
    return result


def _element_types(model: onnx.ModelProto) -> dict[str, int]:
    graph = onnx.shape_inference.infer_shapes(model).graph
    declared = [*graph.input, *graph.value_info, *graph.output]
    return {value.name: value.type.tensor_type.elem_type for value in declared} | {tensor.name: tensor.data_type for tensor in graph.initializer}
