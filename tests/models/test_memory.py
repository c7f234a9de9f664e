"""Compares the arenas of real networks with a bound that is computed from the ONNX graph alone."""

import math
import re
import subprocess

import onnx
import pytest
from onnx2halide.random_weights import with_random_weights
from paths import COMPILER, LIGHT


# Nodes that may write their result over an input that dies.
IN_PLACE = {"Add", "BatchNormalization", "Dropout", "Flatten", "Mul", "Relu", "Reshape", "Sum", "Unsqueeze"}


def largest_live_sum(model: onnx.ModelProto) -> int:
    """The maximum over all nodes of the bytes of live tensors, if nodes run in the model's order and in place when they can, and the
    model's inputs and outputs are in the caller's memory."""
    graph = onnx.shape_inference.infer_shapes(model, strict_mode=True).graph
    callers = {value.name for value in [*graph.input, *graph.output]}
    sizes = {
        value.name: 4 * math.prod(dim.dim_value for dim in value.type.tensor_type.shape.dim)
        for value in graph.value_info
        if value.name not in callers and value.type.tensor_type.elem_type == onnx.TensorProto.FLOAT
    }
    last_use = {name: index for index, node in enumerate(graph.node) for name in node.input}
    live, largest = {}, 0
    for index, node in enumerate(graph.node):
        if node.op_type == "Constant":
            continue
        dying = [name for name in set(node.input) if name in live and last_use[name] == index]
        made = {name: sizes[name] for name in node.output if name in sizes and name in last_use}
        if node.op_type in IN_PLACE and made:
            replaced = next((name for name in dying if live[name] == sizes[node.output[0]]), None)
            live.pop(replaced, None)
        live |= made
        largest = max(largest, sum(live.values()))
        for name in dying:
            live.pop(name, None)
    return largest


@pytest.mark.parametrize("name", ["light_resnet50", "light_squeezenet", "light_densenet121", "light_inception_v2", "light_shufflenet"])
def test_arena(name, tmp_path):
    model = with_random_weights(onnx.load(LIGHT / f"{name}.onnx"))
    onnx.save(model, tmp_path / f"{name}.onnx")
    subprocess.run([COMPILER, tmp_path / f"{name}.onnx", "-o", tmp_path], check=True)
    arena = int(re.search(r"_ARENA_SIZE (\d+)", (tmp_path / f"{name}.h").read_text())[1])
    assert 0 < arena <= 1.3 * largest_live_sum(model)
