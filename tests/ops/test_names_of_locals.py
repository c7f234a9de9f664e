"""A model may use the names that emitted classes declare themselves."""

import numpy as np
import onnx2halide
import pytest
from make_models import FLOAT, model, node
from onnx import TensorProto
from onnx2halide.references import OnnxRuntime


def random(*shape):
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def check(proto, inputs, exactly=False):
    expected = OnnxRuntime(proto).run(inputs)
    for name, array in onnx2halide.compile(proto).run_by_name(inputs).items():
        if exactly:
            assert np.array_equal(array, expected[name])
        else:
            np.testing.assert_allclose(array, expected[name], rtol=1e-4, atol=1e-4)


def test_max_pool_with_indices():
    nodes = [node("Relu", "x", "value"), node("MaxPool", "value", "best index", kernel_shape=[2, 2]), node("Neg", "best", "is_better")]
    pooled = [1, 2, 3, 4]
    pools = model(nodes, [("x", FLOAT, [1, 2, 4, 5])], [("is_better", FLOAT, pooled), ("index", TensorProto.INT64, pooled)])
    check(pools, {"x": random(1, 2, 4, 5)}, exactly=True)


@pytest.mark.parametrize("names", ["pixels vectors rows", "strip co xo", "task group lanes", "ci kx ky", "x c k"])
def test_convolution(names):
    image, bias, result = names.split()
    nodes = [node("Conv", f"{image} W {bias}", "sum", pads=[1, 1, 1, 1], name=bias), node("Relu", "sum", result, name=result)]
    shape = [1, 32, 40, 40]
    conv = model(nodes, [(image, FLOAT, shape)], [(result, FLOAT, shape)], {"W": random(32, 32, 3, 3), bias: random(32)})
    check(conv, {image: random(*shape)})


@pytest.mark.parametrize("names", ["vectors rows x_tile", "lane depth block", "stretch task k_outer"])
@pytest.mark.parametrize("rows", [1, 100])
def test_product(names, rows):
    a, b, result = names.split()
    nodes = [node("MatMul", f"{a} {b}", "product"), node("Tanh", "product", result)]
    product = model(nodes, [(a, FLOAT, [rows, 200]), (b, FLOAT, [200, 300])], [(result, FLOAT, [rows, 300])])
    check(product, {a: random(rows, 200), b: random(200, 300)})


@pytest.mark.parametrize("names", ["tile tile_versions rows_of_task", "rows_of_task tile TileVersion"])
def test_convolution_of_open_images(names):
    image, between, result = names.split()
    nodes = [node("Conv", f"{image} W", between, pads=[1, 1, 1, 1], strides=[2, 2]), node("Relu", between, result)]
    shapes = [1, 8, "height", "width"], [1, 16, "height of result", "width of result"]
    conv = model(nodes, [(image, FLOAT, shapes[0])], [(result, FLOAT, shapes[1])], {"W": random(16, 8, 3, 3)})
    check(conv, {image: random(1, 8, 23, 37)})


@pytest.mark.parametrize("names", ["tile tile_versions rows_of_task", "TileVersion tile tile_versions"])
def test_product_of_open_rows(names):
    a, product, result = names.split()
    nodes = [node("MatMul", f"{a} B", product), node("Tanh", product, result)]
    rows = model(nodes, [(a, FLOAT, ["rows", 64])], [(result, FLOAT, ["rows", 96])], {"B": random(64, 96)})
    check(rows, {a: random(21, 64)})


@pytest.mark.parametrize("name", ["context", "make", "registered", "prepared_generator", "generator"])
def test_kernel(name):
    check(model([node("Neg", "x", name)], [("x", FLOAT, [4])], [(name, FLOAT, [4])]), {"x": random(4)}, exactly=True)


@pytest.mark.parametrize("names", ["row rows task", "k_row place x_tile", "part block lane", "lanes run k2"])
@pytest.mark.parametrize("op", ["Softmax", "ReduceMean", "LpNormalization"])
def test_rows(names, op):
    x, between, result = names.split()
    nodes = [node("Neg", x, between), node(op, between, result)]
    shape = [3, 50, 600]
    result_shape = [1, 1, 1] if op == "ReduceMean" else shape
    check(model(nodes, [(x, FLOAT, shape)], [(result, FLOAT, result_shape)]), {x: random(*shape)})


@pytest.mark.parametrize("names", ["x_side c_side x_tile", "x_in c_in c_tile"])
def test_transpose(names):
    x, between, result = names.split()
    nodes = [node("Neg", x, between), node("Transpose", between, result, perm=[0, 2, 3, 1])]
    moved = model(nodes, [(x, FLOAT, [1, 30, 40, 50])], [(result, FLOAT, [1, 40, 50, 30])])
    check(moved, {x: random(1, 30, 40, 50)}, exactly=True)


@pytest.mark.parametrize("name", ["n", "x", "batch"])
def test_open_dims(name):
    nodes = [node("MatMul", f"{name} W", "product"), node("Relu", "product", "y")]
    product = model(nodes, [(name, FLOAT, [name, 3])], [("y", FLOAT, [name, 5])], {"W": random(3, 5)})
    check(product, {name: random(4, 3)})


