"""Convolutions and the depthwise ones, or pools, that read their results, which share a kernel if what lies between them is large: tasks
compute strips of rows of some channels."""

from dataclasses import dataclass, field

import numpy as np
import onnx
import onnx2halide
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx2halide.bench import Compiled
from onnx2halide.compare import default_floor, default_tolerance, difference
from onnx2halide.compiler import Options, compile_into
from onnx2halide.model import Model
from onnx2halide.references import OnnxRuntime


@dataclass
class Pair:
    inputs: int  # channels
    channels: int
    image: tuple[int, int]
    first: int = 1  # kernel of the first convolution
    first_stride: int = 1
    first_pads: tuple[int, int, int, int] | None = None
    kernel: int = 3  # of the depthwise one, or of the pool
    stride: int = 1
    dilation: int = 1
    pads: tuple[int, int, int, int] | None = None
    activation: str = "Relu"
    residual: bool = False
    batch: int = 1
    is_open: bool = False  # the batch
    pool: str = ""
    pool_attributes: dict = field(default_factory=dict)
    algorithm: str = "direct"
    is_apart: bool = False  # whether each has a kernel of its own

    def model(self) -> onnx.ModelProto:
        rng = np.random.default_rng(0)
        constants = {
            "w": rng.normal(size=(self.channels, self.inputs, self.first, self.first)) / (self.first * self.inputs**0.5),
            "b": rng.normal(size=self.channels),
            "v": rng.normal(size=(self.channels, 1, self.kernel, self.kernel)) / self.kernel,
            "a": rng.normal(size=self.channels),
            "slopes": rng.normal(size=(self.channels, 1, 1)),
        }
        pads, first_pads = self.pads or (self.kernel // 2 * self.dilation,) * 4, self.first_pads or (self.first // 2,) * 4
        nodes = [helper.make_node("Conv", ["x", "w", "b"], ["c"], pads=first_pads, strides=[self.first_stride] * 2)]
        nodes += [helper.make_node("Add", ["c", "c_scale"], ["s"])] if self.residual else []
        nodes += self.activated(nodes[-1].output[0], "r")
        nodes.append(self.reader(nodes[-1].output[0], pads))
        nodes += [] if self.pool else self.activated("d", "y")
        nodes[-1].output[0] = "y"
        constants |= {"c_scale": rng.normal(size=(1, self.channels, 1, 1))} if self.residual else {}
        ports = [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N" if self.is_open else self.batch, self.inputs, *self.image]),
            helper.make_tensor_value_info("y", TensorProto.FLOAT, None),
        ]
        tensors = [numpy_helper.from_array(array.astype(np.float32), name) for name, array in constants.items()]
        graph = helper.make_graph(nodes, "pair", ports[:1], ports[1:], tensors)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)

    def reader(self, value: str, pads: tuple[int, ...]) -> onnx.NodeProto:
        window = {"pads": pads, "strides": [self.stride] * 2}
        if self.pool:
            return helper.make_node(self.pool, [value], ["d"], kernel_shape=[self.kernel] * 2, **window, **self.pool_attributes)
        return helper.make_node("Conv", [value, "v", "a"], ["d"], dilations=[self.dilation] * 2, group=self.channels, **window)

    def activated(self, value: str, result: str) -> list[onnx.NodeProto]:
        if self.activation == "SiLU":
            return [
                helper.make_node("Sigmoid", [value], [result + "_sigmoid"]),
                helper.make_node("Mul", [value, result + "_sigmoid"], [result]),
            ]
        slopes = ["slopes"] if self.activation == "PRelu" else []
        return [helper.make_node(self.activation, [value, *slopes], [result])] if self.activation else []


