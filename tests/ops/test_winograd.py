"""Small convolutions by Winograd's algorithm against direct ones in float64."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import onnx2halide


def model(
    inputs, channels, height, width, *, kernel=(3, 3), group=1, batch=1, pads=(1, 1, 1, 1), bias=True, residual=False
) -> onnx.ModelProto:
    rng = np.random.default_rng(inputs * channels + height * width)
    weights = rng.normal(0, np.sqrt(2 * group / (inputs * np.prod(kernel))), (channels, inputs // group, *kernel)).astype(np.float32)
    constants = {"w": weights} | ({"b": rng.normal(0, 0.1, channels).astype(np.float32)} if bias else {})
    shape = [batch, channels, height + pads[0] + pads[2] - kernel[0] + 1, width + pads[1] + pads[3] - kernel[1] + 1]
    values = {"x": [batch, inputs, height, width]} | ({"r": shape} if residual else {})
    nodes = [helper.make_node("Conv", ["x", *constants], ["c"], pads=pads, group=group)]
    if residual:
        nodes.append(helper.make_node("Add", ["c", "r"], ["sum"]))
    nodes.append(helper.make_node("Relu", [nodes[-1].output[0]], ["y"]))
    graph = helper.make_graph(
        nodes,
        "convolution",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, dims) for name, dims in values.items()],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def exact(proto: onnx.ModelProto, values: dict[str, np.ndarray]) -> np.ndarray:
    """The model's output in float64, by plain sums."""
    constants = {tensor.name: numpy_helper.to_array(tensor).astype(np.float64) for tensor in proto.graph.initializer}
    attributes = {attribute.name: helper.get_attribute_value(attribute) for attribute in proto.graph.node[0].attribute}
    top, left, bottom, right = attributes["pads"]
    padded = np.pad(values["x"].astype(np.float64), ((0, 0), (0, 0), (top, bottom), (left, right)))
    kernel, group = constants["w"].shape[2:], attributes["group"]
    height, width = padded.shape[2] - kernel[0] + 1, padded.shape[3] - kernel[1] + 1
    padded = padded.reshape(padded.shape[0], group, -1, *padded.shape[2:])
    weights = constants["w"].reshape(group, -1, *constants["w"].shape[1:])
    result = sum(
        np.einsum("ngchw,gkc->ngkhw", padded[..., y : y + height, x : x + width], weights[..., y, x], optimize=True)
        for y in range(kernel[0])
        for x in range(kernel[1])
    )
    result = result.reshape(len(result), -1, height, width) + constants.get("b", np.zeros(1)).reshape(1, -1, 1, 1)
    return np.maximum(result + values.get("r", 0), 0)


def error(proto: onnx.ModelProto, convolution: str) -> float:
    """The largest one, relative to the largest output."""
    rng = np.random.default_rng(0)
    shapes = {value.name: [dim.dim_value for dim in value.type.tensor_type.shape.dim] for value in proto.graph.input}
    values = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    expected = exact(proto, values)
    got = onnx2halide.compile(proto, convolution=convolution).run(values)[0]
    assert got.shape == expected.shape
    return np.abs(got - expected).max() / np.abs(expected).max()


