"""Convolutions and products whose extents only a run knows: one compiled model at sizes below, at and between those of its tiles."""

import numpy as np
import onnx
import onnx2halide
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx2halide.references import OnnxRuntime

# Of rows, columns and batch.
IMAGES = [(1, 1, 1), (2, 3, 2), (5, 4, 1), (3, 7, 3), (9, 8, 1), (13, 15, 1), (1, 29, 2), (31, 1, 1), (17, 45, 1), (64, 61, 2)]


def weights(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).normal(0, 1 / np.sqrt(np.prod(shape[1:])), shape).astype(np.float32)


def relu(name: str) -> list[onnx.NodeProto]:
    return [helper.make_node("Relu", [name], ["y"])]


def swish(name: str) -> list[onnx.NodeProto]:
    return [helper.make_node("Sigmoid", [name], ["g"]), helper.make_node("Mul", [name, "g"], ["y"])]


def model(node, x_shape: list, kernel: np.ndarray, residual: list | None = None, activation=relu):
    """`node` on x and the constant w; with `residual`, plus r of that shape; then `activation`."""
    nodes = [node] + ([helper.make_node("Add", ["c", "r"], ["s"])] if residual else [])
    nodes += activation(nodes[-1].output[0])
    inputs = {"x": x_shape} | ({"r": residual} if residual else {})
    graph = helper.make_graph(
        nodes,
        "open",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [f"y{axis}" for axis in range(len(x_shape))])],
        [numpy_helper.from_array(kernel, "w")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def check(proto, shapes: list[dict[str, tuple[int, ...]]], **options) -> None:
    compiled, reference = onnx2halide.compile(proto, **options), OnnxRuntime(proto)
    rng = np.random.default_rng(0)
    for shape in shapes:
        inputs = {name: rng.normal(size=size).astype(np.float32) for name, size in shape.items()}
        expected, found = reference.run(inputs)["y"], compiled.run_by_name(inputs)["y"]
        assert found.shape == expected.shape, shape
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5 * max(1, np.abs(expected).max(initial=0)), err_msg=str(shape))


@pytest.mark.parametrize(
    "channels, kernel, attributes",
    [
        (32, (40, 32, 1, 1), {}),
        (24, (72, 24, 1, 1), {}),
        (3, (16, 3, 3, 3), {"strides": [2, 2], "pads": [1, 1, 1, 1]}),
        (16, (24, 16, 3, 3), {"pads": [1, 1, 1, 1]}),
        (8, (16, 8, 5, 5), {"pads": [2, 2, 2, 2]}),
        (16, (16, 16, 3, 1), {"pads": [1, 0, 1, 0]}),
        (24, (24, 1, 3, 3), {"group": 24, "pads": [1, 1, 1, 1]}),
        (32, (32, 8, 3, 3), {"group": 4, "pads": [1, 1, 1, 1]}),
        (16, (16, 16, 3, 3), {"dilations": [2, 2], "pads": [2, 2, 2, 2]}),
    ],
)
def test_images(channels, kernel, attributes):
    node = helper.make_node("Conv", ["x", "w"], ["c"], **attributes)
    proto = model(node, ["n", channels, "h", "w_"], weights(*kernel))
    check(proto, [{"x": (n, channels, h, w)} for h, w, n in IMAGES], threads=2)


