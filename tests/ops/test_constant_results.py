"""Nodes with only constant operands, which the compiler folds, against onnxruntime."""

import numpy as np
import onnx
import onnx2halide
import pytest
from make_models import FLOAT, model, node
from onnx2halide.references import OnnxRuntime

IMAGE = [1, 6, 9, 10]


def draw(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)


@pytest.mark.parametrize(
    "made, constants",
    [
        (node("Conv", "c w", "m", pads=[1] * 4), {"w": draw(6, 6, 3, 3)}),
        (node("Conv", "c w", "m", group=6, pads=[2] * 4), {"w": draw(6, 1, 5, 5)}),
        (node("ConvTranspose", "c w", "m", strides=[2, 2]), {"w": draw(6, 6, 2, 2)}),
        (node("MaxPool", "c", "m", kernel_shape=[3, 3], strides=[2, 2]), {}),
        (node("AveragePool", "c", "m", kernel_shape=[2, 2], ceil_mode=1, strides=[2, 2]), {}),
        (node("GlobalAveragePool", "c", "m"), {}),
        (onnx.helper.make_node("Resize", ["c", "", "scales"], ["m"], mode="linear"), {"scales": np.array([1, 1, 1.5, 0.5], np.float32)}),
        (node("LRN", "c", "m", size=3), {}),
        (node("GridSample", "c grid", "m"), {"grid": draw(1, 4, 5, 2)}),
        (node("MatMul", "c w", "m"), {"w": draw(10, 33)}),
        (node("TopK", "c five", "m places", axis=1), {"five": np.array([5])}),
        (node("CumSum", "c last", "m"), {"last": np.int64(3)}),
        (node("Tile", "c counts", "m"), {"counts": np.array([2, 1, 3, 1])}),
    ],
    ids=lambda value: value.op_type + (f"-{len(value.attribute)}" if value.attribute else "") if isinstance(value, onnx.NodeProto) else "",
)
def test_results_of_constants(made, constants):
    nodes = [made, node("ReduceSum", "m", "sum", keepdims=0), node("Mul", "x sum", "y")]
    proto = model(nodes, [("x", FLOAT, IMAGE)], [("y", FLOAT, IMAGE)], {"c": draw(*IMAGE), **constants})
    inputs = {"x": draw(*IMAGE)}
    found, expected = onnx2halide.compile(proto).run_by_name(inputs)["y"], OnnxRuntime(proto).run(inputs)["y"]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())


# What a float makes of constants is a size. Inference does not compute the last ones itself.
@pytest.mark.parametrize(
    "size",
    ["Pow(sixteen, half)", "Sqrt(sixteen)", "Exp(half)", "Pow(three, half)", "ReduceL2<keepdims = 0>(sides)", "ReduceLogSum<keepdims = 0>(sides)"],
)
def test_sizes_computed_in_floats(size):
    constants = {"sixteen": np.float32(16), "half": np.float32(0.5), "three": np.int64(30), "sides": np.float32([30, 40])}
    text = f"""<ir_version: 9, opset_import: ["": 18]> g (float[1] x) => (float[n] y, int64 size) {{
        number = {size}
        size = Cast<to = 7>(number)
        axes = Constant<value_ints = [0]>()
        shape = Unsqueeze(size, axes)
        y = Expand(x, shape)
    }}"""
    proto = onnx.parser.parse_model(text)
    proto.graph.initializer.extend(onnx.numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items())
    inputs = {"x": draw(1)}
    found, expected = onnx2halide.compile(proto).run_by_name(inputs), OnnxRuntime(proto).run(inputs)
    np.testing.assert_array_equal(found["size"], expected["size"])
    np.testing.assert_array_equal(found["y"], expected["y"])


