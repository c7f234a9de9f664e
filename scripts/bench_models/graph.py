"""Builds ONNX graphs. Weights are stored as shapes and distributions, and drawn when the model is made."""

import zlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import helper, numpy_helper

Draw = Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]


def normal(deviation: float) -> Draw:
    return lambda rng, shape: rng.standard_normal(shape, np.float32) * np.float32(deviation)


def uniform(low: float, high: float) -> Draw:
    return lambda rng, shape: rng.uniform(low, high, shape).astype(np.float32)


def integers(end: int) -> Draw:
    """Random integers in [0, end)."""
    return lambda rng, shape: rng.integers(0, end, shape, np.int64)


@dataclass
class Tensor:
    """The shape and distribution of an input or a weight."""

    shape: tuple[int, ...]
    draw: Draw
    type: int = onnx.TensorProto.FLOAT


class Graph:
    """A network under construction. Methods that add a node return the name of its result, which is also the node's name."""

    def __init__(self, name: str, opset: int):
        self.name, self.opset = name, opset
        self._inputs: dict[str, Tensor] = {}
        self._weights: dict[str, Tensor] = {}
        self._constants: dict[str, np.ndarray] = {}
        self._nodes: list[onnx.NodeProto] = []
        self._outputs: dict[str, tuple[int, ...]] = {}

    # Inputs, weights and outputs.

    def input(self, name: str, shape: tuple[int, ...], draw: Draw, type: int = onnx.TensorProto.FLOAT) -> str:
        """Adds an input. `draw` makes samples for benchmarks and tests."""
        self._inputs[name] = Tensor(shape, draw, type)
        return name

    def weight(self, name: str, shape: tuple[int, ...], draw: Draw) -> str:
        self._weights[name] = Tensor(shape, draw)
        return name

    def initializer(self, name: str, value, type=np.float32) -> str:
        """Adds constants, which do not count as parameters."""
        self._constants[name] = np.asarray(value, type)
        return name

    def constant(self, name: str, value, type=np.float32) -> str:
        """The same as a Constant node, as in PyTorch's exports."""
        return self.node("Constant", name, value=numpy_helper.from_array(np.asarray(value, type)))

    def output(self, name: str, *shape: int) -> None:
        self._outputs[name] = shape

    # Nodes.

    def node(self, op: str, name: str, *inputs: str, outputs: tuple[str, ...] = (), **attributes) -> str:
        self._nodes.append(helper.make_node(op, list(inputs), list(outputs or (name,)), name=name, **attributes))
        return name

    def conv(self, name: str, x: str, channels: tuple[int, int], kernel=3, stride=1, *, group=1, bias=True, gain=2.0, **padding) -> str:
        """A convolution with square windows, padded by kernel // 2 unless `padding` contains `auto_pad` or `pads`. The variance of the weights
        is gain / fan-in: 2 preserves the magnitude after a Relu (He); less makes the branch of a sum small."""
        inputs, outputs = channels
        fan_in = inputs // group * kernel**2
        operands = [self.weight(f"{name}.weight", (outputs, inputs // group, kernel, kernel), normal((gain / fan_in) ** 0.5))]
        if bias:
            operands.append(self.weight(f"{name}.bias", (outputs,), normal(0.1)))
        attributes = {"dilations": [1, 1], "group": group, "kernel_shape": [kernel] * 2, "strides": [stride] * 2}
        return self.node("Conv", name, x, *operands, **attributes, **(padding or {"pads": [kernel // 2] * 4}))

    def batch_norm(self, name: str, x: str, channels: int, epsilon: float, scale=1.0) -> str:
        """The statistics are close to those of a normal distribution; `scale` is approximately the deviation of the result."""
        draws = {
            "scale": uniform(0.5 * scale, 1.5 * scale),
            "bias": normal(0.1 * scale),
            "mean": normal(0.1),
            "variance": uniform(0.5, 1.5),
        }
        operands = [self.weight(f"{name}.{part}", (channels,), draw) for part, draw in draws.items()]
        return self.node("BatchNormalization", name, x, *operands, epsilon=epsilon, momentum=0.9)

    def relu(self, name: str, x: str) -> str:
        return self.node("Relu", name, x)

    def add(self, name: str, a: str, b: str) -> str:
        return self.node("Add", name, a, b)

    def max_pool(self, name: str, x: str, kernel=2, stride=2, **padding) -> str:
        return self.node("MaxPool", name, x, kernel_shape=[kernel] * 2, strides=[stride] * 2, **(padding or {"pads": [0] * 4}))

    def gemm(self, name: str, x: str, inputs: int, outputs: int, gain=1.0) -> str:
        """A dense layer with weights (outputs, inputs), as in PyTorch and MXNet."""
        weight = self.weight(f"{name}.weight", (outputs, inputs), normal((gain / inputs) ** 0.5))
        bias = self.weight(f"{name}.bias", (outputs,), normal(0.1))
        return self.node("Gemm", name, x, weight, bias, alpha=1.0, beta=1.0, transB=1)

    # Results.

    @property
    def parameters(self) -> int:
        """The number of weights."""
        return sum(int(np.prod(tensor.shape)) for tensor in self._weights.values())

    def model(self, seed: int = 0) -> onnx.ModelProto:
        """The model with drawn weights, which depend on the seed and their names, not on their order."""
        initializers = [numpy_helper.from_array(array, name) for name, array in self._constants.items()]
        initializers += [numpy_helper.from_array(self._drawn(tensor, name, seed), name) for name, tensor in self._weights.items()]
        inputs = [helper.make_tensor_value_info(name, tensor.type, tensor.shape) for name, tensor in self._inputs.items()]
        outputs = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape) for name, shape in self._outputs.items()]
        graph = helper.make_graph(self._nodes, self.name, inputs, outputs, initializers)
        opsets = [helper.make_opsetid("", self.opset)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=8, producer_name="onnx2halide")

    def inputs(self, seed: int = 0) -> dict[str, np.ndarray]:
        """Samples of the kind that the network expects: pixels, words, a mask."""
        return {name: self._drawn(tensor, name, seed) for name, tensor in self._inputs.items()}

    def _drawn(self, tensor: Tensor, name: str, seed: int) -> np.ndarray:
        rng = np.random.default_rng([seed, zlib.crc32(f"{self.name}/{name}".encode())])
        return tensor.draw(rng, tensor.shape)
