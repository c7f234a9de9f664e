"""Quantised operators against ONNX's reference and onnxruntime, which has those of Microsoft's domain. Integers must be equal; if
onnxruntime itself differs from one processor to another, a few may differ by one step (`steps`)."""

from dataclasses import dataclass

import ml_dtypes  # noqa: F401, which makes bfloat16 a dtype of numpy
import numpy as np
import onnx
import onnx2halide
import pytest
from onnx import TensorProto, helper
from onnx2halide.compare import default_floor, default_tolerance, difference
from onnx2halide.references import OnnxReference, OnnxRuntime
from reference_cases import Case, Input, x

MICROSOFT = "com.microsoft"


@dataclass
class Quantised(Case):
    opset: int = 21
    steps: int = 0

    def model(self) -> onnx.ModelProto:
        """The outputs' types are those of the engine's results."""
        names = ["" if operand is None else f"x{i}" for i, operand in enumerate(self.operands)]
        named = [(name, operand) for name, operand in zip(names, self.operands) if name]
        inputs = [port(name, operand) for name, operand in named if isinstance(operand, Input)]
        constants = [onnx.numpy_helper.from_array(operand, name) for name, operand in named if not isinstance(operand, Input)]
        results = [f"y{i}" for i in range(self.outputs)]
        node = helper.make_node(self.op, names, results, **self.attributes)
        graph = helper.make_graph([node], "small", inputs, [onnx.ValueInfoProto(name=name) for name in results], constants)
        opsets = [helper.make_opsetid("", self.opset), helper.make_opsetid(MICROSOFT, 1)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
        for output in model.graph.output:
            array = self.engine(model).run(self.inputs())[output.name]
            output.CopyFrom(helper.make_tensor_value_info(output.name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape))
        return model


def port(name: str, operand: Input) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(operand.dtype)), operand.shape)


def u8(*shape) -> Input:
    return x(*shape, dtype="uint8", between=(0, 256))


def i8(*shape) -> Input:
    return x(*shape, dtype="int8", between=(-128, 128))


def weights(*shape, dtype=np.int8) -> np.ndarray:
    limits = np.iinfo(dtype)
    return np.random.default_rng(1).integers(limits.min, limits.max + 1, shape).astype(dtype)


def scale(*shape) -> np.ndarray:
    return np.random.default_rng(2).uniform(0.01, 0.1, shape).astype(np.float32)


f32, uint8, int8 = np.float32, np.uint8, np.int8


