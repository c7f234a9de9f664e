"""Convolutions and products with extents known only at run time: one compiled model at sizes below, at and between those of its tiles."""

import numpy as np
import onnx
import onnx2halide
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx2halide.references import OnnxRuntime
from open_models import check, model, swish, weights

# Of rows, columns and batch.
IMAGES = [(1, 1, 1), (2, 3, 2), (5, 4, 1), (3, 7, 3), (9, 8, 1), (13, 15, 1), (1, 29, 2), (31, 1, 1), (17, 45, 1), (64, 61, 2)]


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


# The number of tasks depends on the number of threads: a multiple of it, as many, or fewer.
@pytest.mark.parametrize("threads", [1, 3, 4, 7])
@pytest.mark.parametrize(
    "kernel, attributes",
    [
        ((64, 64, 3, 3), {"pads": [1, 1, 1, 1]}),
        ((64, 64, 3, 3), {"pads": [1, 1, 1, 1], "strides": [2, 2]}),
        ((64, 1, 3, 3), {"group": 64}),
    ],
)
def test_rows_are_divided_among_threads(kernel, attributes, threads):
    node = helper.make_node("Conv", ["x", "w"], ["c"], **attributes)
    proto = model(node, ["n", 64, "h", "w_"], weights(*kernel))
    check(proto, [{"x": (n, 64, h, w)} for n, h, w in ((1, 3, 3), (1, 15, 14), (2, 28, 28), (1, 57, 56), (1, 112, 90))], threads=threads)


# If taps see only padding, as with small images, loops run from the first to the last that do not.
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
    """Both operands are given at run time; the right one is packed as 16-bit integers, without its zero point."""
    turn = " t = Transpose <perm = [0, 2, 1]> (b)" if has_rows_on_the_right else "t = Identity (b)"
    proto = onnx.parser.parse_model(f"""<ir_version: 10, opset_import: ["" : 18]> g (uint8[n,r,k] a, uint8[n,{"c,k" if has_rows_on_the_right else "k,c"}] b, uint8 za, uint8 zb) => (int32[n,r,c] y) {{
        {turn} y = MatMulInteger (a, t, za, zb) }}""")
    compiled, reference, rng = onnx2halide.compile(proto), OnnxRuntime(proto), np.random.default_rng(0)
    for batch, rows, columns, depth in ((1, 1, 1, 1), (2, 7, 16, 9), (1, 20, 37, 5), (3, 33, 15, 40)):
        right = (batch, columns, depth) if has_rows_on_the_right else (batch, depth, columns)
        inputs = {"a": rng.integers(0, 256, (batch, rows, depth), np.uint8), "b": rng.integers(0, 256, right, np.uint8), "za": np.uint8(130), "zb": np.uint8(7)}
        inputs = {name: np.asarray(array) for name, array in inputs.items()}
        np.testing.assert_array_equal(compiled.run_by_name(inputs)["y"], reference.run(inputs)["y"])


@pytest.mark.parametrize("shape_of_b", [["m", 8, 20], ["m", 8, 32], ["m", "k", "c"]])
def test_products_of_batches_that_may_be_one(shape_of_b):
    nodes = [helper.make_node("MatMul", ["a", "b"], ["y"])]
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in (("a", ["n", "r", 8]), ("b", shape_of_b))]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["x", "r", "c"])
    proto = helper.make_model(helper.make_graph(nodes, "open", inputs, [output]), opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    sizes = ((1, 1, 1), (3, 3, 5), (1, 4, 7), (4, 1, 9))
    columns = shape_of_b[2] if shape_of_b[2] != "c" else 20
    check(proto, [{"a": (n, rows, 8), "b": (m, 8, columns)} for n, m, rows in sizes])