@pytest.mark.parametrize(
    "shape, options",
    [
        ((16, 16, 8, 8), {}),
        ((16, 32, 9, 11), {}),  # tiles that reach beyond the outputs
        ((3, 5, 7, 6), {}),  # fewer channels than a vector has lanes
        ((24, 20, 13, 13), {"bias": False}),  # channels that fill no vector
        ((8, 16, 10, 10), {"pads": (0, 0, 0, 0)}),
        ((8, 16, 10, 10), {"pads": (2, 0, 1, 3)}),
        ((16, 48, 12, 20), {"batch": 3, "residual": True}),
        ((1, 1, 1, 1), {}),
        ((64, 64, 56, 56), {"residual": True}),
        ((160, 96, 3, 40), {"batch": 2}),
        ((256, 256, 14, 14), {}),  # more weights than inputs: tiles of channels are outermost
        ((512, 512, 7, 7), {}),
        ((32, 32, 9, 12), {"group": 2}),
        ((12, 48, 14, 14), {"group": 3, "residual": True}),  # groups of other numbers of inputs than of channels
        ((256, 256, 7, 7), {"group": 8, "batch": 2}),
        ((16, 32, 12, 14), {"kernel": (5, 5), "pads": (2, 2, 2, 2)}),
        ((3, 5, 9, 8), {"kernel": (5, 5)}),
        ((1, 8, 5, 5), {"kernel": (5, 5), "pads": (0, 0, 0, 0)}),
        ((96, 256, 27, 27), {"kernel": (5, 5), "pads": (2, 2, 2, 2), "group": 2}),
        ((16, 32, 12, 11), {"kernel": (2, 2), "pads": (1, 1, 0, 0)}),
        ((24, 16, 7, 9), {"kernel": (2, 2), "pads": (0, 0, 0, 0), "bias": False}),
        ((256, 256, 8, 8), {"kernel": (2, 2)}),
        ((32, 48, 13, 10), {"kernel": (4, 4), "pads": (1, 1, 2, 2)}),
        ((5, 3, 9, 9), {"kernel": (4, 4), "pads": (3, 3, 3, 3), "batch": 2}),
        ((32, 48, 12, 21), {"kernel": (1, 3), "pads": (0, 1, 0, 1)}),
        ((24, 32, 18, 5), {"kernel": (5, 1), "pads": (2, 0, 2, 0), "batch": 2}),
        ((16, 32, 9, 14), {"kernel": (2, 5), "pads": (0, 2, 1, 2)}),
        ((64, 64, 14, 14), {"kernel": (5, 5), "pads": (4, 0, 3, 1), "batch": 2, "residual": True}),
    ],
    ids=lambda value: "x".join(map(str, value)) if isinstance(value, tuple) else "-".join(value) or "plain",
)
@pytest.mark.parametrize("convolution", ["winograd", "auto"])
def test_against_float64(shape, options, convolution):
    """The bound that conv_winograd.h states."""
    assert error(model(*shape, **options), convolution) < 1e-5


def test_direct_is_closer():
    proto = model(64, 64, 20, 20)
    assert error(proto, "direct") < 2e-6


def test_phases_of_a_transposed_convolution():
    """Of 4x4 with stride 2: each phase is a convolution of 2x2, or one of 3x3 has a channel for each of them."""
    rng = np.random.default_rng(0)
    for channels in (64, 6):
        weights = rng.normal(0, 0.05, (32, channels, 4, 4)).astype(np.float32)
        graph = helper.make_graph(
            [helper.make_node("ConvTranspose", ["x", "w"], ["y"], strides=[2, 2], pads=[1, 1, 1, 1])],
            "phases",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 32, 13, 10])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, channels, 26, 20])],
            [numpy_helper.from_array(weights, "w")],
        )
        proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
        x = rng.normal(size=(1, 32, 13, 10)).astype(np.float32)
        products = np.einsum("nchw,ckyx->nkhwyx", x.astype(np.float64), weights.astype(np.float64))
        expected = np.zeros((1, channels, 28, 22))
        for y in range(4):
            for column in range(4):
                expected[:, :, y : y + 26 : 2, column : column + 20 : 2] += products[..., y, column]
        expected = expected[:, :, 1:-1, 1:-1]
        got = onnx2halide.compile(proto, convolution="winograd").run([x])[0]
        assert np.abs(got - expected).max() / np.abs(expected).max() < 1e-5


@pytest.mark.parametrize("attributes, size", [({"strides": [2, 2]}, 6), ({"dilations": [2, 2]}, 10), ({"group": 2}, 12)], ids=str)
def test_only_what_it_can_compute(attributes, size):
    """Strides, dilations and groups that blocks of channels do not fill stay direct whatever is asked for."""
    proto = model(8, 8, 12, 12)
    given = {attribute.name: attribute for attribute in proto.graph.node[0].attribute}
    for name, value in attributes.items():
        attribute = given.get(name) or proto.graph.node[0].attribute.add()
        attribute.CopyFrom(helper.make_attribute(name, value))
    if "group" in attributes:
        weights = proto.graph.initializer[0]
        weights.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(weights)[:, :4], "w"))
    for dim in proto.graph.output[0].type.tensor_type.shape.dim[2:]:
        dim.dim_value = size
    x = np.random.default_rng(0).normal(size=(1, 8, 12, 12)).astype(np.float32)
    results = [onnx2halide.compile(proto, convolution=name).run([x])[0] for name in ("winograd", "direct")]
    assert np.array_equal(*results)