# Of taps that only find padding, as a small image has them, loops run from the first to the last that do not.
@pytest.mark.parametrize(
    "kernel, attributes",
    [
        ((40, 32, 3, 3), {"dilations": [6, 6], "pads": [6, 6, 6, 6]}),
        ((16, 32, 5, 3), {"dilations": [3, 5], "pads": [6, 5, 6, 5]}),
        ((32, 8, 3, 3), {"dilations": [4, 4], "pads": [4, 4, 4, 4], "group": 4}),
        ((32, 1, 3, 3), {"dilations": [4, 4], "pads": [4, 4, 4, 4], "group": 32}),
        ((16, 32, 3, 3), {"dilations": [3, 3], "pads": [3, 3, 3, 3], "strides": [2, 2]}),
        ((16, 32, 3, 3), {"dilations": [4, 4], "pads": [0, 8, 8, 0]}),
        ((16, 32, 2, 2), {"pads": [2, 2, 2, 2], "strides": [5, 5]}),
        ((16, 32, 3), {"dilations": [8], "pads": [16, 0]}),
    ],
)
@pytest.mark.parametrize("convolution", ["direct", "auto"])
def test_small_images_under_wide_kernels(kernel, attributes, convolution):
    axes = len(kernel) - 2
    node = helper.make_node("Conv", ["x", "w"], ["c"], **attributes)
    sizes = ((1, 1), (2, 3), (8, 12), (13, 7), (1, 40), (33, 20))
    proto = model(node, ["n", 32, "h", "w_"][: 2 + axes], weights(*kernel))
    check(proto, [{"x": (n, 32, *size[-axes:])} for n, size in enumerate(sizes, 1)], threads=2, convolution=convolution)


@pytest.mark.parametrize(
    "kernel, attributes",
    [
        ((40, 32, 1, 1), {}),
        ((72, 32, 3, 3), {"pads": [1, 1, 1, 1]}),
        ((32, 1, 3, 3), {"group": 32, "pads": [1, 1, 1, 1]}),
        ((272, 16, 1, 1), {"group": 2}),
    ],
)
def test_activations_that_need_the_registers(kernel, attributes):
    node = helper.make_node("Conv", ["x", "w"], ["c"], **attributes)
    proto = model(node, ["n", 32, "h", "w_"], weights(*kernel), activation=swish)
    check(proto, [{"x": (n, 32, h, w)} for h, w, n in IMAGES])
    for shape in [(1, 32, 13, 13), (2, 32, 3, 5)]:
        check(model(node, list(shape), weights(*kernel), activation=swish), [{"x": shape}])