# Tensors of sizes.
SIZES = {
    "reduce_max": "{} = ReduceMax(floats)",
    "reduce_min": "{} = ReduceMin(floats)",
    "reduce_sum": "{} = ReduceSum(floats)",
    "reduce_prod": "{} = ReduceProd(floats)",
    "reduce_mean": "{} = ReduceMean(floats)",
    "reduce_mean_of_integers": "{} = ReduceMean(integers)",
    "reduce_along_an_axis": "rows = Reshape(integers, two_rows) {} = ReduceSum<keepdims = 0>(rows, first)",
    "clip": "{} = Clip(floats, half)",
    "relu": "{} = Relu(floats)",
    "running_sums": "{} = CumSum(integers, first)",
    "running_sums_in_reverse": "before = CumSum<reverse = 1, exclusive = 1>(floats, first) {} = Max(before, half)",
    "one_hot": "{} = OneHot(one, five, off_on)",
    "one_hot_along_the_first_axis": "{} = OneHot<axis = 0>(one, five, off_on)",
    "gather_elements": "{} = GatherElements(integers, one)",
    "arg_max": "largest = ArgMax(floats) {} = Add(largest, one)",
    "arg_min": "{} = ArgMin(integers)",
    "last_arg_max": "clipped = Min(integers, one) {} = ArgMax<select_last_index = 1>(clipped)",
    "halves": "narrow = Cast<to = 10>(floats) {} = Sqrt(narrow)",
    "bfloats": "short = Cast<to = 16>(floats) {} = Cast<to = 1>(short)",
    "shift_left": "{} = BitShift<direction = \"LEFT\">(unsigned, unsigned)",
    "shift_right": "shifted = BitShift<direction = \"RIGHT\">(unsigned, unsigned) {} = Max(shifted, unsigned)",
    "largest_two": "{}, places = TopK(floats, two)",
    "replaced": "{} = ScatterND(integers, places_of_one, nine)",
    "replaced_elements": "{} = ScatterElements(integers, one, nine)",
    "product": "row = Reshape(floats, one_row) column_of_floats = Reshape(floats, one_column) {} = MatMul(row, column_of_floats)",
    "places_of_what_is_not_zero": "found = NonZero(integers) {} = Add(found, one)",
    "compressed": "large = Greater(integers, two) {} = Compress(integers, large)",
    "distinct": "{} = Unique(floats)",
    "shape_of_found": "other = NonZero(floats) {} = Shape(other)",
    "picked_by_a_condition": "most, place = TopK(integers, one) is_large = Greater(most, two) alone = Squeeze(is_large) {} = If<then_branch = t () => (int64[a] u) { u = Identity(integers) }, else_branch = e () => (int64[b] v) { v = Identity(one) }>(alone)",
    "triangle": "column = Reshape(integers, one_column) lower = Trilu<upper = 0>(column) {} = Add(lower, one)",
}


def test_sizes_of_constants_are_known_to_the_compiler():
    sizes = [3, 4, 2, 3]
    integers = {"integers": sizes, "one": [1], "two": [2], "five": 5, "nine": [9], "first": [0], "off_on": [1, 3], "any": [-1]}
    integers |= {"two_rows": [2, -1], "one_row": [1, -1], "one_column": [-1, 1], "places_of_one": [[1]]}
    constants = {name: np.array(value) for name, value in integers.items()}
    constants |= {"floats": np.float32(sizes), "unsigned": np.uint64(sizes), "half": np.float32(3.5)}
    outputs = ", ".join(f"float[{name}] {name}" for name in SIZES)
    made = {name: text.replace("{}", f"{name}_sizes") for name, text in SIZES.items()}
    nodes = "\n".join(
        f"{text} {name}_integers = Cast<to = 7>({name}_sizes) {name}_shape = Reshape({name}_integers, any) {name} = Expand(x, {name}_shape)"
        for name, text in made.items()
    )
    proto = onnx.parser.parse_model(f"""<ir_version: 9, opset_import: ["": 18]> g (float x) => ({outputs}) {{ {nodes} }}""")
    proto.graph.initializer.extend(onnx.numpy_helper.from_array(value, name) for name, value in constants.items())
    inputs = {"x": draw()}
    compiled, expected = onnx2halide.compile(proto), OnnxRuntime(proto).run(inputs)
    assert {port.name: port.shape for port in compiled.outputs} == {name: value.shape for name, value in expected.items()}
    for name, value in compiled.run_by_name(inputs).items():
        np.testing.assert_array_equal(value, expected[name], err_msg=name)


def test_known_integers_of_64_bits():
    """None fits in 32 bits, and only inference can know them: `d` is not constant, but 0 for every size."""
    parts = {"a": np.array([-(2**63), 2**32, -(2**31)]), "zero": np.array([0])}
    nodes = [node("Shape", "x", "s"), node("Min", "s zero", "d"), node("Add", "a d", "y")]
    proto = model(nodes, [("x", FLOAT, ["n"])], [("y", onnx.TensorProto.INT64, [3])], parts)
    inputs = {"x": draw(3)}
    np.testing.assert_array_equal(onnx2halide.compile(proto).run_by_name(inputs)["y"], OnnxRuntime(proto).run(inputs)["y"])