CASES = [
    Pair(16, 96, (112, 112), stride=2),
    Pair(24, 144, (56, 56)),
    Pair(16, 88, (90, 90), stride=2),  # the channels of the last tasks are shifted inwards
    Pair(32, 104, (64, 64), activation="SiLU"),
    # Tasks of further channels would read an input again that is larger than the second-level cache.
    Pair(64, 64, (75, 75), is_apart=True),
    Pair(8, 512, (60, 14), stride=2),  # a tile might have several rows, and strips fewer
    Pair(8, 512, (60, 16), stride=2, activation="SiLU"),
    Pair(8, 384, (100, 8), kernel=2, stride=2, pads=(0, 0, 0, 0)),
    Pair(4, 64, (2000, 6)),
    Pair(16, 96, (90, 80), pads=(9, 7, 12, 5), stride=2),
    Pair(24, 144, (57, 61), kernel=5, stride=2, batch=2),
    Pair(16, 96, (90, 111), activation=""),  # the sums are what is read
    Pair(16, 64, (100, 100), activation="SiLU"),  # sums wait in memory
    Pair(16, 64, (100, 100), residual=True, pads=(0, 0, 0, 0)),
    Pair(16, 64, (101, 103), stride=2, pads=(0, 0, 1, 1)),
    Pair(16, 64, (101, 103), dilation=2),
    Pair(16, 64, (101, 103), stride=2, pads=(0, 0, 0, 0)),  # the last rows and columns are not read
    Pair(3, 32, (224, 224), first=3, first_stride=2, stride=2),
    Pair(2, 32, (224, 224), first=3, first_stride=2, activation="SiLU", batch=2),
    Pair(2, 32, (221, 227), first=3, first_stride=2, first_pads=(0, 0, 1, 1)),
    Pair(1, 32, (224, 200), first=3, first_stride=2),
    Pair(4, 16, (221, 227), first=2, first_stride=2, first_pads=(0, 0, 1, 1), stride=2),
    Pair(2, 24, (300, 300), first=3, first_stride=2, stride=2),
    Pair(8, 8, (300, 200), stride=2),  # channels of half a cache line
    Pair(8, 20, (200, 180), stride=2),  # channels that do not fill vectors
    Pair(8, 20, (200, 180), stride=2, activation="SiLU"),
    Pair(16, 96, (112, 112), stride=2, batch=3, is_open=True),
    Pair(1, 32, (200, 180), first=3, kernel=2, stride=2, pads=(0, 0, 0, 0), pool="MaxPool"),
    Pair(1, 32, (200, 181), first=3, kernel=2, stride=2, pads=(0, 0, 0, 0), pool="MaxPool", pool_attributes={"ceil_mode": 1}),
    Pair(3, 20, (301, 280), first=3, first_stride=2, stride=2, pool="MaxPool", batch=2, is_open=True),
    Pair(3, 64, (224, 224), first=3, first_stride=2, stride=2, pool="MaxPool", activation="SiLU"),
    Pair(2, 16, (250, 290), stride=3, pads=(0, 1, 2, 1), pool="MaxPool", pool_attributes={"dilations": [2, 1]}),
    Pair(2, 16, (150, 290), stride=2, pool="AveragePool", pool_attributes={"count_include_pad": 1}),
    Pair(2, 16, (150, 290), stride=2, pool="AveragePool", residual=True),
    Pair(3, 88, (150, 140), stride=2, pool="MaxPool"),
    Pair(2, 16, (150, 290), stride=2, pool="LpPool", activation=""),
    Pair(16, 16, (112, 112), kernel=1, stride=2, pads=(0, 0, 0, 0), pool="MaxPool", is_apart=True),  # rows that nothing reads
    Pair(16, 16, (112, 112), kernel=2, stride=3, pads=(0, 0, 0, 0), is_apart=True),
    # Adjacent windows, which are pooled in registers.
    Pair(1, 20, (200, 181), first=3, kernel=2, stride=2, pads=(0, 0, 0, 0), pool="MaxPool"),
    Pair(3, 64, (131, 150), first=3, kernel=2, stride=2, pads=(0, 0, 0, 0), pool="AveragePool", activation=""),
    Pair(2, 24, (150, 151), first=3, kernel=3, stride=3, pads=(0, 0, 0, 0), pool="MaxPool", batch=2, is_open=True),
    Pair(3, 88, (150, 140), first=5, first_stride=2, kernel=2, stride=2, pads=(0, 0, 0, 0), pool="MaxPool", activation="LeakyRelu"),
    Pair(2, 40, (150, 290), kernel=2, stride=2, pads=(0, 0, 0, 0), pool="LpPool", residual=True),
    Pair(2, 16, (150, 290), first=3, kernel=6, stride=6, pads=(0, 0, 0, 0), pool="MaxPool"),  # too large for registers
    Pair(1, 20, (200, 181), first=3, kernel=2, stride=2, pads=(0, 0, 0, 0), pool="MaxPool", activation="PRelu"),  # for lanes past the last channel, too
    Pair(1, 31, (200, 181), first=3, kernel=2, stride=2, pads=(0, 0, 0, 0), pool="MaxPool", residual=True),
    Pair(1, 32, (200, 180), first=3, kernel=2, stride=2, pads=(0, 0, 0, 0), pool="MaxPool", activation="SiLU"),
    # Windows of the outputs of Winograd's tiles.
    Pair(16, 32, (62, 59), first=3, kernel=2, stride=2, pads=(0, 0, 0, 0), pool="MaxPool", algorithm="winograd"),
    Pair(32, 20, (41, 64), first=3, kernel=2, stride=2, pads=(0, 0, 0, 0), pool="AveragePool", residual=True, batch=2, algorithm="winograd"),
    Pair(16, 48, (32, 32), first=3, kernel=2, stride=2, pads=(0, 0, 0, 0), pool="LpPool", activation="SiLU", is_open=True, algorithm="winograd"),
    Pair(128, 96, (8, 8), first=3, kernel=2, stride=2, pads=(0, 0, 0, 0), pool="MaxPool", activation="", algorithm="winograd"),
    Pair(16, 16, (99, 100), first=3, kernel=2, stride=2, pads=(0, 0, 0, 0), pool="MaxPool", algorithm="winograd"),
]