@pytest.mark.parametrize("kernel, group", [((3, 3), 1), ((3, 3), 2), ((5, 5), 1), ((1, 3), 1), ((5, 1), 1)], ids=str)
@pytest.mark.parametrize("convolution", ["direct", "winograd"])
def test_residuals(convolution, kernel, group):
    pads = [taps // 2 for taps in kernel] * 2
    node = helper.make_node("Conv", ["x", "w"], ["c"], pads=pads, group=group)
    proto = model(node, ["n", 16, "h", "w_"], weights(32, 16 // group, *kernel), residual=["n", 32, "h", "w_"])
    check(proto, [{"x": (n, 16, h, w), "r": (n, 32, h, w)} for h, w, n in IMAGES], convolution=convolution)


@pytest.mark.parametrize(
    "kernel, attributes, channels, inner",
    [((4, 3, 3, 3), {}, 3, "Relu"), ((6, 1, 3, 3), {"group": 6}, 6, "Relu"), ((6, 2, 1, 1), {"group": 3}, 6, "Identity")],
)
def test_channels_that_weights_tell(kernel, attributes, channels, inner):
    nodes = [helper.make_node(inner, ["image"], ["x"]), helper.make_node("Conv", ["x", "w"], ["y"], **attributes)]
    image, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [f"{name}{axis}" for axis in range(4)]) for name in ("image", "y"))
    proto = helper.make_model(helper.make_graph(nodes, "open", [image], [y], [numpy_helper.from_array(weights(*kernel), "w")]), opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    compiled = onnx2halide.compile(proto)
    assert compiled.inputs[0].shape == (None, channels, None, None)
    check(proto, [{"image": (n, channels, h, w)} for h, w, n in IMAGES if min(h, w) >= kernel[2]])
    with pytest.raises(ValueError, match=rf"input 'image' has shape \[1, 5, 9, 9\], expected \[None, {channels}, None, None\]"):
        compiled.run([np.zeros((1, 5, 9, 9), np.float32)])


@pytest.mark.parametrize(
    "node, shape, matrix, features",
    [
        (helper.make_node("MatMul", ["x", "w"], ["c"]), ["n", "rows", "features"], (40, 7), 40),
        (helper.make_node("Gemm", ["x", "w"], ["c"], transB=1), ["n", "features"], (7, 40), 40),
        (helper.make_node("Gemm", ["x", "w"], ["c"], transA=1), ["features", "n"], (40, 7), 40),
    ],
    ids=["MatMul", "transB", "transA"],
)
def test_features_that_matrices_tell(node, shape, matrix, features):
    proto = model(node, shape, weights(*matrix))
    assert onnx2halide.compile(proto).inputs[0].shape == tuple(features if dim == "features" else None for dim in shape)
    check(proto, [{"x": tuple({"features": features, "n": n, "rows": 3}[dim] for dim in shape)} for n in (1, 5, 17)])


def test_what_products_add():
    nodes = [helper.make_node("Gemm", ["a", "b", "c"], ["y"])]
    shapes = {"a": ["n", "k"], "b": ["k", "m"], "c": ["p", "q"]}
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", "m"])
    proto = helper.make_model(helper.make_graph(nodes, "open", inputs, [output]), opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    check(proto, [{"a": (9, 5), "b": (5, 37), "c": added} for added in ((9, 37), (1, 37), (9, 1), (1, 1))])


@pytest.mark.parametrize("columns", [5, 40])
def test_few_rows_that_stay_open(columns):
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 17]), helper.make_tensor_value_info("w", TensorProto.FLOAT, [17, columns])]
    proto = helper.make_model(helper.make_graph(nodes, "open", inputs, [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", columns])]), opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    for dims, sizes in (({"n": "0..1"}, (1, 0)), ({"n": "1..3"}, (1, 2, 3))):
        check(proto, [{"x": (n, 17), "w": (17, columns)} for n in sizes], dims=dims)


def test_channels_that_branches_want():
    branches = [
        helper.make_graph([helper.make_node("Conv", ["x", f"w{k}"], [f"y{k}"])], f"of_{k}", [], [helper.make_tensor_value_info(f"y{k}", TensorProto.FLOAT, ["n", 4, "h", "w"])])
        for k in (1, 3)
    ]
    nodes = [helper.make_node("If", ["is_grey"], ["y"], then_branch=branches[0], else_branch=branches[1])]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", "c", "h", "w"]), helper.make_tensor_value_info("is_grey", TensorProto.BOOL, [])]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 4, "h", "w"])
    kernels = [numpy_helper.from_array(weights(4, k, 1, 1), f"w{k}") for k in (1, 3)]
    proto = helper.make_model(helper.make_graph(nodes, "open", inputs, [output], kernels), opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    compiled, reference = onnx2halide.compile(proto), OnnxRuntime(proto)
    for channels in (1, 3):
        operands = {"x": np.random.default_rng(0).normal(size=(2, channels, 5, 7)).astype(np.float32), "is_grey": np.array(channels == 1)}
        np.testing.assert_allclose(compiled.run_by_name(operands)["y"], reference.run(operands)["y"], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("open_axis", [2, 3])
@pytest.mark.parametrize("kernel", [(16, 16, 1, 1), (16, 16, 3, 3)])
def test_one_open_axis(open_axis, kernel):
    node = helper.make_node("Conv", ["x", "w"], ["c"], pads=[kernel[2] // 2] * 4)
    shape = [1, 16, 12, 12]
    sizes = [tuple(size if axis == open_axis else extent for axis, extent in enumerate(shape)) for size in (1, 2, 5, 14, 33, 100)]
    shape[open_axis] = "size"
    check(model(node, shape, weights(*kernel)), [{"x": size} for size in sizes])


@pytest.mark.parametrize("length_of_kernel", [1, 5])
def test_signals(length_of_kernel):
    node = helper.make_node("Conv", ["x", "w"], ["c"], pads=[length_of_kernel // 2] * 2)
    proto = model(node, ["n", 16, "time"], weights(24, 16, length_of_kernel))
    check(proto, [{"x": (n, 16, time)} for n, time in ((1, 1), (2, 3), (1, 6), (3, 14), (1, 31), (1, 1000))])


@pytest.mark.parametrize("columns", [8, 72, 640])
def test_products(columns):
    proto = model(helper.make_node("MatMul", ["x", "w"], ["c"]), ["n", "rows", 40], weights(40, columns))
    check(proto, [{"x": (n, rows, 40)} for n, rows in ((1, 1), (2, 2), (1, 3), (1, 5), (3, 7), (1, 8), (1, 11), (2, 50))])


@pytest.mark.parametrize("shape_of_a, shape_of_b", [(["n", "r", 9], ["n", "c", 9]), (["n", "r", 24], ["n", "c", 24]), (["n", "r", "k"], ["n", "c", "k"]), (["n", 5, "k"], [1, 19, "k"])])
@pytest.mark.parametrize("element", [TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.INT32])
def test_products_with_rows_on_the_right(shape_of_a, shape_of_b, element):
    nodes = [helper.make_node("Transpose", ["b"], ["t"], perm=[0, 2, 1]), helper.make_node("MatMul", ["a", "t"], ["y"])]
    inputs = [helper.make_tensor_value_info(name, element, shape) for name, shape in (("a", shape_of_a), ("b", shape_of_b))]
    output = helper.make_tensor_value_info("y", element, ["n", "r", "c"])
    proto = helper.make_model(helper.make_graph(nodes, "open", inputs, [output]), opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    rng = np.random.default_rng(0)
    compiled = onnx2halide.compile(proto)
    for dims in (
        {"n": 1, "r": 1, "c": 1, "k": 1},
        {"n": 2, "r": 1, "c": 37, "k": 5},
        {"n": 3, "r": 2, "c": 15, "k": 3},
        {"n": 1, "r": 5, "c": 16, "k": 4},
        {"n": 2, "r": 9, "c": 33, "k": 21},
    ):
        a, b = (rng.integers(-9, 9, [dims.get(d, d) for d in shape]).astype(helper.tensor_dtype_to_np_dtype(element)) for shape in (shape_of_a, shape_of_b))
        np.testing.assert_array_equal(compiled.run_by_name({"a": a, "b": b})["y"], a @ b.swapaxes(1, 2))


@pytest.mark.parametrize("has_rows_on_the_right", [False, True])
def test_products_of_bytes(has_rows_on_the_right):
    """Both operands come at run time, which packs the right one as the integers of 16 bits that it is without its zero point."""
    turn = " t = Transpose <perm = [0, 2, 1]> (b)" if has_rows_on_the_right else "t = Identity (b)"
    proto = onnx.parser.parse_model(f"""<ir_version: 10, opset_import: ["" : 18]> g (uint8[n,r,k] a, uint8[n,{"c,k" if has_rows_on_the_right else "k,c"}] b, uint8 za, uint8 zb) => (int32[n,r,c] y) {{
        {turn} y = MatMulInteger (a, t, za, zb) }}""")
    compiled, reference, rng = onnx2halide.compile(proto), OnnxRuntime(proto), np.random.default_rng(0)
    for batch, rows, columns, depth in ((1, 1, 1, 1), (2, 7, 16, 9), (1, 20, 37, 5), (3, 33, 15, 40)):
        right = (batch, columns, depth) if has_rows_on_the_right else (batch, depth, columns)
        inputs = {"a": rng.integers(0, 256, (batch, rows, depth), np.uint8), "b": rng.integers(0, 256, right, np.uint8), "za": np.uint8(130), "zb": np.uint8(7)}
        inputs = {name: np.asarray(array) for name, array in inputs.items()}
        np.testing.assert_array_equal(compiled.run_by_name(inputs)["y"], reference.run(inputs)["y"])


@pytest.mark.parametrize("shape, perm", [([3, "h", "w"], [1, 2, 0]), (["n", "h", "w"], [0, 2, 1]), (["h", "w", 16], [2, 0, 1]), (["h", "w"], [1, 0])])
def test_transposes(shape, perm):
    node = helper.make_node("Transpose", ["x"], ["c"], perm=perm)
    sizes = [{"n": n, "h": h, "w": w} for n, h, w in ((1, 1, 1), (2, 8, 7), (3, 5, 16), (1, 17, 33), (2, 40, 3))]
    check(model(node, shape, weights(1)), [{"x": tuple(size.get(dim, dim) for dim in shape)} for size in sizes])


@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax"])
@pytest.mark.parametrize("shape", [["n", 3, "length"], ["n", "length"], ["length"]])
def test_softmax_of_open_rows(op, shape):
    proto = model(helper.make_node(op, ["x"], ["c"], axis=-1), shape, weights(1), activation=lambda name: [helper.make_node("Neg", [name], ["y"])])
    sizes = [{"n": n, "length": length} for n, length in ((1, 1), (3, 7), (2, 16), (1, 17), (5, 250))]
    check(proto, [{"x": tuple(size.get(dim, dim) for dim in shape)} for size in sizes])


@pytest.mark.parametrize(
    "node, shape",
    [
        (helper.make_node("Softmax", ["x"], ["c"], axis=1), ["n", 5, "h", "w"]),
        (helper.make_node("LogSoftmax", ["x"], ["c"], axis=1), [2, 5, "h", 3, "w"]),
        (helper.make_node("Softmax", ["x"], ["c"], axis=0), [3, "h", "w"]),
        (helper.make_node("Softmax", ["x"], ["c"]), ["h", "w", 5]),
        (helper.make_node("LpNormalization", ["x"], ["c"], axis=1), ["n", 4, "h", "w"]),
        (helper.make_node("LayerNormalization", ["x", "w"], ["c"]), ["h", "w", 12]),
    ],
)
def test_vectors_across_rows(node, shape):
    proto = model(node, shape, weights(12))
    sizes = [{"n": n, "h": h, "w": w} for n, h, w in ((1, 1, 1), (2, 1, 3), (1, 5, 3), (3, 4, 4), (1, 9, 37), (2, 60, 50))]
    check(proto, [{"x": tuple(size.get(dim, dim) for dim in shape)} for size in sizes], threads=2)


@pytest.mark.parametrize(
    "node",
    [
        helper.make_node("InstanceNormalization", ["x", "ones", "w"], ["c"]),
        helper.make_node("GroupNormalization", ["x", "ones", "w"], ["c"], num_groups=4),
        helper.make_node("MeanVarianceNormalization", ["x"], ["c"]),
        helper.make_node("MeanVarianceNormalization", ["x"], ["c"], axes=[2, 3]),
    ],
    ids=lambda node: node.op_type,
)
@pytest.mark.parametrize("is_between_convolutions", [False, True])
def test_rows_of_open_axes(node, is_between_convolutions):
    nodes = [node, helper.make_node("Relu", ["c"], ["y"])]
    if is_between_convolutions:
        nodes = [helper.make_node("Conv", ["image", "mix"], ["x"]), *nodes[:1], helper.make_node("Conv", ["c", "mix"], ["y"])]
    ports = [helper.make_tensor_value_info("image" if is_between_convolutions else "x", TensorProto.FLOAT, ["n", 24, "h", "w_"])]
    values = {"w": weights(24), "ones": np.ones(24, np.float32), "mix": weights(24, 24, 1, 1)}
    constants = [numpy_helper.from_array(value, name) for name, value in values.items()]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 24, "h", "w_"])
    proto = helper.make_model(helper.make_graph(nodes, "open", ports, [output], constants), opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    check(proto, [{ports[0].name: (n, 24, h, w)} for n, h, w in ((1, 1, 5), (2, 7, 1), (1, 5, 3), (3, 9, 37))], threads=2)


ELEMENTWISE = {
    "alike": ("float[n, 3, h, w] x, float[n, 3, h, w] z", "s = Add(x, z) y = Sigmoid(s)"),
    "channels": ("float[n, 6, h, w] x, float[n, 6, 1, 1] z", "a = Mul(x, channels) s = Add(a, z) y = Relu(s)"),
    "planes": ("float[n, 6, h, w] x, float[1, 1, h, w] z", "y = Sub(x, z)"),
    "columns": ("float[n, h, w] x, float[n, h, 1] z", "s = Div(x, z) y = Abs(s)"),
    "outer": ("float[n, 1, w] x, float[n, h, 1] z", "y = Add(x, z)"),
    "rows": ("float[n, h, 12] x, float[h, 12] z", "y = Max(x, z)"),
    "types": ("float[n, h, w] x, float[n, h, w] z", "b = Greater(x, z) c = Cast<to = 3>(b) y = Cast<to = 1>(c)"),
}


@pytest.mark.parametrize("inputs, body", ELEMENTWISE.values(), ids=ELEMENTWISE)
def test_elements_of_open_axes(inputs, body):
    proto = onnx.parser.parse_model(f"""<ir_version: 9, opset_import: ["": 17]> g ({inputs}) => (float[a, b, c, d] y) {{ {body} }}""")
    del proto.graph.output[0].type.tensor_type.shape.dim[len(proto.graph.input[0].type.tensor_type.shape.dim) :]
    proto.graph.initializer.append(numpy_helper.from_array(weights(6, 1, 1), "channels"))
    shapes = {value.name: [dim.dim_param or dim.dim_value for dim in value.type.tensor_type.shape.dim] for value in proto.graph.input}
    sizes = [{"n": n, "h": h, "w": w} for n, h, w in ((1, 1, 1), (2, 1, 3), (13, 2, 1), (1, 5, 3), (3, 9, 37), (2, 60, 90))]
    check(proto, [{name: tuple(size.get(dim, dim) for dim in shape) for name, shape in shapes.items()} for size in sizes], threads=2)


@pytest.mark.parametrize("op", ["ReduceMax", "ReduceMean", "ReduceL2"])
@pytest.mark.parametrize("shape, axes", [(["n", 3, "h", "w"], None), (["n", 3, "h", "w"], [2, 3]), (["n", "h", "w", 8], [1, 2, 3]), (["h", 1, "w"], [0, 1, 2]), (["n", 3, "h", "w"], [3]), (["n", "w"], [1])])
def test_reductions_of_open_axes(op, shape, axes):
    node = helper.make_node(op, ["x"], ["c"], **({"axes": axes} if axes else {}))
    sizes = [{"n": n, "h": h, "w": w} for n, h, w in ((1, 1, 1), (2, 1, 15), (2, 3, 16), (3, 4, 4), (1, 9, 37), (3, 2, 64), (2, 2, 130))]
    check(model(node, shape, weights(1)), [{"x": tuple(size.get(dim, dim) for dim in shape)} for size in sizes])


@pytest.mark.parametrize("shape_of_b", [["m", 8, 20], ["m", 8, 32], ["m", "k", "c"]])
def test_products_of_batches_that_may_be_one(shape_of_b):
    nodes = [helper.make_node("MatMul", ["a", "b"], ["y"])]
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in (("a", ["n", "r", 8]), ("b", shape_of_b))]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["x", "r", "c"])
    proto = helper.make_model(helper.make_graph(nodes, "open", inputs, [output]), opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    sizes = ((1, 1, 1), (3, 3, 5), (1, 4, 7), (4, 1, 9))
    columns = shape_of_b[2] if shape_of_b[2] != "c" else 20
    check(proto, [{"a": (n, rows, 8), "b": (m, 8, columns)} for n, m, rows in sizes])


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge", "wrap"])
@pytest.mark.parametrize("pads", [(0, 0, 1, 1, 0, 0, 1, 1), (0, 0, 0, 3, 0, 0, 0, 0), (0, 0, 2, 0, 0, 1, 3, 0), (0, 0, -1, 2, 0, 0, 2, -1), None], ids=str)
@pytest.mark.parametrize("type", [TensorProto.FLOAT, TensorProto.UINT8], ids=["float", "bytes"])
def test_pads(mode, pads, type):
    """Rows of fewer elements than a vector has lanes, and of many vectors. Without `pads` a run brings them."""
    element = helper.tensor_dtype_to_np_dtype(type)
    given = pads or (0, 0, 2, 1, 0, 0, 0, 3)
    inputs = [helper.make_tensor_value_info("x", type, ["n", 2, "h", "w"])]
    inputs += [] if pads else [helper.make_tensor_value_info("pads", TensorProto.INT64, [8])]
    constants = [numpy_helper.from_array(np.array(pads), "pads")] if pads else []
    graph = helper.make_graph([helper.make_node("Pad", ["x", "pads"], ["y"], mode=mode)], "pads", inputs, [helper.make_tensor_value_info("y", type, ["n", 2 if pads is None or not pads[5] else 3, "a", "b"])], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
    compiled, reference = onnx2halide.compile(model), OnnxRuntime(model)
    for n, h, w in ((1, 4, 4), (2, 5, 7), (1, 6, 13), (3, 9, 17), (1, 4, 40), (1, 6, 300), (1, 5, 1100)):
        values = {"x": np.random.default_rng(0).integers(0, 100, (n, 2, h, w)).astype(element)} | ({} if pads else {"pads": np.array(given)})
        np.testing.assert_array_equal(compiled.run_by_name(values)["y"], reference.run(values)["y"], err_msg=str((n, h, w)))


@pytest.mark.parametrize(
    "shape, repeats",
    [(["n", "length"], [1, 3]), (["n", "length", 8], [1, 3, 1]), (["n", 3, "h", "w"], [1, 1, 2, 2]), (["n", 3, "h", "w"], [2, 2, 1, 5]), (["length"], [20]), (["n", "length"], [0, 2])],
    ids=str,
)
@pytest.mark.parametrize("has_epilogue", [False, True])
def test_tiles(shape, repeats, has_epilogue):
    nodes = [helper.make_node("Tile", ["x", "repeats"], ["t"]), helper.make_node("Exp" if has_epilogue else "Identity", ["t"], ["y"])]
    ports = [[helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)] for name, dims in (("x", shape), ("y", [f"y{axis}" for axis in range(len(shape))]))]
    graph = helper.make_graph(nodes, "tiles", *ports, [numpy_helper.from_array(np.array(repeats), "repeats")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    compiled, reference = onnx2halide.compile(model), OnnxRuntime(model)
    for n, length, height in ((1, 1, 1), (2, 5, 3), (3, 16, 7), (1, 37, 20), (2, 130, 2)):
        dims = {"n": n, "length": length, "h": height, "w": length}
        values = {"x": np.random.default_rng(0).normal(size=[dims.get(dim, dim) for dim in shape]).astype(np.float32)}
        np.testing.assert_allclose(compiled.run_by_name(values)["y"], reference.run(values)["y"], rtol=1e-5, err_msg=str(dims))


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("attributes", [{}, {"exclusive": 1, "reverse": 1}], ids=str)
@pytest.mark.parametrize("is_between", [False, True])
def test_running_sums(axis, attributes, is_between):
    names = ("p", "s") if is_between else ("x", "y")
    nodes = [helper.make_node("CumSum", [names[0], "axis"], [names[1]], **attributes)]
    if is_between:
        nodes = [helper.make_node("Neg", ["x"], ["p"]), *nodes, helper.make_node("Abs", ["s"], ["y"])]
    ports = [[helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", "h", "w"])] for name in ("x", "y")]
    graph = helper.make_graph(nodes, "sums", *ports, [numpy_helper.from_array(np.array(axis), "axis")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    compiled, reference = onnx2halide.compile(model), OnnxRuntime(model)
    for shape in ((1, 1, 1), (2, 1, 5), (1, 9, 16), (3, 8, 20), (17, 2, 37), (2, 33, 1100)):
        values = {"x": np.random.default_rng(0).normal(size=shape).astype(np.float32)}
        np.testing.assert_allclose(compiled.run_by_name(values)["y"], reference.run(values)["y"], rtol=1e-4, atol=1e-5, err_msg=str(shape))


@pytest.mark.parametrize("heads", [1, 3])
def test_rotated_halves(heads):
    """As the rotary embedding of a decoder's keys, of which there may be one head."""
    nodes = [
        helper.make_node("Slice", ["x", "eight", "sixteen", "last"], ["upper"]),
        helper.make_node("Slice", ["x", "zero", "eight", "last"], ["lower"]),
        helper.make_node("Neg", ["upper"], ["negative"]),
        helper.make_node("Concat", ["negative", "lower"], ["rotated"], axis=-1),
        helper.make_node("Mul", ["rotated", "sines"], ["scaled"]),
        helper.make_node("Add", ["x", "scaled"], ["y"]),
    ]
    ports = [("x", ["batch", heads, "sequence", 16]), ("sines", ["batch", 1, "sequence", 16])]
    graph = helper.make_graph(
        nodes,
        "open",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in ports],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ports[0][1])],
        [numpy_helper.from_array(np.array([number]), name) for name, number in (("zero", 0), ("eight", 8), ("sixteen", 16), ("last", 3))],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    check(proto, [{"x": (n, heads, s, 16), "sines": (n, 1, s, 16)} for n, s in ((1, 1), (2, 1), (1, 7), (3, 40))], threads=2)


@pytest.mark.parametrize("channels", [3, 17])
def test_grids_of_one_image(channels):
    ports = [("x", [1, channels, "h", "w"]), ("grid", [1, "rows", "columns", 2])]
    graph = helper.make_graph(
        [helper.make_node("GridSample", ["x", "grid"], ["y"], mode="bilinear" if channels == 3 else "bicubic")],
        "open",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in ports],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, channels, "rows", "columns"])],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 16)], ir_version=9)
    check(proto, [{"x": (1, channels, h, w), "grid": (1, *size, 2)} for h, w, size in ((5, 7, (4, 20)), (1, 3, (1, 1)), (30, 20, (90, 33)))])


# Of the float n, and the vector of n and m.
SIZES_IN_FLOATS = [
    "less = Sub(n, three) frames = Div(less, eight) more = Add(frames, one) {} = Ceil(more)",
    "part = Mul(n, three_quarters) {} = Floor(part)",
    "half = Div(n, two) {} = Round(half)",
    "part = Div(n, eight) {} = Add(part, three_quarters)",
    "negative = Neg(n) part = Div(negative, three) up = Ceil(part) {} = Abs(up)",
    "negative = Neg(n) part = Div(negative, three) down = Floor(part) {} = Neg(down)",
    "tenth = Mul(n, inexact) down = Floor(tenth) {} = Div(down, three_quarters)",
    "{} = Mul(n_and_m, pair)",
    "part = Div(n, three) vector = Unsqueeze(part, zero) up = Ceil(vector) {} = Squeeze(up)",
]


@pytest.mark.parametrize("size", SIZES_IN_FLOATS)
@pytest.mark.parametrize("type", [TensorProto.FLOAT, TensorProto.DOUBLE], ids=["float", "double"])
def test_sizes_computed_in_floats(size, type):
    dtype = helper.tensor_dtype_to_np_dtype(type)
    numbers = {"one": 1, "two": 2, "three": 3, "eight": 8, "three_quarters": 0.75, "inexact": 0.1, "pair": [2, 0.5]}
    constants = {name: np.array(number, dtype) for name, number in numbers.items()}
    constants |= {name: np.array(number) for name, number in {"zero": [0], "first": 0, "any": [-1], "filling": np.float32(7)}.items()}
    text = f"""<ir_version: 9, opset_import: ["": 17]> g (float[n, m] x) => (float[{"r, c" if "n_and_m" in size else "r"}] y) {{
        shape = Shape(x) n_and_m = Cast<to = {type}>(shape) n = Gather(n_and_m, first) {size.format("real")}
        integer = Cast<to = 7>(real) vector_of_sizes = Reshape(integer, any) y = Expand(filling, vector_of_sizes)
    }}"""
    proto = onnx.parser.parse_model(text)
    proto.graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in constants.items() if name in text)
    compiled, reference = onnx2halide.compile(proto), OnnxRuntime(proto)
    for n in [*range(3, 30), 49, 160, 1001]:
        x = np.zeros((n, 3 * n + 1), np.float32)
        np.testing.assert_array_equal(compiled.run([x])[0], reference.run({"x": x})["y"], err_msg=str(n))
