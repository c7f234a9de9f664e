"""Operators of onnxruntime's own domain against onnxruntime, a row a case; against functions that say what they are, where onnxruntime has
them on GPUs only."""

from dataclasses import dataclass

import numpy as np
import onnx
import onnx2halide
import pytest
from onnx import helper, numpy_helper
from onnx2halide.compare import default_floor, default_tolerance, difference
from onnx2halide.references import OnnxReference, OnnxRuntime
from test_against_reference import Case, Input, constant, x

MICROSOFT = "com.microsoft"


@dataclass
class Fused(Case):
    """`outputs` numbers those that are asked for. The outputs' types are those that the engine finds."""

    outputs: tuple[int, ...] = (0,)
    engine: type = OnnxRuntime
    domain: str = MICROSOFT
    opset: int = 21
    function: str = ""  # body of the operator, in ONNX's textual syntax, for an engine that lacks it

    def __str__(self):
        return f"{super().__str__()} {self.outputs}"

    def model(self, is_reference: bool = False) -> onnx.ModelProto:
        names = ["" if operand is None else f"x{i}" for i, operand in enumerate(self.operands)]
        named = [(name, operand) for name, operand in zip(names, self.operands) if name]
        inputs = [_port(name, operand) for name, operand in named if isinstance(operand, Input)]
        constants = [numpy_helper.from_array(operand, name) for name, operand in named if not isinstance(operand, Input)]
        results = [f"y{i}" if i in self.outputs else "" for i in range(max(self.outputs) + 1)]
        node = helper.make_node(self.op, names, results, "node", domain=self.domain, **self.attributes)
        graph = helper.make_graph([node], "small", inputs, [onnx.ValueInfoProto(name=name) for name in results if name], constants)
        opsets = [helper.make_opsetid("", self.opset), helper.make_opsetid(MICROSOFT, 1)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
        if is_reference and self.function:
            body = f'<domain: "{self.domain}", opset_import: ["" : {self.opset}]> {self.op} {self.function}'
            model.functions.append(onnx.parser.parse_function(body))
        return model

    def expected(self) -> dict[str, np.ndarray]:
        return self.engine(self.model(is_reference=True)).run(self.inputs())

    def inputs(self) -> dict[str, np.ndarray]:
        rng = np.random.default_rng(0)
        operands = enumerate(self.operands)
        return {f"x{i}": operand.sample(rng) for i, operand in operands if isinstance(operand, Input)}


class Given(Input):
    """Numbers that come at run time."""

    def __init__(self, numbers):
        self.numbers = np.asarray(numbers)
        super().__init__(self.numbers.shape, str(self.numbers.dtype))

    def sample(self, rng) -> np.ndarray:
        return self.numbers


def _port(name: str, operand: Input) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(operand.dtype)), operand.shape)


def activations():
    for bias in (None, x(17), constant(17)):
        yield Fused("FastGelu", [x(3, 17), bias])
    yield Fused("Gelu", [x(3, 17)])
    yield Fused("QuickGelu", [x(3, 17)])
    yield Fused("QuickGelu", [x(3, 17)], {"alpha": 0.7})
    for bias in (x(17), constant(17)):
        yield Fused("BiasGelu", [x(2, 3, 17), bias])
    split = """(x, b) => (y) {
        s = Add(x, b)
        l, r = Split<axis = -1, num_outputs = 2>(s)
        root = Constant<value_float = 1.4142135>()
        one = Constant<value_float = 1.0>()
        half = Constant<value_float = 0.5>()
        z = Div(r, root)
        e = Erf(z)
        p = Add(e, one)
        h = Mul(r, half)
        g = Mul(h, p)
        y = Mul(l, g)
    }"""
    yield Fused("BiasSplitGelu", [x(2, 3, 34), constant(34)], engine=OnnxReference, function=split)
    yield Fused("BiasAdd", [x(2, 3, 17), constant(17), x(2, 3, 17)], engine=OnnxReference, function="(x, b, s) => (y) { t = Add(x, b) y = Add(t, s) }")