AVX2 = "x86-64-linux-avx2-fma-f16c-avx-sse41"


@dataclass
class Build:
    case: Pair
    target: str

    def model(self) -> onnx.ModelProto:
        return self.case.model()

    @property
    def options(self) -> dict:
        return {"target": self.target, "convolution": self.case.algorithm}

    def __str__(self):
        return f"{self.case}-{self.target}"


@pytest.mark.parametrize("build", [Build(case, target) for target in ("host", AVX2) for case in CASES], ids=str)
def test_conv_pairs(build):
    case, model = build.case, build.model()
    inputs = {"x": np.random.default_rng(1).normal(size=(case.batch, case.inputs, *case.image)).astype(np.float32)}
    expected = OnnxRuntime(model).run(inputs)["y"]
    for threads in (1, 2, 5, 16):
        found = difference(onnx2halide.compile(model, threads=threads, **build.options).run_by_name(inputs)["y"], expected)
        assert not found.exceeds(default_tolerance(expected.dtype), default_floor(expected.dtype, inputs.values())), found.text()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_which_share_a_kernel(tmp_path, case):
    onnx.save(case.model(), tmp_path / "pair.onnx")
    (tmp_path / "out").mkdir()
    manifest = compile_into(tmp_path / "out", tmp_path / "pair.onnx", Options(target=AVX2, convolution=case.algorithm), ["--sources-only"])
    kernels = [[node.split(" ")[0] for node in step["nodes"]] for step in manifest["steps"]]
    conv = "PackedConv" if case.algorithm == "direct" else "WinogradConv"
    assert any(nodes.count(conv) + nodes.count(case.pool) == 2 for nodes in kernels) != case.is_apart, kernels


@pytest.mark.parametrize("residual", ["Relu", "Transpose"])
def test_residual_before_winograd(onnx2halide, tmp_path, residual):
    """The other operand of a sum that is pooled may come from the same kernel."""
    order = {"perm": [0, 1, 3, 2]} if residual == "Transpose" else {}
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1] * 4),
        helper.make_node(residual, ["u"], ["v"], **order),
        helper.make_node("Add", ["v", "c"], ["a"]),
        helper.make_node("MaxPool", ["a"], ["y"], kernel_shape=[2, 2], strides=[2, 2]),
    ]
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in (("x", [1, 16, 24, 24]), ("u", [1, 32, 24, 24]), ("y", None))]
    weights = np.random.default_rng(0).normal(size=(32, 16, 3, 3)).astype(np.float32)
    graph = helper.make_graph(nodes, "sum", ports[:2], ports[2:], [numpy_helper.from_array(weights, "w")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, tmp_path / "total.onnx")
    assert onnx2halide("total.onnx", "-o", "out", "--convolution", "winograd").returncode == 0
    assert "pooled at once" in (tmp_path / "out" / "total_generators.cpp").read_text()
    inputs = {name: np.random.default_rng(1).normal(size=shape).astype(np.float32) for name, shape in (("x", (1, 16, 24, 24)), ("u", (1, 32, 24, 24)))}
    compiled = Compiled(tmp_path / "total.onnx", Options(convolution="winograd"))
    found = difference(Model(compiled.library, 2).run_by_name(inputs)["y"], OnnxRuntime(model).run(inputs)["y"])
    assert not found.exceeds(default_tolerance(np.dtype(np.float32)), default_floor(np.dtype(np.float32), inputs.values())), found.text()
