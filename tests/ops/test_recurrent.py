"""RNN, GRU and LSTM against onnxruntime, and ONNX's reference for what that lacks: batch-first layouts, and floats of 16 and 64 bits."""

from dataclasses import dataclass, field

import numpy as np
import onnx
import onnx2halide
import pytest
from onnx import helper, numpy_helper
from onnx2halide.compare import default_floor, default_tolerance, difference
from onnx2halide.references import OnnxReference, OnnxRuntime

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
OUTPUTS = {"RNN": ["Y", "Y_h"], "GRU": ["Y", "Y_h"], "LSTM": ["Y", "Y_h", "Y_c"]}
INPUTS = ["X", "W", "R", "B", "sequence_lens", "initial_h", "initial_c", "P"]
AT_RUN_TIME = ("X", "sequence_lens", "initial_h", "initial_c")
SEQUENCE, BATCH, FEATURES, HIDDEN = 4, 3, 5, 9


@dataclass
class Layer:
    """One layer. `optional` names the optional inputs that it has."""

    op: str
    optional: str = "B"
    attributes: dict = field(default_factory=dict)
    outputs: list[str] | None = None
    dtype: str = "float32"
    opset: int = 22
    sequence: int = SEQUENCE
    batch: int = BATCH
    engine: type = OnnxRuntime

    def __str__(self):
        texts = [f"{key}={value}" for key, value in self.attributes.items()]
        return " ".join([self.op, self.optional, self.dtype, f"opset={self.opset}", f"steps={self.sequence}", *(self.outputs or []), *texts])

    def values(self) -> dict[str, np.ndarray]:
        rng = np.random.default_rng(0)
        directions = 2 if self.attributes.get("direction") == "bidirectional" else 1
        rows = GATES[self.op] * HIDDEN
        input, state = (self.sequence, self.batch, FEATURES), (directions, self.batch, HIDDEN)
        if self.attributes.get("layout"):
            input, state = (self.batch, self.sequence, FEATURES), (self.batch, directions, HIDDEN)
        shapes = {"X": input, "W": (directions, rows, FEATURES), "R": (directions, rows, HIDDEN)}
        optional = {"B": (directions, 2 * rows), "initial_h": state, "initial_c": state, "P": (directions, 3 * HIDDEN)}
        shapes |= {name: shape for name, shape in optional.items() if name in self.optional.split()}
        values = {name: rng.normal(scale=0.6, size=shape).astype(self.dtype) for name, shape in shapes.items()}
        if "sequence_lens" in self.optional.split():
            values["sequence_lens"] = np.array([self.sequence, 1, 2], np.int32)
        return values

    def model(self) -> onnx.ModelProto:
        values, outputs = self.values(), self.outputs or OUTPUTS[self.op]
        inputs = [name if name in values else "" for name in INPUTS[: 8 if self.op == "LSTM" else 6]]
        results = [name if name in outputs else "" for name in OUTPUTS[self.op]]
        layer = helper.make_node(self.op, inputs, results, name="layer", hidden_size=HIDDEN, **self.attributes)
        ports = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape) for name, array in values.items() if name in AT_RUN_TIME]
        constants = [numpy_helper.from_array(array, name) for name, array in values.items() if name not in AT_RUN_TIME]
        graph = helper.make_graph([layer], "small", ports, [onnx.ValueInfoProto(name=name) for name in results if name], constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8)
        return onnx.shape_inference.infer_shapes(model)

    def inputs(self) -> dict[str, np.ndarray]:
        return {name: array for name, array in self.values().items() if name in AT_RUN_TIME}


DIRECTIONS = ("forward", "reverse", "bidirectional")


def inputs():
    for op in GATES:
        for direction in DIRECTIONS:
            for optional in ("", "B", "B initial_h initial_c", "B sequence_lens initial_h initial_c P"):
                yield Layer(op, optional, {"direction": direction})
        for opset in (7, 14):
            yield Layer(op, "B sequence_lens", opset=opset)
        for outputs in (["Y"], ["Y_h"]):
            yield Layer(op, "B", outputs=outputs)
        yield Layer(op, "B", sequence=1)


