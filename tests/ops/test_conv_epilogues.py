"""Convolutions whose epilogue needs the registers for itself, so that the sums of many tiles are buffered in memory: sizes around a
tile's, rows longer and shorter than what is buffered together, one row, strips, groups and open sizes."""

from dataclasses import dataclass

import numpy as np
import onnx
import onnx2halide
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx2halide.compare import default_floor, default_tolerance, difference
from onnx2halide.references import OnnxRuntime


@dataclass
class Convolution:
    channels: int  # of the input
    outputs: int
    image: tuple[int, ...]
    kernel: tuple[int, ...] = (1, 1)
    stride: int = 1
    group: int = 1
    batch: int = 1
    is_open: bool = False

    def __str__(self):
        sizes = [f"{self.channels}-{self.outputs}", "x".join(map(str, self.image)), "x".join(map(str, self.kernel))]
        named = (("stride", 1), ("group", 1), ("batch", 1), ("is_open", False))
        return " ".join(sizes + [f"{name}={getattr(self, name)}" for name, usual in named if getattr(self, name) != usual])

    def model(self) -> onnx.ModelProto:
        rng = np.random.default_rng(0)
        weights = rng.normal(size=(self.outputs, self.channels // self.group, *self.kernel)) / 4
        constants = {"w": weights, "b": rng.normal(size=self.outputs)}
        nodes = [
            helper.make_node(
                "Conv",
                ["x", "w", "b"],
                ["c"],
                pads=[size // 2 for size in self.kernel] * 2,
                strides=[self.stride] * len(self.kernel),
                group=self.group,
            ),
            helper.make_node("Sigmoid", ["c"], ["s"]),
            helper.make_node("Mul", ["c", "s"], ["y"]),
        ]
        sizes = [f"size{i}" for i in range(len(self.image))] if self.is_open else self.image
        ports = [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, [self.batch, self.channels, *sizes]),
            helper.make_tensor_value_info("y", TensorProto.FLOAT, [self.batch, self.outputs, *[None] * len(sizes)]),
        ]
        tensors = [numpy_helper.from_array(array.astype(np.float32), name) for name, array in constants.items()]
        graph = helper.make_graph(nodes, "epilogue", ports[:1], ports[1:], tensors)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


CASES = [
    Convolution(16, 32, (52, 52)),
    Convolution(8, 16, (3, 600)),  # parts of a row are buffered
    Convolution(8, 24, (13, 13)),
    Convolution(64, 48, (13, 11), batch=2),
    Convolution(8, 16, (1, 500)),
    Convolution(8, 16, (700,), (3,)),
    Convolution(8, 5, (17, 11)),  # channels that do not fill a vector
    Convolution(8, 40, (9, 7), (3, 3), stride=2),
    Convolution(3, 16, (31, 45), (3, 3), stride=2),
    Convolution(1, 8, (31, 45), (5, 5)),  # pixels share vectors
    Convolution(2, 4, (9, 100), (3, 3), batch=2),
    Convolution(96, 96, (2, 3)),
    Convolution(256, 1024, (16, 16)),  # the last tile of channels overlaps the one before it, in several tasks
    Convolution(32, 32, (29, 21), (3, 3), group=32),
    Convolution(32, 32, (7, 5), (5, 5), group=32, batch=3),
    Convolution(12, 24, (11, 19), group=3),  # groups share vectors
    Convolution(32, 64, (40, 33), group=2),
    Convolution(32, 32, (29, 21), (3, 3), group=8),  # vectors of groups
    Convolution(20, 20, (29, 21), (3, 3), group=5, batch=2),
    Convolution(64, 1, (21, 30), (3, 3)),  # inputs fill vectors
    Convolution(32, 3, (21, 30), batch=2),
    Convolution(4, 16, (3, 20, 30), (1, 3, 3)),
    Convolution(16, 16, (30, 40), (3, 3)),
    Convolution(16, 32, (33, 47), is_open=True),
    Convolution(32, 32, (21, 30), (3, 3), group=32, is_open=True),
    Convolution(32, 32, (21, 30), (3, 3), group=8, is_open=True),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_conv_epilogues(case):
    model = case.model()
    inputs = {"x": np.random.default_rng(1).normal(size=(case.batch, case.channels, *case.image)).astype(np.float32)}
    expected = OnnxRuntime(model).run(inputs)["y"]
    found = difference(onnx2halide.compile(model).run_by_name(inputs)["y"], expected)
    assert not found.exceeds(default_tolerance(expected.dtype), default_floor(expected.dtype, inputs.values())), found.text()
