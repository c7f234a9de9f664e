"""Networks with tensors that alias parts of other tensors, so that they are joined or split without a copy, against onnxruntime."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import onnx2halide


class Network:
    """3x3 and 1x1 convolutions of images of extents `spatial`, and their concatenation."""

    def __init__(self, channels: int, spatial: tuple, batch=1):
        self.rng = np.random.default_rng(0)
        self.nodes, self.weights, self.outputs = [], [], []
        self.input = helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, channels, *spatial])

    def node(self, op: str, name: str, *inputs: str, **attributes) -> str:
        self.nodes.append(helper.make_node(op, inputs, [name], **attributes))
        return name

    def conv(self, name: str, x: str, inputs: int, outputs: int, kernel=1) -> str:
        weights = self.rng.normal(0, (inputs * kernel**2) ** -0.5, (outputs, inputs, kernel, kernel)).astype(np.float32)
        self.weights.append(numpy_helper.from_array(weights, f"{name}_w"))
        return self.node("Relu", name, self.node("Conv", f"{name}_sum", x, f"{name}_w", pads=[kernel // 2] * 4))

    def join(self, name: str, *inputs: str, axis=1) -> str:
        return self.node("Concat", name, *inputs, axis=axis)

    def model(self, *outputs: str) -> onnx.ModelProto:
        values = [helper.make_empty_tensor_value_info(name) for name in outputs]
        graph = helper.make_graph(self.nodes, "joined", [self.input], values, self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        return onnx.shape_inference.infer_shapes(model)


def branches(spatial=(13, 13), batch=1) -> Network:
    """An image, and three results of it."""
    net = Network(16, spatial, batch)
    net.conv("a", "x", 16, 32, kernel=3)
    net.conv("b", "x", 16, 24)
    net.node("MaxPool", "c", "x", kernel_shape=[3, 3], pads=[1] * 4, strides=[1, 1])
    return net


def joined(**options) -> onnx.ModelProto:
    net = branches(**options)
    net.join("abc", "a", "b", "c")
    return net.model(net.conv("y", "abc", 72, 16, kernel=3))


def nested() -> onnx.ModelProto:
    """As in a DenseNet, whose layers read the concatenation of all previous ones."""
    net = branches()
    net.join("ab", "a", "b")
    net.conv("d", "ab", 56, 32, kernel=3)
    net.join("abd", "ab", "d")
    net.conv("e", "abd", 88, 16)
    net.join("all", "abd", "e", "c")
    return net.model(net.conv("y", "all", 120, 16), net.conv("z", "ab", 56, 8))


def partly() -> onnx.ModelProto:
    """The image itself is copied, and so is a tensor that is also an output."""
    net = branches()
    net.join("all", "x", "a", "b", "a")
    return net.model(net.conv("y", "all", 104, 16), net.node("Sigmoid", "s", "b"), "c")


def result_is_output() -> onnx.ModelProto:
    net = branches()
    net.join("abc", "a", "b", "c")
    return net.model("abc", net.node("Sigmoid", "s", "b"))


def dense_block(layers=26) -> onnx.ModelProto:
    """As exported from a DenseNet, whose layers join the results of all previous ones anew: the last ones too many for one kernel."""
    net = Network(8, (6, 9))
    maps = [net.conv("r0", "x", 8, 16)]
    for i in range(1, layers):
        whole = net.join(f"all{i}", *maps) if i > 1 else maps[0]
        maps.append(net.conv(f"r{i}", whole, 16 + 4 * (i - 1), 4))
    return net.model(net.conv("y", net.join("all", *maps), 16 + 4 * (layers - 1), 8))


def heads() -> onnx.ModelProto:
    """Rows of boxes from images of several sizes, as detectors end."""
    net = branches()
    net.node("AveragePool", "small", "a", kernel_shape=[2, 2], strides=[2, 2])
    rows = []
    for name, channels in (("a", 32), ("small", 32)):
        net.conv(f"{name}_boxes", name, channels, 20)
        net.node("Transpose", f"{name}_last", f"{name}_boxes", perm=[0, 2, 3, 1])
        net.weights.append(numpy_helper.from_array(np.array([1, -1, 20], np.int64), f"{name}_shape"))
        rows.append(net.node("Reshape", f"{name}_rows", f"{name}_last", f"{name}_shape"))
    return net.model(net.node("Sigmoid", "y", net.join("rows", *rows)))


def split(spatial=(13, 13), batch=1) -> onnx.ModelProto:
    """Halves of a result's channels, of which one is used unchanged, and halves of the caller's image."""
    net = Network(32, spatial, batch)
    net.weights.append(numpy_helper.from_array(np.array([16, 16], np.int64), "halves"))
    net.conv("a", "x", 32, 32, kernel=3)
    for whole in ("x", "a"):
        net.nodes.append(helper.make_node("Split", [whole, "halves"], [f"{whole}1", f"{whole}2"], axis=1))
    net.conv("b", "a1", 16, 16, kernel=3)
    net.node("Sigmoid", "c", "x2")
    net.join("all", "a2", "b", "c", "a1")
    return net.model(net.conv("y", "all", 64, 16), net.node("Neg", "z", "a"))


def slices() -> onnx.ModelProto:
    """Rows that move up, as in a network of shifted windows, and a plane of several."""
    net = Network(16, (12, 20))
    for name, number in (("zero", 0), ("three", 3), ("end", 1000), ("rows", 2)):
        net.weights.append(numpy_helper.from_array(np.array([number], np.int64), name))
    net.weights.append(numpy_helper.from_array(np.array(5, np.int64), "five"))
    net.node("Relu", "a", "x")
    net.node("Slice", "top", "a", "zero", "three", "rows")
    net.node("Slice", "rest", "a", "three", "end", "rows")
    net.node("Gather", "plane", "a", "five", axis=1)
    return net.model(
        net.node("Exp", "moved", net.join("both", "rest", "top", axis=2)), net.node("Sigmoid", "y", "plane"), net.node("Tanh", "z", "plane")
    )


def turns(steps=3, batch=2) -> onnx.ModelProto:
    """A Scan whose iterations join and split tensors for themselves, for the next iteration and for the result."""
    body = Network(0, ())
    body.weights.append(numpy_helper.from_array(body.rng.normal(0, 0.2, (32, 64)).astype(np.float32), "w"))
    body.join("both", body.node("Neg", "shown", "step"), body.node("Sigmoid", "known", "state"))
    body.nodes.append(helper.make_node("Split", [body.node("MatMul", "sums", "both", "w")], ["a", "b", "c", "d"], axis=1))
    body.node("Tanh", "next", body.node("Add", "kept", "a", "b"))
    body.join("result", body.node("Exp", "grown", "c"), "d")
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [batch, 16]) for name in ("state", "step")]
    results = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [batch, width]) for name, width in (("next", 16), ("result", 32))]
    graph = helper.make_graph(body.nodes, "turn", ports, results, body.weights)
    net = Network(batch, (16,), steps)
    net.weights.append(numpy_helper.from_array(np.array([batch if isinstance(batch, int) else 1, 16], np.int64), "shape"))
    net.node("ConstantOfShape", "first", "shape")
    net.nodes.append(helper.make_node("Scan", ["first", "x"], ["last", "y"], body=graph, num_scan_inputs=1))
    return net.model("y", "last")


def past(batch="n", length="past") -> onnx.ModelProto:
    """Keys and values of past tokens followed by the present ones, as passed on by a decoder."""
    net = Network(batch, (length, 16), 2)
    net.weights.append(numpy_helper.from_array(np.array([1, 1], np.int64), "one_each"))
    net.nodes.append(helper.make_node("Split", ["x", "one_each"], ["keys", "values"], axis=0))
    net.node("Relu", "new_keys", "keys")
    net.join("all_keys", "keys", "new_keys", axis=2)
    net.join("present", "all_keys", net.join("all_values", "values", net.node("Neg", "new_values", "values"), axis=2), axis=0)
    return net.model("present", net.node("Sigmoid", "y", "all_keys"))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    "proto",
    [
        joined(),
        joined(spatial=(12, 20), batch=3),  # tiles that fill images, which keep their rows
        nested(),
        dense_block(),
        partly(),
        result_is_output(),
        heads(),
        split(),
        split(spatial=(12, 20), batch=2),
        slices(),
        turns(),
    ],
    ids=["joined", "batch", "nested", "dense-block", "partly", "output", "heads", "split", "split-batch", "slices", "turns"],
)
def test_against_onnxruntime(proto, threads):
    shape = [dim.dim_value for dim in proto.graph.input[0].type.tensor_type.shape.dim]
    compare(onnx2halide.compile(proto, threads=threads), proto, [shape, shape])


@pytest.mark.parametrize("make", [joined, split])
def test_open_sizes(make):
    proto = make(spatial=("height", "width"), batch="n")
    channels = proto.graph.input[0].type.tensor_type.shape.dim[1].dim_value
    compare(onnx2halide.compile(proto, threads=2), proto, [(n, channels, y, x) for n, y, x in ((1, 13, 13), (2, 9, 30), (1, 1, 5), (3, 40, 2))])


def test_parts_that_begin_where_a_run_knows():
    proto = past()
    compare(onnx2halide.compile(proto), proto, [(2, 1, 3, 16), (2, 2, 1, 16), (2, 3, 40, 16)])


@pytest.mark.parametrize("count", [25, 60])
def test_many_inputs_of_open_lengths(count):
    rng = np.random.default_rng(0)
    inputs = [helper.make_tensor_value_info(f"x{i}", TensorProto.FLOAT, [f"n{i}"]) for i in range(count)]
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n"])
    graph = helper.make_graph([helper.make_node("Concat", [port.name for port in inputs], ["y"], axis=0)], "joined", inputs, [y])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    parts = [rng.normal(size=length).astype(np.float32) for length in rng.integers(0, 9, count)]
    np.testing.assert_array_equal(onnx2halide.compile(proto).run(parts)[0], np.concatenate(parts))


def compare(compiled, proto: onnx.ModelProto, shapes) -> None:
    peer = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    rng = np.random.default_rng(1)
    for shape in shapes:
        x = rng.normal(size=shape).astype(np.float32)
        for got, expected in zip(compiled.run([x]), peer.run(None, {"x": x}), strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)
