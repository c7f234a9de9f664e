"""Small convolutions, and their results in float64."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from recipes import Recipe


def model(
    inputs, channels, *spatial, kernel=None, strides=None, dilations=None, group=1, batch=1, pads=None, bias=True, residual=False,
    dtype=np.float32
) -> onnx.ModelProto:
    axes = len(spatial)
    kernel, pads = kernel or (3,) * axes, pads or (1,) * 2 * axes
    strides, dilations = strides or (1,) * axes, dilations or (1,) * axes
    rng = np.random.default_rng(inputs * channels + int(np.prod(spatial)))
    weights = rng.normal(0, np.sqrt(2 * group / (inputs * np.prod(kernel))), (channels, inputs // group, *kernel)).astype(dtype)
    constants = {"w": weights} | ({"b": rng.normal(0, 0.1, channels).astype(dtype)} if bias else {})
    places = [
        (spatial[i] + pads[i] + pads[axes + i] - dilations[i] * (kernel[i] - 1) - 1) // strides[i] + 1 for i in range(axes)
    ]
    shape = [batch, channels, *places]
    values = {"x": [batch, inputs, *spatial]} | ({"r": shape} if residual else {})
    nodes = [helper.make_node("Conv", ["x", *constants], ["c"], pads=pads, strides=strides, dilations=dilations, group=group)]
    if residual:
        nodes.append(helper.make_node("Add", ["c", "r"], ["sum"]))
    nodes.append(helper.make_node("Relu", [nodes[-1].output[0]], ["y"]))
    element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    graph = helper.make_graph(
        nodes,
        "convolution",
        [helper.make_tensor_value_info(name, element, dims) for name, dims in values.items()],
        [helper.make_tensor_value_info("y", element, shape)],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def integer_model(
    inputs, channels, *spatial, kernel=None, strides=None, dilations=None, pads=None, group=1, batch=1, zero=0, dtype="uint8", weights="random",
    least=-128, most=127,
) -> onnx.ModelProto:
    """A convolution of 8-bit integers by weights that are random, the most or the least."""
    axes = len(spatial)
    kernel, pads = kernel or (3,) * axes, pads or (1,) * 2 * axes
    strides, dilations = strides or (1,) * axes, dilations or (1,) * axes
    shape = (channels, inputs // group, *kernel)
    rng = np.random.default_rng(inputs * channels + int(np.prod(spatial)))
    array = {"random": rng.integers(least, most + 1, shape), "most": np.full(shape, most), "least": np.full(shape, least)}[weights]
    places = [(spatial[i] + pads[i] + pads[axes + i] - dilations[i] * (kernel[i] - 1) - 1) // strides[i] + 1 for i in range(axes)]
    element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    attributes = {"pads": pads, "strides": strides, "dilations": dilations, "group": group}
    graph = helper.make_graph(
        [helper.make_node("ConvInteger", ["x", "w", "zero"], ["y"], **attributes)],
        "convolution",
        [helper.make_tensor_value_info("x", element, [batch, inputs, *spatial])],
        [helper.make_tensor_value_info("y", TensorProto.INT32, [batch, channels, *places])],
        [numpy_helper.from_array(array.astype(np.int8), "w"), numpy_helper.from_array(np.array(zero, dtype), "zero")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def zero_point(proto: onnx.ModelProto) -> int:
    """The zero point, with which the edges are padded."""
    return int(numpy_helper.to_array(proto.graph.initializer[1]))


def exact(proto: onnx.ModelProto, values: dict[str, np.ndarray]) -> np.ndarray:
    """The output in float64 of a convolution and what follows it in `model`."""
    constants = {tensor.name: numpy_helper.to_array(tensor).astype(np.float64) for tensor in proto.graph.initializer}
    axes = len(constants["w"].shape) - 2
    result = sums(proto, values["x"]) + constants.get("b", np.zeros(1)).reshape(1, -1, *[1] * axes)
    return np.maximum(result + values.get("r", 0), 0)


def sums(proto: onnx.ModelProto, x: np.ndarray) -> np.ndarray:
    """The sums in float64 of a model's first node, a convolution of x with weights w, without a bias."""
    constants = {tensor.name: numpy_helper.to_array(tensor).astype(np.float64) for tensor in proto.graph.initializer}
    attributes = {attribute.name: helper.get_attribute_value(attribute) for attribute in proto.graph.node[0].attribute}
    pads, strides, dilations, group = (attributes[name] for name in ("pads", "strides", "dilations", "group"))
    axes = len(strides)
    padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), *zip(pads[:axes], pads[axes:], strict=True)))
    kernel = constants["w"].shape[2:]
    shape = [dim.dim_value for dim in proto.graph.output[0].type.tensor_type.shape.dim]
    padded = padded.reshape(padded.shape[0], group, -1, *padded.shape[2:])
    weights = constants["w"].reshape(group, -1, *constants["w"].shape[1:])
    result = np.zeros((shape[0], group, shape[1] // group, *shape[2:]))
    for tap in np.ndindex(*kernel):
        firsts = [place * dilation for place, dilation in zip(tap, dilations, strict=True)]
        windows = tuple(
            slice(first, first + stride * (extent - 1) + 1, stride)
            for first, stride, extent in zip(firsts, strides, shape[2:], strict=True)
        )
        result += np.einsum("ngc...,gkc->ngk...", padded[(..., *windows)], weights[(..., *tap)], optimize=True)
    return result.reshape(shape)


def error(convolution: Recipe) -> float:
    """The largest error, relative to the largest output."""
    proto = convolution.model()
    rng = np.random.default_rng(0)
    shapes = {value.name: [dim.dim_value for dim in value.type.tensor_type.shape.dim] for value in proto.graph.input}
    dtype = helper.tensor_dtype_to_np_dtype(proto.graph.input[0].type.tensor_type.elem_type)
    values = {name: rng.normal(size=shape).astype(dtype) for name, shape in shapes.items()}
    expected = exact(proto, values)
    got = convolution.compile().run(values)[0]
    assert got.shape == expected.shape
    return np.abs(got.astype(np.float64) - expected).max() / np.abs(expected).max()


def resized(proto: onnx.ModelProto, spatial: list[int]) -> onnx.ModelProto:
    """The same convolution of an input of this size."""
    fixed = onnx.ModelProto()
    fixed.CopyFrom(proto)
    attributes = {attribute.name: helper.get_attribute_value(attribute) for attribute in proto.graph.node[0].attribute}
    kernel = proto.graph.initializer[0].dims[2:]
    places = [
        (extent + sum(attributes["pads"][i :: len(spatial)]) - attributes["dilations"][i] * (kernel[i] - 1) - 1) // attributes["strides"][i] + 1
        for i, extent in enumerate(spatial)
    ]
    for value, extents in ((fixed.graph.input[0], spatial), (fixed.graph.output[0], places)):
        for dim, extent in zip(value.type.tensor_type.shape.dim[2:], extents, strict=True):
            dim.dim_value = extent
    return fixed


def of_open_size(proto: onnx.ModelProto, dims: tuple[str, ...]) -> onnx.ModelProto:
    """The convolution itself, from then on of an input whose size has these names."""
    for dim, name in zip(proto.graph.input[0].type.tensor_type.shape.dim[2:], dims, strict=True):
        dim.dim_param = name
    for dim in proto.graph.output[0].type.tensor_type.shape.dim[2:]:
        dim.Clear()
    return proto
