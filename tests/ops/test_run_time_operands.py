"""Operands known only at run time: axes, sizes, counts. Each model is compiled once and run with several of them, compared with ONNX's
reference; after numbers that it must reject, it is still usable."""

from dataclasses import dataclass, field

import numpy as np
import onnx
import onnx2halide
import pytest
from onnx import TensorProto, helper
from onnx2halide.compare import default_floor, default_tolerance, difference
from onnx2halide.references import OnnxReference, OnnxRuntime


def ints(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int64)


def scalar(number, dtype=np.int64) -> np.ndarray:
    return np.array(number, dtype)


def data(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


@dataclass
class Case:
    """A node, its operands in each run, and runs that fail, with their messages."""

    op: str
    runs: list[list]
    attributes: dict = field(default_factory=dict)
    outputs: int = 1
    refused: list[tuple[list, str]] = field(default_factory=list)
    engine: type = OnnxReference
    opset: int = 22
    result: int = TensorProto.FLOAT

    def __str__(self):
        texts = [f"{key}={value}" for key, value in self.attributes.items()]
        return " ".join([self.op, *("x".join(map(str, run.shape)) or "scalar" for run in self.runs[0] if run is not None), *texts])

    def model(self) -> onnx.ModelProto:
        """The model that is compiled; its outputs have the ranks of the first run's, as the checker requires them."""
        model = self.unranked_model()
        expected = self.engine(model).run(named(self.runs[0]))
        for output in model.graph.output:
            shape = output.type.tensor_type.shape
            shape.SetInParent()
            for axis in range(np.ndim(expected[output.name])):
                shape.dim.add().dim_param = f"{output.name}_{axis}"
        return model

    def unranked_model(self) -> onnx.ModelProto:
        """The operands' shapes are known, their elements and the results' shapes are not."""
        names = ["" if operand is None else f"x{i}" for i, operand in enumerate(self.runs[0])]
        results = [f"y{i}" for i in range(self.outputs)]
        node = helper.make_node(self.op, names, results, name=self.op.lower(), **self.attributes)
        inputs = [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(operand.dtype), operand.shape)
            for name, operand in zip(names, self.runs[0])
            if name
        ]
        outputs = [onnx.ValueInfoProto(name=name) for name in results]
        graph = helper.make_graph([node], "small", inputs, outputs)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=10)
        model = onnx.shape_inference.infer_shapes(model)
        for output in model.graph.output:
            if not output.type.WhichOneof("value"):
                output.type.tensor_type.elem_type = self.result
            output.type.tensor_type.ClearField("shape")
        return model


def named(operands: list) -> dict[str, np.ndarray]:
    return {f"x{i}": operand for i, operand in enumerate(operands) if operand is not None}


REDUCTIONS = ["L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare"]
X = data(3, 5, 20)
POSITIVE = np.abs(X) + 0.5
AXES = [[POSITIVE, ints(axis)] for axis in (0, 1, 2, -1)]
OUTSIDE = ([POSITIVE, ints(3)], "axis is 3, expected one in [-3, 2]")

