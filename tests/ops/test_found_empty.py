"""Nodes whose input may be empty at run time, against onnxruntime or, if that rejects empty inputs, ONNX's reference."""

from dataclasses import dataclass

import numpy as np
import onnx2halide
import pytest
from onnx import ModelProto, numpy_helper, parser
from onnx2halide.compare import difference
from onnx2halide.references import OnnxReference, OnnxRuntime


def ints(*numbers):
    return np.array(numbers, np.int64)


def x(*shape):
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)


CONV = {"w": x(4, 3, 3, 3)}
IMAGES = (4, 3, 8, 8)

@dataclass
class Case:
    """What is computed from z: the elements of x along an axis that are selected at run time."""

    body: str
    shape: tuple[int, ...]  # of x
    axis: int
    constants: dict

    def __str__(self):
        return f"{self.body} of {self.shape}"

    def model(self) -> ModelProto:
        ports = f"(float{list(self.shape)} x, bool[{self.shape[self.axis]}] k) => (float y)"
        proto = parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]> g {ports} {{ z = Compress <axis = {self.axis}> (x, k) {self.body} }}')
        proto.graph.output[0].ClearField("type")
        proto.graph.initializer.extend(numpy_helper.from_array(np.asarray(array), name) for name, array in self.constants.items())
        return proto


CASES = [
    Case("y = Abs (z)", (3, 0), 0, {}),
    Case("y = Concat <axis = 3> (z, z)", (2, 1, 0, 3), 3, {}),
    Case("y = Pad (z, p)", (4, 3), 0, {"p": ints(1, 0, 0, 2)}),
    Case("y = Pad (z, p)", (4, 3), 0, {"p": ints(1, 2, 2, -1)}),
    Case("y = Pad (z, p, f)", (4, 3), 0, {"p": ints(0, 0, 2, 0), "f": np.float32(3)}),
    Case("y = Pad (z, p, , a)", (4, 3), 0, {"p": ints(1, 2), "a": ints(0)}),
    Case("y = Pad (z, p)", (4, 3), 0, {"p": ints(0, 1, 0, 2)}),
    Case('y = Pad <mode = "edge"> (z, p)', (4, 3), 0, {"p": ints(0, 1, 0, 2)}),
    Case("t = Pad (z, p) y = Conv (t, w)", IMAGES, 0, {"p": ints(1, 0, 1, 1, 0, 0, 1, 1)} | CONV),
    Case("y = Conv (z, w)", IMAGES, 0, CONV),
    Case("y = Conv <pads = [1, 1, 1, 1]> (z, w)", (1, 3, 8, 8), 3, CONV),
    Case("y = ConvTranspose <strides = [2, 2]> (z, w)", IMAGES, 0, {"w": x(3, 4, 3, 3)}),
    Case("y = MaxPool <kernel_shape = [3, 3]> (z)", IMAGES, 0, {}),
    Case("y = GlobalAveragePool (z)", IMAGES, 0, {}),
    Case("a = Sigmoid (z) y = Mul (a, z)", (2, 4, 8, 8), 1, {}),
    Case("y = LayerNormalization (z, s, b)", (4, 6), 0, {"s": x(6), "b": x(6)}),
    Case("y = InstanceNormalization (z, s, b)", (4, 6, 3), 0, {"s": x(6), "b": x(6)}),
    Case("y = Softmax <axis = 0> (z)", (4, 6), 0, {}),
    Case("y = ArgMax <axis = 1> (z)", (4, 6), 0, {}),
    Case("y = ReduceSum (z, a)", (4, 6), 0, {"a": ints(0)}),
    Case("y = ReduceMean (z, a)", (4, 6), 0, {"a": ints(0)}),
    Case("y = ReduceMean <keepdims = 0> (z)", (4, 6), 0, {}),
    Case("y = ReduceMax (z, a)", (4, 6), 0, {"a": ints(1)}),
    Case("y = Slice (z, s, e)", (6, 6), 0, {"s": ints(5), "e": ints(8)}),
    Case("t = Transpose (z) y = MatMul (t, z)", (4, 6), 0, {}),
    Case("t = Transpose (z) s = MatMul (q, t) p = Softmax (s) y = MatMul (p, z)", (4, 6), 0, {"q": x(9, 6)}),
    Case("y = Gemm (z, w, b)", (4, 6), 0, {"w": x(6, 5), "b": x(5)}),
    Case("y, i = TopK (z, n)", (4, 6), 0, {"n": ints(2)}),
    Case("y = Concat <axis = 0> (z, a, z)", (4, 6), 0, {"a": x(2, 6)}),
    Case("y = Reshape (z, s)", (4, 6), 0, {"s": ints(-1, 2, 3)}),
    Case('y = Resize <mode = "linear"> (z, , s)', IMAGES, 0, {"s": np.float32([1, 1, 2, 2])}),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_found_empty(case):
    proto = case.model()
    compiled = onnx2halide.compile(proto)
    for step in (0, 2):
        inputs = {"x": x(*case.shape), "k": np.arange(case.shape[case.axis]) % 2 < step}
        try:
            expected = OnnxRuntime(proto).run(inputs)["y"]
        except Exception:
            expected = OnnxReference(proto).run(inputs)["y"]
        found = compiled.run_by_name(inputs)["y"]
        assert found.shape == expected.shape
        assert not difference(found, expected).exceeds(1e-5, 1e-5)


@pytest.mark.parametrize(
    "body, constants, message",
    [
        ("y = ArgMax <axis = 0> (z)", {}, "'y' (ArgMax): the extent of axis 0 is 0, expected one in [1, 2147483647]"),
        ('y = Pad <mode = "edge"> (z, p)', {"p": ints(1, 0, 0, 2)}, "'y' (Pad): the extent of axis 0 is 0, expected one in [1, 2147483647]"),
    ],
)
def test_refused(body, constants, message):
    compiled = onnx2halide.compile(Case(body, (4, 6), 0, constants).model())
    for taken in (False, True):
        inputs = {"x": x(4, 6), "k": np.full(4, taken)}
        if taken:
            assert compiled.run_by_name(inputs)["y"].size > 0
            continue
        with pytest.raises((ValueError, RuntimeError)) as error:
            compiled.run_by_name(inputs)
        assert message in str(error.value)