def quantise():
    for dtype, zero in (("uint8", 128), ("int8", -3), ("uint16", 40000), ("int16", 7)):
        numbers = x(3, 17, between=(-20, 20))
        yield Quantised("QuantizeLinear", [numbers, f32(0.1), np.dtype(dtype).type(zero)])
        yield Quantised("QuantizeLinear", [numbers, f32(0.1)], {"output_dtype": helper.np_dtype_to_tensor_dtype(np.dtype(dtype))})
        quantised = x(3, 17, dtype=dtype, between=(np.iinfo(dtype).min, np.iinfo(dtype).max))
        yield Quantised("DequantizeLinear", [quantised, f32(0.1), np.dtype(dtype).type(zero)])
        yield Quantised("DequantizeLinear", [quantised, x(between=(0.1, 1)), x(dtype=dtype, between=(0, 99))])
    # Halves, which are rounded to even numbers, and what is beyond the range.
    halves = np.arange(-300, 300, 0.5, dtype=f32)
    for zero in (uint8(3), int8(3)):
        yield Quantised("QuantizeLinear", [Given(halves), f32(1), zero])
    # A product with the scale's reciprocal is as good as a division next to where rounding changes, but not there.
    for step in (0.1, 0.0173, 7, 1e-17, 1e17, 1e-25):
        middles = halves * f32(step)
        around = [middles, np.nextafter(middles, f32(np.inf)), np.nextafter(middles, f32(-np.inf))]
        yield Quantised("QuantizeLinear", [Given(np.stack(around)), f32(step), int8(3)])
    for step in (0.5, 0.0173):
        yield Quantised("QuantizeLinear", [Given(f32([np.nan, np.inf, -np.inf, 1e30, -1e30])), f32(step), uint8(7)], engine=OnnxRuntime)
    for axis in (0, 1, -1):
        extent = (3, 5, 8)[axis]
        yield Quantised("QuantizeLinear", [x(3, 5, 8), scale(extent), weights(extent)], {"axis": axis})
        yield Quantised("QuantizeLinear", [x(3, 5, 8), x(extent, between=(0.1, 1)), u8(extent)], {"axis": axis}, opset=13)
        yield Quantised("DequantizeLinear", [i8(3, 5, 8), scale(extent), weights(extent)], {"axis": axis})
        for block in (2, 3):
            blocks = [3, 5, 8]
            blocks[axis] = -(-blocks[axis] // block)
            attributes = {"axis": axis, "block_size": block}
            yield Quantised("QuantizeLinear", [x(3, 5, 8), scale(*blocks), weights(*blocks)], attributes)
            yield Quantised("DequantizeLinear", [u8(3, 5, 8), x(*blocks), u8(*blocks)], attributes)
    yield Quantised("QuantizeLinear", [x(17), scale(1), weights(1)], opset=10)
    yield Quantised("QuantizeLinear", [x(), x(1, between=(0.1, 1)), u8(1)], engine=OnnxRuntime)
    yield Quantised("DequantizeLinear", [x(3, 17, dtype="int32", between=(-(2**31), 2**31)), f32(0.1)])
    yield Quantised("QuantizeLinear", [x(3, 17, dtype="int32", between=(-2000, 2000)), f32(7), int8(1)], opset=13)
    for dtype in ("float16", "bfloat16"):
        half = np.dtype(dtype).type
        yield Quantised("QuantizeLinear", [x(3, 17, dtype=dtype, between=(-20, 20)), half(0.1), int8(-3)], opset=19)
        yield Quantised("DequantizeLinear", [i8(3, 17), half(0.1), int8(-3)], opset=19)
    yield Quantised("QuantizeLinear", [x(3, 17, dtype="float16", between=(-20, 20)), np.float16(0.1), int8(-3)], {"precision": TensorProto.FLOAT}, opset=23)
    yield Quantised("DequantizeLinear", [i8(3, 17), f32(0.1), int8(-3)], {"output_dtype": TensorProto.FLOAT16}, opset=23)
    for shape in ((), (3, 17)):
        yield Quantised("DynamicQuantizeLinear", [x(*shape)], outputs=3)
    for bounds in ((2, 5), (-5, -2), (0, 0)):
        yield Quantised("DynamicQuantizeLinear", [x(3, 17, between=bounds)], outputs=3)


def convolutions():
    attributes = [{}, {"pads": [1, 0, 2, 1]}, {"strides": [2, 3], "pads": [1, 1, 1, 1]}, {"dilations": [2, 1], "pads": [2, 2, 2, 2]}, {"auto_pad": "SAME_UPPER", "strides": [2, 2]}]
    shapes = [((1, 3, 9, 11), (5, 3, 3, 3), 1), ((2, 16, 7, 7), (17, 16, 1, 1), 1), ((1, 6, 8, 8), (9, 2, 3, 3), 3), ((1, 8, 6, 9), (8, 1, 3, 3), 8), ((1, 40, 6, 9), (40, 1, 3, 3), 40), ((1, 9, 6, 9), (18, 1, 3, 3), 9)]
    for data, weight, group in shapes:
        channels = weight[0]
        for attribute in attributes:
            attribute = {"group": group, **attribute}
            result = [f32(0.7), uint8(100)]
            bias = np.random.default_rng(3).integers(-9999, 9999, channels).astype(np.int32)
            yield Quantised("QLinearConv", [u8(*data), f32(0.02), uint8(120), weights(*weight), scale(channels), np.zeros(channels, int8), *result, bias], attribute, engine=OnnxRuntime)
        yield Quantised("ConvInteger", [u8(*data), weights(*weight, dtype=uint8), uint8(3), uint8(130)], attribute, engine=OnnxRuntime)
    yield Quantised("QLinearConv", [i8(1, 3, 9, 11), x(between=(0.01, 0.1)), i8(), i8(5, 3, 3, 3), x(5, between=(0.01, 0.1)), x(5, dtype="int8", between=(0, 1)), f32(0.7), int8(3)], {"pads": [1, 1, 1, 1]}, engine=OnnxRuntime)
    yield Quantised("QLinearConv", [u8(1, 3, 9, 11), f32(0.02), uint8(120), weights(5, 3, 3, 3), f32(0.1), int8(0), f32(0.7), uint8(3)])
    # onnxruntime requires one zero point of the weights for all channels, the reference one per channel.
    yield Quantised("QLinearConv", [i8(1, 3, 9, 11), f32(0.02), int8(12), weights(5, 3, 3, 3), scale(5), weights(5), f32(0.7), int8(3)], {"pads": [1, 1, 1, 1]})
    # Quads of channels.
    padded = {"pads": [1, 0, 2, 1], "strides": [1, 2]}
    yield Quantised("ConvInteger", [u8(1, 8, 9, 11), weights(5, 8, 3, 3), u8()], padded)
    yield Quantised("ConvInteger", [i8(1, 8, 9, 11), weights(33, 8, 3, 3), i8()], padded)
    yield Quantised("ConvInteger", [i8(1, 8, 9, 11), weights(5, 8, 3, 3, dtype=uint8), int8(-7), uint8(128)], padded)
    yield Quantised("ConvInteger", [u8(2, 3, 9, 11), weights(16, 3, 7, 7), uint8(9)], {"pads": [3, 3, 3, 3], "strides": [2, 2]})
    yield Quantised("ConvInteger", [i8(2, 5, 9, 11), weights(16, 5, 1, 1), i8()])
    yield Quantised("ConvInteger", [i8(1, 8, 9, 11), weights(5, 8, 3, 3, dtype=uint8), int8(-7), uint8(125)], padded)
    yield Quantised("QLinearConv", [u8(2, 64, 5, 6), f32(0.02), uint8(120), weights(17, 64, 3, 3), scale(17), np.zeros(17, int8), f32(0.7), uint8(3)], {"pads": [1, 1, 1, 1]}, engine=OnnxRuntime)
    yield Quantised("ConvInteger", [i8(2, 3, 19), i8(4, 3, 5)], {"pads": [2, 2]})
    yield Quantised("ConvInteger", [u8(1, 2, 5, 6, 7), weights(3, 2, 2, 2, 2), uint8(9)])


def products():
    for left, right in (((7, 17), (17, 9)), ((1, 33), (33, 1)), ((2, 3, 5, 8), (8, 16)), ((2, 1, 5, 8), (3, 8, 17)), ((17,), (17, 5)), ((5, 17), (17,)), ((64, 130), (130, 48))):
        yield Quantised("MatMulInteger", [u8(*left), i8(*right), uint8(12), int8(-3)])
        yield Quantised("MatMulInteger", [u8(*left), weights(*right), u8()])
        yield Quantised("MatMulInteger", [i8(*left), weights(*right, dtype=uint8), None, uint8(128)])
        result = [f32(3), uint8(128)]
        yield Quantised("QLinearMatMul", [u8(*left), f32(0.1), uint8(120), weights(*right), f32(0.05), int8(3), *result], engine=OnnxRuntime)
        yield Quantised("QLinearMatMul", [i8(*left), x(between=(0.01, 0.1)), i8(), i8(*right), f32(0.05), int8(3), f32(3), int8(-3)], engine=OnnxRuntime)
    # By column.
    yield Quantised("MatMulInteger", [u8(7, 17), weights(17, 9), uint8(12), weights(9)], engine=OnnxRuntime)
    yield Quantised("QLinearMatMul", [u8(7, 17), f32(0.1), uint8(120), weights(17, 9), scale(9), weights(9), f32(3), uint8(128)], engine=OnnxRuntime)
    yield Quantised("MatMulInteger", [u8(2, 7, 17), i8(2, 17, 9), uint8(12), weights(2, 1, 9)])
    # By row, which onnxruntime supports only for MatMulIntegerToFloat; the reference treats a vector as one of columns.
    yield Quantised("MatMulInteger", [u8(2, 7, 17), i8(17, 9), weights(2, 7, 1, dtype=uint8)])
    yield Quantised("QLinearMatMul", [i8(7, 17), scale(7, 1), weights(7, 1), i8(17, 9), scale(1, 9), weights(1, 9), f32(3), int8(1)])
    for bias in ([], [scale(9)]):
        yield microsoft("MatMulIntegerToFloat", [u8(7, 17), weights(17, 9), f32(0.1), f32(0.02), uint8(12), int8(3), *bias])
        yield microsoft("MatMulIntegerToFloat", [u8(2, 7, 17), i8(17, 9), x(between=(0.1, 1)), scale(9), u8(), weights(9), *bias])
        yield microsoft("DynamicQuantizeMatMul", [x(7, 17), weights(17, 9), f32(0.02), int8(3), *bias])
        yield microsoft("DynamicQuantizeMatMul", [x(2, 7, 17), i8(17, 9), scale(9), None, *bias])
    yield microsoft("DynamicQuantizeMatMul", [x(7, 17, between=(0, 0)), weights(17, 9), f32(0.02)])


def gemms():
    bias = np.arange(-4, 5, dtype=np.int32) * 1000
    as_bytes, result = [f32(0.02), uint8(120)], [f32(0.7), uint8(100)]
    for shape in ((9,), (7, 1), (7, 9), (), (1,)):
        yield microsoft("QGemm", [u8(7, 16), *as_bytes, weights(16, 9), f32(0.01), int8(3), np.resize(bias, shape), *result])
    for trans_a, trans_b in ((0, 0), (1, 0), (0, 1), (1, 1)):
        left, right = ((16, 7) if trans_a else (7, 16)), ((9, 16) if trans_b else (16, 9))
        transposed = {"transA": trans_a, "transB": trans_b}
        by_column = [scale(9), weights(9)]
        yield microsoft("QGemm", [u8(*left), *as_bytes, weights(*right), scale(9), np.zeros(9, int8), bias, *result], **transposed)
        yield microsoft("QGemm", [u8(*left), *as_bytes, weights(*right), *by_column, bias], alpha=0.5, **transposed)
        yield microsoft("QGemm", [i8(*left), x(between=(0.01, 0.1)), i8(), i8(*right), *by_column, bias, f32(0.7), int8(3)], alpha=0.3, **transposed)
    for dtype in (int8, uint8):
        yield microsoft("QGemm", [u8(7, 17), *as_bytes, weights(17, 9, dtype=dtype), f32(0.01), dtype(99), None, *result])
    yield microsoft("QGemm", [i8(64, 128), f32(0.02), int8(-7), weights(128, 48), scale(48), np.zeros(48, int8), x(48, dtype="int32", between=(-999, 999))])
    yield microsoft("QGemm", [u8(7, 16), *as_bytes, weights(16, 9), f32(0.01), int8(3), bias, f32(0.7)])
    yield microsoft("QGemm", [u8(7, 16), *as_bytes, weights(16, 9), f32(0.01), int8(3), bias, None, uint8(100)])


def microsoft(op: str, operands: list, steps: int = 0, **attributes) -> Quantised:
    return Quantised(op, operands, {"domain": MICROSOFT, **attributes}, engine=OnnxRuntime, steps=steps)


def microsoft_operators():
    a, b = [u8(3, 17), f32(0.0213), uint8(120)], [u8(17), f32(0.0457), uint8(100)]
    for op in ("QLinearAdd", "QLinearMul"):
        yield microsoft(op, [*a, *b, f32(0.0611), uint8(128)], steps=1)
        yield microsoft(op, [i8(3, 17), f32(0.0213), int8(0), i8(3, 1), x(between=(0.01, 0.1)), i8(), f32(0.0611)], steps=1)
    for op, attributes in (("QLinearSigmoid", {}), ("QLinearLeakyRelu", {"alpha": 0.1}), ("QLinearLeakyRelu", {})):
        yield microsoft(op, [*a, f32(0.01), uint8(3)], steps=1, **attributes)
        yield microsoft(op, [i8(3, 17), f32(0.02), int8(5), f32(0.01), None], steps=1, **attributes)
    for opset, axis in ((12, 1), (13, 1), (13, -1)):
        yield microsoft("QLinearSoftmax", [u8(2, 3, 17), f32(0.02), uint8(120), f32(1 / 256), uint8(0)], steps=1, opset=opset, axis=axis)
    image = [u8(2, 17, 9, 10), f32(0.02), uint8(120), f32(0.015), uint8(128)]
    for attribute in ({}, {"strides": [2, 2], "pads": [1, 1, 0, 1]}, {"pads": [1, 1, 0, 1], "count_include_pad": 1}, {"strides": [2, 2], "ceil_mode": 1}):
        yield microsoft("QLinearAveragePool", image, steps=1, kernel_shape=[3, 2], **attribute)
    yield microsoft("QLinearAveragePool", [i8(2, 9, 10, 17), f32(0.02), int8(3), f32(0.015), int8(2)], steps=1, kernel_shape=[3, 2], channels_last=1)
    yield microsoft("QLinearGlobalAveragePool", image, steps=1)
    yield microsoft("QLinearGlobalAveragePool", [i8(2, 9, 10, 17), f32(0.02), int8(3), f32(0.015), int8(2)], steps=1, channels_last=1)
    condition = Input((3, 1), "bool")
    yield microsoft("QLinearWhere", [condition, *a, *b, f32(0.03), uint8(110)], steps=1)
    yield microsoft("QLinearWhere", [condition, i8(3, 17), f32(0.02), int8(5), i8(17), f32(0.03), int8(-2), f32(0.04), int8(1)], steps=1)
    for axis in (0, 1):
        yield microsoft("QLinearConcat", [f32(0.02), uint8(120), *a, u8(3, 17), f32(0.05), uint8(100)], steps=1, axis=axis)


class Given(Input):
    """An operand of these numbers."""

    def __init__(self, array: np.ndarray):
        super().__init__(array.shape, str(array.dtype))
        self.array = array

    def sample(self, rng: np.random.Generator) -> np.ndarray:
        return self.array


CASES = [case for family in (quantise, convolutions, products, gemms, microsoft_operators) for case in family()]


def far_apart(got: np.ndarray, expected: np.ndarray, case: Quantised, inputs: dict) -> str:
    """The difference, or nothing if it is small enough."""
    found = difference(got, expected)
    if case.steps:
        is_near = not found.mismatch and found.max_abs <= case.steps and np.mean(got != expected) <= 0.02
        return "" if is_near else f"{found.text()}, in {np.mean(got != expected):.1%}"
    return found.text() if found.exceeds(default_tolerance(got.dtype), default_floor(got.dtype, inputs.values())) else ""


@pytest.mark.parametrize("case", CASES, ids=str)
def test_quantised(case):
    model, inputs = case.model(), case.inputs()
    expected = case.engine(model).run(inputs)
    for name, array in onnx2halide.compile(model).run_by_name(inputs).items():
        assert far_apart(array, np.asarray(expected[name]), case, inputs) == "", name


@pytest.mark.parametrize("scale", [0.01, 1 / 3, 1, 2**-61, 2**61, 1e-42, 1.1754944e-38, 3e38, 0, -0.5, np.inf, np.nan])
def test_scales_that_only_a_run_knows(scale):
    """Quotients are rounded as by a division, and what is between two integers goes to the even one."""
    model = onnx.parser.parse_model('<ir_version: 8, opset_import: ["": 17]> g (float[n] x, float s, uint8 z) => (uint8[n] y) { y = QuantizeLinear (x, s, z) }')
    compiled, rng, scale = onnx2halide.compile(model), np.random.default_rng(0), np.array(scale, np.float32)
    with np.errstate(all="ignore"):
        ties = ((np.arange(-300, 300) + 0.5) * np.float64(scale)).astype(np.float32)
        x = np.concatenate([ties, np.nextafter(ties, np.float32(np.inf)), rng.normal(size=999).astype(np.float32) * 99 * scale, np.float32([0, -0.0, 1e-45, 3e38, np.inf, np.nan])])
        for zero in (0, 128, 255):
            quotients = np.nan_to_num(x / scale, nan=-np.inf, posinf=np.inf, neginf=-np.inf)
            expected = (np.rint(np.clip(quotients, -zero, 255 - zero)) + zero).astype(np.uint8)
            np.testing.assert_array_equal(compiled.run([x, scale, np.array(zero, np.uint8)])[0], expected)