CASES = [
    *(Case(f"Reduce{op}", AXES, {"keepdims": keeps}, refused=[OUTSIDE]) for op in REDUCTIONS for keeps in (0, 1)),
    Case("ReduceSum", [[X, ints(*axes)] for axes in ((0, 1), (2, 0), (-1, 1))], {"keepdims": 1}),
    Case("ReduceSum", [[X, ints(*axes)] for axes in ((0, 1), (2, 0), (-1, 1))], {"keepdims": 0}),
    Case("ReduceMean", [[data(2, 3, 4, 17), ints(*axes)] for axes in ((2, 3), (1, 2), (0, -1))], {"keepdims": 0}),
    Case("ReduceSum", [[X, ints()]], {"noop_with_empty_axes": 1}),
    *(
        Case(op, [[X, scalar(axis)] for axis in (0, 1, 2, -3)], {"reverse": reverse}, engine=engine, opset=opset,
             refused=[([X, scalar(-4)], "axis is -4, expected one in [-3, 2]")])
        for op, engine, opset in (("CumSum", OnnxReference, 22), ("CumProd", OnnxReference, 26))
        for reverse in (0, 1)
    ),
    *(
        Case("DFT", [[data(4, 6, 5, parts), length, scalar(axis)] for axis in (0, 1, 2, -2, -4)], {"inverse": inverse, "onesided": onesided},
             refused=[([data(4, 6, 5, parts), length, scalar(axis)], message) for axis, message in
                      ((3, "axis is 3, expected one in [0, 2]"), (-1, "axis is 3"), (-5, "axis is -5, expected one in [-4, 3]"))])
        for parts, inverse, onesided in ((1, 0, 0), (2, 0, 0), (1, 0, 1), (2, 1, 0), (2, 1, 1))
        for length in (None, scalar(7))
    ),
    Case("Squeeze", [[data(1, 5, 1, 2), ints(axis)] for axis in (0, 2, -2)], refused=[([data(1, 5, 1, 2), ints(1)], "axis 1 has extent 5, expected 1")]),
    Case("Unsqueeze", [[data(4, 5), ints(*axes)] for axes in ((0, 1), (-1, 0), (1, 2))]),
    Case("Reshape", [[X, ints(*shape)] for shape in ((15, 20), (-1, 10), (0, -1), (100, 3), (0, 100))],
         refused=[([X, ints(7, 8)], "number of elements is 56, expected 300"), ([X, ints(-1, 7)], "expected 300")]),
    Case("Reshape", [[X, ints(*shape)] for shape in ((3, 5, 2, 10), (0, 0, -1, 4), (1, -1, 3, 1))]),
    Case("Slice", [[X, ints(s), ints(e)] for s, e in ((0, 2), (1, 3), (-2, 2**63 - 1), (2, 1), (-(2**63), -1))]),
    Case("Slice", [[X, ints(s), ints(e), ints(a)] for s, e, a in ((0, 2, 0), (3, 17, 2), (-2, 2**63 - 1, 1), (1, -1, -1))],
         refused=[([X, ints(0), ints(1), ints(5)], "axis is 5")]),
    Case("Slice", [[X, ints(s), ints(e), ints(a), ints(t)] for s, e, a, t in ((0, 20, 2, 3), (19, -(2**63), 2, -2), (-1, -9, 1, -1), (1, 9, 0, 1))],
         refused=[([X, ints(0), ints(1), ints(0), ints(0)], "the size of a step is 0")]),
    Case("Slice", [[X, ints(1, 0), ints(9, 3), ints(*axes)] for axes in ((1, 2), (2, 0), (-3, -2))]),
    Case("Slice", [[X, ints(2, -2, 0), ints(-5, 9, 3), ints(*axes), ints(-1, 1, 2)] for axes in ((1, 0, 2), (0, -1, 1), (-1, -2, 0))]),
    Case("Pad", [[data(3, 5), ints(*pads)] for pads in ((0, 1, 2, 0), (0, 0, 0, 0), (-1, 2, 0, -2))], engine=OnnxRuntime),
    Case("Pad", [[data(3, 5), ints(1, 2), None, ints(axis)] for axis in (0, 1, -1)]),
    Case("Pad", [[data(3, 5), ints(*pads)] for pads in ((0, 1, 2, 0), (1, 1, 1, 1))], {"mode": "reflect"}),
    Case("Tile", [[data(3, 5), ints(*repeats)] for repeats in ((1, 1), (2, 3), (1, 4))]),
    Case("Expand", [[data(3, 1), ints(*shape)] for shape in ((3, 5), (1, 4), (3, 1))]),
    Case("ConstantOfShape", [[ints(*shape)] for shape in ((3, 5), (1, 4), (2, 0))]),
    Case("Split", [[data(3, 9), ints(*sizes)] for sizes in ((2, 7), (5, 4), (9, 0), (0, 9))], {"axis": 1}, outputs=2,
         refused=[([data(3, 9), ints(2, 2)], "the sum of split is 4, expected 9")]),
    Case("Split", [[data(2, 3, 1, 4, 2), ints(*sizes)] for sizes in ((0, 1), (1, 0))], {"axis": 2}, outputs=2),
    Case("NonZero", [[scalar(3)], [scalar(0)]], engine=OnnxRuntime),  # ONNX says that a scalar has no coordinates
    Case("OneHot", [[ints(0, 2, -1), scalar(depth), np.array([0, 1], np.float32)] for depth in (3, 5)]),
    Case("OneHot", [[ints(0, 2, -1), scalar(depth, np.float32), np.array([0, 1], np.float32)] for depth in (3, 5)]),
    Case("Trilu", [[data(5, 6), scalar(k)] for k in (0, 2, -3, 9)]),
    Case("TopK", [[X, ints(k)] for k in (1, 7, 20, 0)], outputs=2, refused=[([X, ints(21)], "k is 21, expected 0 to 20")]),
    Case("Range", [[scalar(s), scalar(e), scalar(d)] for s, e, d in ((0, 5, 1), (9, -4, -3), (5, 5, 1), (2**40, 2**40 + 3, 2))],
         result=TensorProto.INT64, refused=[([scalar(0), scalar(1), scalar(0)], "delta is 0")]),
    Case("Range", [[scalar(s, np.float32), scalar(e, np.float32), scalar(d, np.float32)] for s, e, d in ((0, 5, 0.5), (9, -4, -3.25), (5, 5, 1))]),
    Case("CenterCropPad", [[data(4, 7), ints(*shape)] for shape in ((4, 7), (2, 9), (7, 3))]),
    *(Case(op, [[scalar(size)] for size in (1, 8, 17)]) for op in ("HannWindow", "HammingWindow", "BlackmanWindow")),
    Case("Gather", [[X, ints(*places)] for places in ((0, 2), (-1, -3))],
         refused=[([X, ints(0, 3)], "input 1 has the index 3, expected one in [-3, 2]"), ([X, ints(-4, 0)], "has the index -4")]),
    Case("GatherElements", [[data(3, 4), np.array([[0, 3], [-1, 2], [1, 1]])]], {"axis": 1},
         refused=[([data(3, 4), np.array([[0, 4], [-1, 2], [1, 1]])], "the index 4, expected one in [-4, 3]")]),
    Case("GatherND", [[X, np.array([[0, 4], [-1, 2]])]], refused=[([X, np.array([[3, 4], [-1, 2]])], "the index 3, expected one in [-3, 2]")]),
    Case("ScatterElements", [[data(3, 4), np.array([[0, 2, 1, -1]]), data(1, 4)]],
         refused=[([data(3, 4), np.array([[0, 3, 1, -1]]), data(1, 4)], "the index 3")]),
    Case("ScatterND", [[X, np.array([[0, 4], [-1, 2]]), data(2, 20)]],
         refused=[([X, np.array([[0, 5], [-1, 2]]), data(2, 20)], "the index 5, expected one in [-5, 4]")]),
    Case("Compress", [[X, X > least] for least in (0, 9, -9)], engine=OnnxRuntime),
    Case("Compress", [[X, X[0] > least] for least in (0, 1)], engine=OnnxRuntime),
    Case("Compress", [[X, X[:, :, 0].T[:3] > 0]], {"axis": 2}, engine=OnnxRuntime),
    Case("Dropout", [[X, scalar(0.5, np.float32), scalar(False, bool)], [X, scalar(0, np.float32), scalar(True, bool)]], outputs=2),
    Case("MaxUnpool", [[data(1, 1, 2, 2), np.array([[[[5, 7], [13, 15]]]]), ints(1, 1, 4, 4)]],
         {"kernel_shape": [2, 2], "strides": [2, 2]}),
]