def test_classes():
    names = ["Stage", "Module", "Pipeline", "Argument", "div", "time", "gamma", "read", "index", "y1"]
    nodes = [node("Relu", f"a{i}", f"b{i}", name=name) for i, name in enumerate(names)]
    inputs, outputs = ([(f"{port}{i}", FLOAT, [i + 3]) for i in range(len(names))] for port in "ab")
    check(model(nodes, inputs, outputs), {f"a{i}": random(i + 3) for i in range(len(names))}, exactly=True)


# Symbols of sizes known only at run time have names made by the compiler.


def test_dims_called_as_extents_of_kernels():
    """A ceiling division, and what a padded image is, are expressions of the dims that kernels take as `extent_1`…"""
    nodes = [node("Concat", "a b", "c", axis=2), node("MaxPool", "c", "pooled", kernel_shape=[3], strides=[2], auto_pad="SAME_UPPER"), node("Add", "pooled pooled", "y")]
    proto = model(nodes, [(name, FLOAT, [1, 2, f"extent_{i}"]) for i, name in ((1, "a"), (2, "b"))], [("y", FLOAT, [1, 2, "l"])])
    check(proto, {"a": random(1, 2, 7), "b": random(1, 2, 12)}, exactly=True)


@pytest.mark.parametrize("dim", ["i_extent_1", "size_element_0", "x_dim_0"])
def test_dims_called_as_sizes_that_a_run_finds(dim):
    nodes = [node("NonZero", "x", "i"), node("Neg", "i", "y"), node("Expand", "z size", "w")]
    ports = [("x", FLOAT, [None]), ("z", FLOAT, [dim]), ("size", TensorProto.INT64, [2])]
    proto = model(nodes, ports, [("y", TensorProto.INT64, [1, "n"]), ("w", FLOAT, ["r", "c"])])
    check(proto, {"x": np.float32([1, 0, 2, 3]), "z": random(5), "size": np.array([4, 5])}, exactly=True)


def test_dims_and_values_called_threads():
    """The number of threads is an argument of kernels, such as the convolution's."""
    weights = random(16, 16, 3, 3)
    nodes = [node("Relu", "x", "threads"), node("Conv", "threads w", "y", pads=[1, 1, 1, 1])]
    proto = model(nodes, [("x", FLOAT, ["n", 16, "threads", "width"])], [("y", FLOAT, [None] * 4)], {"w": weights})
    check(proto, {"x": random(1, 16, 40, 30)})


def test_values_that_make_the_same_identifier():
    nodes = [node("NonZero", "x", "i_1"), node("NonZero", "z", "i.1"), node("Neg", "i_1", "y"), node("Neg", "i.1", "w")]
    ports = [("x", FLOAT, ["n"]), ("z", FLOAT, ["m"])]
    proto = model(nodes, ports, [("y", TensorProto.INT64, [1, "k"]), ("w", TensorProto.INT64, [1, "l"])])
    check(proto, {"x": np.float32([1, 0, 2, 3]), "z": random(12)}, exactly=True)


def test_names_of_macros():
    """Of the C++ and C headers that emitted files include."""
    names = ["NAN", "EOF", "M_PI", "BUFSIZ", "RAND_MAX", "va_end", "errno", "isnan"]
    nodes = [node("Add", f"{names[i]} {names[i + 1]}", f"y{i}") for i in range(0, len(names), 2)]
    proto = model(nodes, [(name, FLOAT, [5]) for name in names], [(f"y{i}", FLOAT, [5]) for i in range(0, len(names), 2)])
    check(proto, {name: random(5) for name in names}, exactly=True)


def test_names_of_halides_intrinsics():
    """Log tests bits with bitwise_and, and abs is one of a kernel's expressions."""
    nodes = [node("Add", "x x", "bitwise_and"), node("Neg", "bitwise_and", "abs"), node("Abs", "abs", "round"), node("Log", "round", "y")]
    values = model(nodes, [("x", FLOAT, [5, 40])], [("y", FLOAT, [5, 40])])
    check(values, {"x": random(5, 40)})


@pytest.mark.parametrize("names", ["BoundaryConditions likely_if_innermost pitched", "unsafe_promise_clamped Internal dense", "estimate onnx reinterpret"])
@pytest.mark.parametrize("width", ["width", 11])
def test_functions_that_kernels_call(names, width):
    """Values may be called as what kernels use of Halide and of the headers that they include."""
    x, padded, result = names.split()
    nodes = [node("Neg", x, "negative"), node("Pad", "negative pads", padded, mode="reflect"), node("Gather", f"{padded} indices", result, axis=1)]
    ports = [(x, FLOAT, [3, width]), ("indices", TensorProto.INT64, [5])], [(result, FLOAT, [3, 5])]
    check(model(nodes, *ports, {"pads": np.array([0, 2, 0, 2])}), {x: random(3, 11), "indices": np.array([0, 14, 3, 7, -1])}, exactly=True)


@pytest.mark.parametrize("name", ["winograd", "onnx", "dense", "y"])
def test_kernel_of_its_value(name):
    """A kernel is called after its node, as its value may be."""
    nodes = [node("Conv", "x W", name, pads=[1, 1, 1, 1], name=name)]
    shapes = [1, 32, 30, 30], [1, 32, 30, 30]
    conv = model(nodes, [("x", FLOAT, shapes[0])], [(name, FLOAT, shapes[1])], {"W": random(32, 32, 3, 3) / 32})
    check(conv, {"x": random(*shapes[0])})
