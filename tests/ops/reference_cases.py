"""A node and its operands as a row of a table, which is compared with a reference: for the tests of operators."""

from dataclasses import dataclass, field

import numpy as np
import onnx
import onnx2halide
from onnx import helper, numpy_helper
from onnx2halide.compare import default_floor, default_tolerance, difference
from onnx2halide.references import OnnxReference

OPSET = 22
DOMAINS = {"ai.onnx.ml": 3, "ai.onnx.preview.training": 1}


@dataclass
class Input:
    """An operand given at run time: normally distributed numbers, or uniform ones between two bounds."""

    shape: tuple[int, ...]
    dtype: str = "float32"
    between: tuple[float, float] | None = None

    def sample(self, rng: np.random.Generator) -> np.ndarray:
        if self.dtype == "bool":
            return rng.integers(0, 2, self.shape).astype(bool)
        if np.dtype(self.dtype).kind in "iu":
            return rng.integers(*(self.between or (0, 9)), self.shape).astype(self.dtype)
        numbers = rng.uniform(*self.between, self.shape) if self.between else rng.normal(size=self.shape)
        return np.asarray(numbers, self.dtype)


@dataclass
class Case:
    """One node. Arrays among the operands are constants; None is an omitted one."""

    op: str
    operands: list
    attributes: dict = field(default_factory=dict)
    outputs: int = 1
    engine: type = OnnxReference
    opset: int = OPSET
    domain: str = ""  # of the operator; outside of ONNX's own domain, the newest version is used
    is_open: bool = False  # whether the extents of its run-time operands are known only at run time

    def __str__(self):
        texts = [f"{key}={value}" for key, value in self.attributes.items()]
        shapes = ["x".join(map(str, operand.shape)) or "scalar" for operand in self.operands if operand is not None]
        types = {str(operand.dtype) for operand in self.operands if operand is not None} - {"float32", "int64"}
        return " ".join([self.op, ",".join(shapes), *sorted(types), *texts, *["open"] * self.is_open])

    def model(self) -> onnx.ModelProto:
        names = ["" if operand is None else f"x{i}" for i, operand in enumerate(self.operands)]
        results = [f"y{i}" for i in range(self.outputs)]
        only = helper.make_node(self.op, names, results, domain=self.domain, **self.attributes)
        named = [(name, operand) for name, operand in zip(names, self.operands) if name]
        inputs = [_port(name, operand, self.is_open) for name, operand in named if isinstance(operand, Input)]
        constants = [numpy_helper.from_array(operand, name) for name, operand in named if not isinstance(operand, Input)]
        graph = helper.make_graph([only], "small", inputs, [onnx.ValueInfoProto(name=name) for name in results], constants)
        opsets = [helper.make_opsetid("", self.opset)]
        if self.domain:
            opsets.append(helper.make_opsetid(self.domain, DOMAINS.get(self.domain, 1)))
        model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
        model = onnx.shape_inference.infer_shapes(model, data_prop=True)
        for output in model.graph.output:
            if not output.type.WhichOneof("value"):  # function operators have no inference of their own
                output.type.CopyFrom(inputs[0].type)
        return model

    def inputs(self) -> dict[str, np.ndarray]:
        rng = np.random.default_rng(0)
        return {f"x{i}": operand.sample(rng) for i, operand in enumerate(self.operands) if isinstance(operand, Input)}


def _port(name: str, operand: Input, is_open: bool) -> onnx.ValueInfoProto:
    shape = [f"{name}_{axis}" for axis in range(len(operand.shape))] if is_open else operand.shape
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(operand.dtype)), shape)


def x(*shape, dtype="float32", between=None) -> Input:
    return Input(shape, dtype, between)


def constant(*shape, dtype="float32") -> np.ndarray:
    return Input(shape, dtype).sample(np.random.default_rng(1))


def indices(*numbers) -> np.ndarray:
    return np.array(numbers, np.int64)


def check(case: Case) -> None:
    """Compares the results of a case with its reference."""
    model, inputs = case.model(), case.inputs()
    expected = case.engine(model).run(inputs)
    for name, array in onnx2halide.compile(model).run_by_name(inputs).items():
        found = difference(array, np.asarray(expected[name]))
        assert not found.exceeds(default_tolerance(array.dtype), default_floor(array.dtype, inputs.values())), f"{name}: {found.text()}"