RESIZED = data(1, 2, 5, 7)
SCALES = [[RESIZED, None, np.array([1, 1, *scales], np.float32)] for scales in ((2, 3), (0.6, 0.4), (1, 1), (1.3, 0.15))]
SIZES = [[RESIZED, None, None, ints(1, 2, *sizes)] for sizes in ((10, 3), (1, 1), (5, 7), (3, 11))]
CASES += [
    Case("Resize", runs, {"mode": mode, "coordinate_transformation_mode": transformation})
    for runs in (SCALES, SIZES)
    for mode, transformation in (
        ("nearest", "asymmetric"), ("nearest", "half_pixel"), ("linear", "half_pixel"), ("linear", "align_corners"),
        ("linear", "half_pixel_symmetric"),
    )
]
CASES += [
    Case("Resize", runs, {"mode": mode, "coordinate_transformation_mode": "pytorch_half_pixel"}, engine=OnnxRuntime)
    for runs in (SCALES, SIZES)
    for mode in ("linear", "cubic")
]
CASES += [
    Case("Resize", runs, {"mode": mode, "antialias": 1}) for runs in (SCALES, SIZES) for mode in ("linear", "cubic")
]
CASES += [
    Case("Resize", [[RESIZED, None, None, ints(*sizes)] for sizes in ((10, 3), (4, 9))],
         {"mode": "linear", "axes": [2, 3], "keep_aspect_ratio_policy": policy})
    for policy in ("not_larger", "not_smaller")
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_runs_as_the_reference(case):
    reference, compiled = case.engine(case.unranked_model()), onnx2halide.compile(case.model())
    for operands, message in case.refused:
        with pytest.raises(Exception) as error:
            compiled.run_by_name(named(operands))
        assert message in str(error.value)
    for operands in case.runs:
        inputs = named(operands)
        expected = reference.run(inputs)
        for name, array in compiled.run_by_name(inputs).items():
            found = difference(array, np.asarray(expected[name]))
            limits = default_tolerance(array.dtype), default_floor(array.dtype, inputs.values())
            assert not found.exceeds(*limits), f"{name} of {operands[1:]}: {found.text()}"


VIEWS = [
    "float[6] x, int64 n) => (float[a] y) { zero = Constant <value_ints = [0]> () e = Unsqueeze (n, zero) y = Slice (x, zero, e, zero)",
    "float[6] x, int64[1,1] n) => (float[a] y) { zero = Constant <value_ints = [0]> () m = Squeeze (n) e = Unsqueeze (m, zero) y = Slice (x, zero, e, zero)",
    "float[6] x, int64[1] n) => (float[a] y) { zero = Constant <value_ints = [0]> () e = Add (n, n) f = Identity (e) y = Slice (x, zero, f, zero)",
]


@pytest.mark.parametrize("text", VIEWS)
def test_operands_that_are_views(text):
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 18]> g ({text} }}')
    compiled, reference = onnx2halide.compile(model), OnnxReference(model)
    shape = [dim.dim_value for dim in model.graph.input[1].type.tensor_type.shape.dim]
    for number in (1, 3, 2):
        inputs = {"x": data(6), "n": np.full(shape, number)}
        np.testing.assert_array_equal(compiled.run_by_name(inputs)["y"], reference.run(inputs)["y"])


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge", "wrap"])
def test_constant_pads_along_an_axis_known_at_run_time(mode):
    text = f'float[7] x, int64[1] axes) => (float[a] y) {{ p = Constant <value_ints = [4, -2]> () y = Pad <mode = "{mode}"> (x, p, , axes)'
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 19]> g ({text} }}')
    inputs = {"x": data(7), "axes": ints(0)}
    np.testing.assert_array_equal(onnx2halide.compile(model).run_by_name(inputs)["y"], OnnxRuntime(model).run(inputs)["y"])