def attributes():
    for direction in DIRECTIONS:
        yield Layer("GRU", "B initial_h", {"linear_before_reset": 1, "direction": direction})
        yield Layer("LSTM", "B P", {"input_forget": 1, "direction": direction})
    for op in GATES:
        yield Layer(op, "B", {"clip": 0.4})


def activations():
    names = ["Relu", "Tanh", "Sigmoid", "LeakyRelu", "HardSigmoid", "Elu", "Softsign", "Softplus"]
    for name in names:
        yield Layer("RNN", "B", {"activations": [name]})
    for name in ("Affine", "ScaledTanh", "ThresholdedRelu"):  # for which onnxruntime has no defaults
        yield Layer("RNN", "B", {"activations": [name], "activation_alpha": [0.7], "activation_beta": [0.3]})
    yield Layer("GRU", "B", {"direction": "bidirectional", "activations": ["hardsigmoid", "elu", "sigmoid", "scaledtanh"], "activation_alpha": [0.3, 0.5, 0.8], "activation_beta": [0.4, 0.6]})
    yield Layer("LSTM", "B", {"activations": ["Sigmoid", "LeakyRelu", "Softsign"], "activation_alpha": [0.2]})


def types():
    for op in GATES:
        for dtype in ("float16", "float64"):
            yield Layer(op, "B initial_h initial_c", dtype=dtype, engine=OnnxReference)
        for direction in DIRECTIONS:
            yield Layer(op, "B initial_h initial_c", {"layout": 1, "direction": direction}, engine=OnnxReference)


LAYERS = [layer for family in (inputs, attributes, activations, types) for layer in family()]


@pytest.mark.parametrize("layer", LAYERS, ids=str)
def test_recurrent(layer):
    compare(layer.model(), layer.inputs(), layer.engine)


def compare(model: onnx.ModelProto, inputs: dict[str, np.ndarray], engine: type) -> None:
    expected = engine(model).run(inputs)
    for name, array in onnx2halide.compile(model).run_by_name(inputs).items():
        found = difference(array, np.asarray(expected[name]))
        assert not found.exceeds(default_tolerance(array.dtype), default_floor(array.dtype, inputs.values())), f"{name}: {found.text()}"


def quantised(layer: Layer, dtype: str, by_column: bool) -> onnx.ModelProto:
    """The layer with integers for weights, which onnxruntime takes transposed."""
    model, rng = layer.model(), np.random.default_rng(2)
    node, constants = model.graph.node[0], {constant.name: constant for constant in model.graph.initializer}
    node.op_type, node.domain = "DynamicQuantizeLSTM", "com.microsoft"
    node.input.extend([""] * (len(INPUTS) - len(node.input)))
    for name in ("W", "R"):
        directions, columns, rows = constants[name].dims
        weights = rng.integers(-127, 128, (directions, rows, columns)) if dtype == "int8" else rng.integers(0, 256, (directions, rows, columns))
        constants[name].CopyFrom(numpy_helper.from_array(weights.astype(dtype), name))
        shape = (directions, columns) if by_column else (directions,)
        scale, zero_point = rng.uniform(0.005, 0.01, shape).astype(np.float32), np.full(shape, 0 if dtype == "int8" else 128, dtype)
        model.graph.initializer.extend([numpy_helper.from_array(scale, f"{name}_scale"), numpy_helper.from_array(zero_point, f"{name}_zero_point")])
        node.input.extend([f"{name}_scale", f"{name}_zero_point"])
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    return model


@pytest.mark.parametrize("by_column", [False, True])
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_quantised(direction, dtype, by_column):
    # With a larger batch, each thread of onnxruntime quantises its own rows.
    layer = Layer("LSTM", "B initial_h initial_c", {"direction": direction}, batch=1)
    compare(quantised(layer, dtype, by_column), layer.inputs(), OnnxRuntime)
