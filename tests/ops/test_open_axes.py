"""Rows, copies, reductions and elementwise nodes with extents known only at run time: one compiled model at several sizes."""

import numpy as np
import onnx
import onnx2halide
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx2halide.references import OnnxRuntime
from open_models import check, model, weights


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


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge", "wrap"])
@pytest.mark.parametrize("pads", [(0, 0, 1, 1, 0, 0, 1, 1), (0, 0, 0, 3, 0, 0, 0, 0), (0, 0, 2, 0, 0, 1, 3, 0), (0, 0, -1, 2, 0, 0, 2, -1), None], ids=str)
@pytest.mark.parametrize("type", [TensorProto.FLOAT, TensorProto.UINT8], ids=["float", "bytes"])
def test_pads(mode, pads, type):
    """Rows with fewer elements than a vector's lanes, and of many vectors. Without `pads` these are given at run time."""
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
    """Like the rotary embedding of a decoder's keys, which may have one head."""
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


@pytest.mark.parametrize("frames", [1, 5000, 7000])
def test_window_of_a_long_table(frames):
    """Like a table of relative positions, of which each length reads another part: products of its extents exceed 32 bits."""
    table = np.random.default_rng(0).random((1, 9999, 64), np.float32)
    proto = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["": 17]>
        g (float[t] x, float[1,9999,64] table) => (float[1,n,64] y) {
            t = Shape (x) middle = Constant <value_ints = [5000]> () start = Sub (middle, t) end = Add (middle, t)
            one = Constant <value_ints = [1]> () y = Slice (table, start, end, one) }""")
    inputs = {"x": np.zeros(frames, np.float32), "table": table}
    assert np.array_equal(onnx2halide.compile(proto).run_by_name(inputs)["y"], OnnxRuntime(proto).run(inputs)["y"])


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


@pytest.mark.parametrize("x, r, bounds", [([2, 0, 3], ["a", "b", 3], {}), ([3], ["b"], {"b": "1..2"})])
def test_open_axis_that_can_only_be_broadcast(x, r, bounds):
    """Beside an axis of another extent, the open one must be 1."""
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in (("x", x), ("r", r))]
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, [f"y{axis}" for axis in range(len(x))])
    graph = helper.make_graph([helper.make_node("Add", ["x", "r"], ["y"])], "open", ports, [result])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    check(proto, [{"x": tuple(x), "r": tuple(1 if isinstance(dim, str) else dim for dim in r)}], dims=bounds)