@pytest.mark.parametrize("start", [2**63 - 1, 2**31, 4, -2, -(2**31) - 5, -(2**63)])
@pytest.mark.parametrize("operand, runs", [("axes", (0, 1)), ("steps", (1, 2, -1))])
def test_constant_starts_beside_numbers_known_at_run_time(start, operand, runs):
    given = "axes, one" if operand == "axes" else "zero, steps"
    text = f"""float[6,6] x, int64[1] {operand}) => (float[a,b] y) {{ zero = Constant <value_ints = [0]> () one = Constant <value_ints = [1]> ()
        start = Constant <value_ints = [{start}]> () end = Constant <value_ints = [5]> () y = Slice (x, start, end, {given})"""
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 18]> g ({text} }}')
    compiled, reference = onnx2halide.compile(model), OnnxRuntime(model)
    for number in runs:
        inputs = {"x": data(6, 6), operand: ints(number)}
        np.testing.assert_array_equal(compiled.run_by_name(inputs)["y"], reference.run(inputs)["y"])


@pytest.mark.parametrize("last", ["b = Softmax <axis = 1> (x) c = MatMul (b, w) z = Softmax (c)", "b = MatMul (x, w) c = Add (b, w) z = MatMul (b, c)"])
def test_outputs_that_are_views_of_unknown_shape(last):
    """Nothing computed later overwrites the memory that an output is a view of."""
    text = f"float[8,8] x, float[8,8] w, int64[2] s) => (float[a,b] r, float[8,8] z) {{ a = Abs (x) r = Reshape (a, s) {last}"
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 18]> g ({text} }}')
    inputs = {"x": data(8, 8), "w": data(8, 8) + 1, "s": ints(4, 16)}
    outputs, expected = onnx2halide.compile(model).run_by_name(inputs), OnnxRuntime(model).run(inputs)
    np.testing.assert_array_equal(outputs["r"], expected["r"])
    np.testing.assert_allclose(outputs["z"], expected["z"], rtol=1e-5)


# The extent of y's second axis does not depend on the run.
KNOWN_IN_PART = [
    "zeros = Constant <value_ints = [0, 0, 0, 0, 0]> () pads = Concat <axis = 0> (zeros, n) y = Pad (x, pads)",
    # As F.pad is exported by TorchScript.
    "zeros = Constant <value_ints = [0, 0, 0, 0]> () two = Constant <value_ints = [2]> () ends = Concat <axis = 0> (two, n, zeros)"
    "any = Constant <value_ints = [-1]> () rows = Constant <value_ints = [-1, 2]> () first = Constant <value_ints = [-10]> () zero = Constant <value_ints = [0]> ()"
    "pairs = Reshape (ends, rows) turned = Slice (pairs, any, first, zero, any) columns = Transpose (turned) pads = Reshape (columns, any) y = Pad (x, pads)",
    "ones = Constant <value_ints = [1, 1]> () times = Concat <axis = 0> (ones, n) y = Tile (x, times)",
    "three = Constant <value_ints = [3]> () zeros = Constant <value_ints = [0, 0]> () ends = Concat <axis = 0> (three, n) axes = Constant <value_ints = [1, 2]> ()"
    "y = Slice (x, zeros, ends, axes)",
]


