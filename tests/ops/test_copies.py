"""Copies that read through the copies before them, in one kernel, against onnxruntime."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import onnx2halide
from onnx2halide.clocks import StepClock
from onnx2halide.compiler import Options
from onnx2halide.bench import Compiled
from onnx2halide.model import Model

PADS = {"pads": [0, 0, 0, 1, 0, 0, 1, 2], "uneven": [1, 0, 2, 0, 0, 1, 0, 1], "cut": [0, 0, 1, -1, 0, 0, -1, 1]}
ALL = 2**31 - 1


def slice_of(data: str, name: str, starts, ends, axes, steps):
    """A Slice, and its operands as initialisers."""
    operands = {f"{name}_{role}": row for role, row in (("starts", starts), ("ends", ends), ("axes", axes), ("steps", steps))}
    tensors = [numpy_helper.from_array(np.array(row, np.int64), key) for key, row in operands.items()]
    return helper.make_node("Slice", [data, *operands], [name]), tensors


def image(before, after, channels=12, dims=(9, 10), batch=1) -> onnx.ModelProto:
    """`before` and `after` a pad: lists of nodes or (node, initialisers); between 1x1 convolutions, so that channels are innermost."""
    weights = np.random.default_rng(0).normal(size=(channels, channels, 1, 1)).astype(np.float32)
    tensors = [numpy_helper.from_array(weights, "w")]
    nodes = [helper.make_node("Conv", ["x", "w"], ["a"])]
    for step in (*before, *after):
        node, own = step if isinstance(step, tuple) else (step, [])
        nodes.append(node)
        tensors += own
    nodes.append(helper.make_node("Relu", [nodes[-1].output[0]], ["y"]))
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, channels, *dims])
    graph = helper.make_graph(nodes, "copies", [x], [helper.make_empty_tensor_value_info("y")], tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return onnx.shape_inference.infer_shapes(model)


def pad(name="pads", **attributes):
    return helper.make_node("Pad", ["a", name], ["p"], **attributes), [numpy_helper.from_array(np.array(PADS[name], np.int64), name)]


def pool(data: str, op="MaxPool", **attributes):
    return helper.make_node(op, [data], ["q"], kernel_shape=[1, 1], strides=[2, 2], **attributes)


ROWS = slice_of("p", "s", [1], [ALL], [2], [2])
COLUMNS = slice_of("p", "s", [1, 1], [ALL, ALL], [2, 3], [1, 1])
BACKWARDS = slice_of("p", "s", [-1, -2], [-ALL, -ALL], [2, 3], [-1, -3])
CHANNELS = slice_of("p", "s", [1, 2], [ALL, 11], [3, 1], [3, 1])
AGAIN = slice_of("s", "t", [1, 0], [-1, ALL], [3, 2], [2, 1])

CASES = {
    "rows": ([pad()], [ROWS]),
    "sampled": ([pad()], [COLUMNS, pool("s")]),  # as in a NASNet
    "averages": ([pad()], [COLUMNS, pool("s", "AveragePool")]),
    "reflected": ([pad(mode="reflect")], [COLUMNS, AGAIN]),
    "edge": ([pad("uneven", mode="edge")], [BACKWARDS]),
    "cut": ([pad("cut")], [BACKWARDS, AGAIN]),
    "channels": ([pad("uneven")], [CHANNELS, AGAIN]),
}


def kernels_between(compiled: Compiled, x: np.ndarray) -> list[str]:
    """Those of a run besides the convolution and what changes the layout of the input and the output."""
    clock = StepClock()
    clock.run(Model(compiled.library, 1, trace=clock.trace), {"x": x})
    return [kernel for kernel in clock.kernels if kernel != "a" and "Relayout" not in kernel]


def check(proto: onnx.ModelProto, folder, shapes, **options) -> Compiled:
    onnx.save(proto, folder / "copies.onnx")
    compiled = Compiled(folder / "copies.onnx", Options(**options))
    peer = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    library = Model(compiled.library, 2)
    for shape in shapes:
        x = np.random.default_rng(1).normal(size=shape).astype(np.float32)
        np.testing.assert_allclose(library.run([x])[0], peer.run(None, {"x": x})[0], rtol=1e-5, atol=1e-5)
    return compiled


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_one_kernel(tmp_path, case):
    compiled = check(image(*case), tmp_path, [(1, 12, 9, 10)])
    assert len(kernels_between(compiled, np.zeros((1, 12, 9, 10), np.float32))) == 1


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_open_sizes(tmp_path, case):
    proto = image(*case, dims=("height", "width"), batch="n")
    check(proto, tmp_path, [(1, 12, 9, 10), (3, 12, 5, 6), (2, 12, 40, 7)])


def test_part_of_a_part(tmp_path):
    """Both are read in place."""
    half, quarter = (slice_of(data, name, [0], [count], [1], [1]) for data, name, count in (("a", "s", 32), ("s", "t", 16)))
    weights = np.random.default_rng(0).normal(size=(12, 16, 1, 1)).astype(np.float32)
    proto = image([half], [quarter, (helper.make_node("Conv", ["t", "v"], ["c"]), [numpy_helper.from_array(weights, "v")])], channels=64)
    compiled = check(proto, tmp_path, [(1, 64, 9, 10)])
    assert kernels_between(compiled, np.zeros((1, 64, 9, 10), np.float32)) == ["a_PackedConv", "c_y"]


def test_opencl(tmp_path):
    proto = image(*CASES["sampled"])
    check(proto, tmp_path, [(1, 12, 9, 10)], target="host-opencl")