def normalisations():
    for axis in (-1, 1):
        scale = constant(*(2, 3, 17)[axis:])
        yield Fused("SimplifiedLayerNormalization", [x(2, 3, 17), scale], {"axis": axis, "epsilon": 1e-3}, domain="")
        for outputs in ((0,), (0, 1, 2)):
            yield Fused("LayerNormalization", [x(2, 3, 17), scale, scale], {"axis": axis}, outputs, domain="", opset=11)
    gamma, beta, bias = constant(17), constant(17) * np.float32(0.5), constant(17) + np.float32(0.5)
    for outputs in ((0,), (0, 3)):
        for skip in (x(2, 3, 17), x(1, 3, 17), x(3, 17)):
            yield Fused("SkipLayerNormalization", [x(2, 3, 17), skip, gamma, beta], {"epsilon": 1e-5}, outputs)
            yield Fused("SkipSimplifiedLayerNormalization", [x(2, 3, 17), skip, gamma], {}, outputs)
        yield Fused("SkipLayerNormalization", [x(2, 3, 17), x(2, 3, 17), gamma], {}, outputs)
        yield Fused("SkipLayerNormalization", [x(2, 3, 17), x(2, 3, 17), gamma, beta, bias], {}, outputs)
        yield Fused("SkipLayerNormalization", [x(2, 3, 17), x(2, 3, 17), gamma, None, bias], {}, outputs)
        yield Fused("SkipSimplifiedLayerNormalization", [x(2, 3, 17), x(2, 3, 17), gamma, bias], {"epsilon": 1e-2}, outputs)


def embeddings():
    ids, segments, mask = (x(2, 5, dtype="int32", between=(0, high)) for high in (11, 2, 2))
    words, places, kinds = constant(11, 17), constant(8, 17), constant(2, 17)
    gamma, beta = constant(17), constant(17) * np.float32(0.5)
    for outputs in ((0, 1), (0, 1, 2)):
        yield Fused("EmbedLayerNormalization", [ids, segments, words, places, kinds, gamma, beta, mask], {"mask_index_type": 1}, outputs)
        yield Fused("EmbedLayerNormalization", [ids, None, words, places, None, gamma, beta], {"epsilon": 1e-3}, outputs)
    for rows in (1, 2):
        positions = x(rows, 5, dtype="int32", between=(0, 8))
        yield Fused("EmbedLayerNormalization", [ids, segments, words, places, kinds, gamma, beta, None, positions], {}, (0, 2))


def convolutions():
    image, weights, bias, sum = x(2, 3, 9, 11), constant(5, 3, 3, 3), constant(5), x(2, 5, 7, 9)
    activations = [("Relu", []), ("Tanh", []), ("Sigmoid", []), ("LeakyRelu", [0.2]), ("Clip", [-0.5, 0.7]), ("HardSigmoid", [0.3, 0.4])]
    for name, params in activations:
        attributes = {"activation": name, **({"activation_params": params} if params else {})}
        yield Fused("FusedConv", [image, weights, bias], attributes)
    yield Fused("FusedConv", [image, weights, bias, sum], {"activation": "Relu"})
    yield Fused("FusedConv", [image, weights, None, sum], {"activation": "Relu"})
    yield Fused("FusedConv", [x(1, 4, 9, 11), constant(6, 2, 3, 3)], {"group": 2, "strides": [2, 1], "pads": [1, 0, 1, 2], "activation": "Relu"})
    yield Fused("FusedConv", [x(1, 3, 9, 11), constant(6, 3, 3, 3)], {"auto_pad": "SAME_UPPER", "activation": "Tanh"})
    for dtype in ("uint8", "int8"):
        pixels = x(2, 9, 11, 5, dtype=dtype, between=(-99, 99) if dtype == "int8" else (0, 255))
        yield Fused("NhwcMaxPool", [pixels], {"kernel_shape": [3, 2], "strides": [2, 2], "pads": [1, 0, 1, 1]})


def products():
    activations = [("Relu", {}), ("LeakyRelu", {"activation_alpha": 0.2}), ("HardSigmoid", {"activation_alpha": 0.3, "activation_beta": 0.4})]
    for name, attributes in activations:
        yield Fused("FusedGemm", [x(7, 17), constant(17, 9), constant(9)], {"activation": name, **attributes})
    yield Fused("FusedGemm", [x(17, 7), constant(9, 17), x(7, 1)], {"activation": "Tanh", "transA": 1, "transB": 1, "alpha": 0.5, "beta": 2.0})


FAMILIES = (activations, normalisations, embeddings, convolutions, products)
CASES = [case for family in FAMILIES for case in family()]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_microsoft(case):
    expected, model, inputs = case.expected(), case.model(), case.inputs()
    for output in model.graph.output:
        array = expected[output.name]
        output.CopyFrom(helper.make_tensor_value_info(output.name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape))
    for name, array in onnx2halide.compile(model).run_by_name(inputs).items():
        found = difference(array, np.asarray(expected[name]))
        assert not found.exceeds(default_tolerance(array.dtype), default_floor(array.dtype, inputs.values())), f"{name}: {found.text()}"