@pytest.mark.parametrize("nodes", KNOWN_IN_PART, ids=range(len(KNOWN_IN_PART)))
def test_operands_that_are_known_in_part(nodes):
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 18]> g (float[2,4,6] x, int64[1] n) => (float[a,b,c] y) {{ {nodes} }}')
    compiled, reference = onnx2halide.compile(model), OnnxReference(model)
    for number in (1, 3, 2):
        inputs = {"x": data(2, 4, 6), "n": ints(number)}
        expected = reference.run(inputs)["y"]
        np.testing.assert_array_equal(compiled.run_by_name(inputs)["y"], expected)
        assert compiled.outputs[0].shape == (*expected.shape[:2], None)


def test_extents_that_a_run_joins():
    """What two masks select, each possibly one element or none, in several operators."""
    model = onnx.parser.parse_model("""<ir_version: 10, opset_import: ["" : 18]> g (float[size] x, bool[size] first, bool[size] second) => (float[n] y) {
        a = Compress (x, first) b = Compress (x, second) ab = Add (a, b) ba = Mul (b, a) both = Mul (ab, ba) again = Add (a, both) y = Mul (b, again)
    }""")
    compiled, reference = onnx2halide.compile(model), OnnxReference(model)
    x = np.arange(1, 5, dtype=np.float32)
    for first, second in ((4, 4), (1, 3), (2, 1), (1, 1), (0, 1), (1, 0), (0, 0)):
        inputs = {"x": x, "first": np.arange(4) < first, "second": np.arange(4) < second}
        np.testing.assert_allclose(compiled.run_by_name(inputs)["y"], reference.run(inputs)["y"], rtol=1e-6)


# Starts, ends and steps: without axes, and with both.
RUNS = [
    [((1,), (4,), (2,)), ((-3, -1), (-1, -4), (1, -1))],
    [((1, 0), (4, 3), (2, 1)), ((-2, 1), (9, -1), (1, 1))],
]


@pytest.mark.parametrize("operator", ["Slice (x, s, e)", "Slice (x, s, e, axes)", "Slice (x, s, e, axes, t)", "Slice (x, s, e, none, t)"])
def test_slices_of_as_many_axes_as_a_run_says(operator):
    """The numbers of starts, ends and steps are open dims; if axes are given, these determine them as well."""
    model = onnx.parser.parse_model(f"""<ir_version: 10, opset_import: ["" : 18]> g (float[n,m] x, int64[k] s, int32[l] small, int64[p] t) => (float[a,b] y) {{
        axes = Constant <value_ints = [1, 0]> () e = Cast <to = 7> (small) y = {operator.replace("none", "")} }}""")
    compiled, reference = onnx2halide.compile(model), OnnxReference(model)
    for starts, ends, steps in RUNS["axes" in operator]:
        inputs = {"x": data(5, 4), "s": ints(*starts), "small": np.array(ends, np.int32), "t": ints(*steps)}
        np.testing.assert_array_equal(compiled.run_by_name(inputs)["y"], reference.run(inputs)["y"])
    if "axes" in operator:
        with pytest.raises(ValueError, match="the shape's number of elements is 2, expected 1"):
            compiled.run_by_name({"x": data(5, 4), "s": ints(0), "small": np.array([2, 1], np.int32), "t": ints(1, 1)})


def test_steps_beyond_any_end():
    """As tf2onnx writes a slice of one element, along an axis of open size."""
    model = onnx.parser.parse_model("""<ir_version: 10, opset_import: ["" : 18]> g (float[n,1] x, int64[2] s, int64[2] e) => (float[a,b] y) {
        axes = Constant <value_ints = [0, 1]> () t = Constant <value_ints = [1000000000, 1]> () y = Slice (x, s, e, axes, t) }""")
    compiled, reference = onnx2halide.compile(model), OnnxReference(model)
    for rows, starts in ((5, (2, 0)), (1, (0, 0)), (4, (-1, 0)), (3, (7, 0)), (9, (0, 0))):
        inputs = {"x": data(rows, 1), "s": ints(*starts), "e": ints(9, 1)}
        np.testing.assert_array_equal(compiled.run_by_name(inputs)["y"], reference.run(inputs)["y"])
