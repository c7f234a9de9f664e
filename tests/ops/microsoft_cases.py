"""Cases of operators of onnxruntime's own domain: against onnxruntime, or against functions that define them, if onnxruntime has them only
on GPUs."""

import functools
from dataclasses import dataclass

import numpy as np
import onnx
import onnx2halide
from onnx import helper, numpy_helper
from onnx2halide.compare import default_floor, default_tolerance, difference
from onnx2halide.references import OnnxRuntime
from reference_cases import Case, Input

MICROSOFT = "com.microsoft"


@dataclass
class Fused(Case):
    """`outputs` holds the indices of those that are requested. The outputs' types are those of the engine's results."""

    outputs: tuple[int, ...] = (0,)
    engine: type = OnnxRuntime
    domain: str = MICROSOFT
    opset: int = 21
    function: str = ""  # what the operator is, in ONNX's textual syntax, for an engine that lacks it

    def __str__(self):
        return f"{super().__str__()} {self.outputs}"

    def model(self) -> onnx.ModelProto:
        """The model that is compiled: its outputs have the types of the engine's results."""
        model = self.untyped_model()
        for output in model.graph.output:
            array = self.expected[output.name]
            output.CopyFrom(helper.make_tensor_value_info(output.name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape))
        return model

    def untyped_model(self, is_reference: bool = False) -> onnx.ModelProto:
        names = ["" if operand is None else f"x{i}" for i, operand in enumerate(self.operands)]
        named = [(name, operand) for name, operand in zip(names, self.operands) if name]
        inputs = [_port(name, operand) for name, operand in named if isinstance(operand, Input)]
        constants = [numpy_helper.from_array(operand, name) for name, operand in named if not isinstance(operand, Input)]
        results = [f"y{i}" if i in self.outputs else "" for i in range(max(self.outputs) + 1)]
        has_function = is_reference and self.function
        domain, attributes = ("function", {}) if has_function else (self.domain, self.attributes)
        node = helper.make_node(self.op, names, results, "node", domain=domain, **attributes)
        graph = helper.make_graph([node], "small", inputs, [onnx.ValueInfoProto(name=name) for name in results if name], constants)
        opsets = [helper.make_opsetid("", self.opset), helper.make_opsetid(MICROSOFT, 1), helper.make_opsetid("function", 1)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
        if has_function:
            header = f'<domain: "function", opset_import: ["" : {self.opset}, "{MICROSOFT}" : 1]>'
            model.functions.append(onnx.parser.parse_function(f"{header} {self.op} {self.function}"))
        return model

    @functools.cached_property
    def expected(self) -> dict[str, np.ndarray]:
        return self.engine(self.untyped_model(is_reference=True)).run(self.inputs())

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


def bytes_of(*shape) -> np.ndarray:
    return np.random.default_rng(1).integers(0, 256, shape).astype(np.uint8)


def int32(*numbers) -> Given:
    return Given(np.array(numbers, np.int32))


def check(case: Fused) -> None:
    model, inputs = case.model(), case.inputs()
    for name, array in onnx2halide.compile(model).run_by_name(inputs).items():
        found = difference(array, np.asarray(case.expected[name]))
        assert not found.exceeds(default_tolerance(array.dtype), default_floor(array.dtype, inputs.values())), f"{name}: {found.text()}"
