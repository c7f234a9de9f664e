"""Convolutions and products of 8-bit integers by instructions that multiply matrices: results are exact."""

import re

import numpy as np
import onnx
import pytest
from convolutions import integer_model, sums, zero_point
from onnx import TensorProto, helper, numpy_helper
from recipes import Recipe

TARGET = "x86-64-linux-avx512_sapphirerapids-avx512_cannonlake-avx512_skylake-avx512-avx2-avx-f16c-fma-sse41"


def product(rows, depth, columns, batch=(), zero=0, dtype="uint8", weights="random") -> onnx.ModelProto:
    rng = np.random.default_rng(depth + columns)
    array = {"random": rng.integers(-128, 128, (depth, columns)), "least": np.full((depth, columns), -128)}[weights]
    element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    graph = helper.make_graph(
        [helper.make_node("MatMulInteger", ["x", "w", "zero"], ["y"])],
        "product",
        [helper.make_tensor_value_info("x", element, [*batch, rows, depth])],
        [helper.make_tensor_value_info("y", TensorProto.INT32, [*batch, rows, columns])],
        [numpy_helper.from_array(array.astype(np.int8), "w"), numpy_helper.from_array(np.array(zero, dtype), "zero")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


CONVOLUTIONS = [
    ((64, 64, 56, 56), {}),  # two matrices of 14 pixels side by side
    ((64, 128, 28, 28), {"zero": 128}),
    ((128, 32, 14, 14), {"dtype": "int8", "zero": -5}),  # of a row each, one below the other
    ((256, 64, 7, 7), {"zero": 255}),
    ((64, 48, 9, 11), {}),  # three matrices of channels
    ((64, 80, 9, 11), {}),  # five of them
    ((64, 24, 9, 11), {"zero": 1}),  # channels that do not fill the last matrix
    ((8, 5, 9, 11), {"pads": (1, 0, 2, 1), "strides": (1, 2)}),
    ((16, 32, 12, 20), {"batch": 3, "pads": (2, 0, 1, 3), "zero": 7}),  # three taps of few channels at once
    ((4, 32, 33, 30), {"kernel": (7, 7), "strides": (2, 2), "pads": (3, 3, 3, 3)}),
    ((3, 32, 33, 30), {"kernel": (7, 7), "strides": (2, 2), "pads": (3, 3, 3, 3), "zero": 9}),
    ((64, 32, 15, 18), {"strides": (2, 2)}),
    ((40, 32, 12, 14), {"kernel": (5, 5), "pads": (2, 2, 2, 2)}),
    ((160, 32, 12, 14), {"kernel": (1, 1), "pads": (0, 0, 0, 0)}),  # pixels of all rows in one
    ((192, 32, 20, 24), {"dilations": (2, 2), "pads": (2, 2, 2, 2)}),
    ((64, 32, 50), {"zero": 3}),
    ((64, 32, 5, 9, 8), {"zero": 100}),
    ((1024, 16, 9, 9), {"weights": "least"}),
    ((64, 32, 10, 10), {"weights": "least", "dtype": "int8", "zero": 127}),
]
PRODUCTS = [
    ((128, 768, 768), {}),
    ((100, 256, 96), {"zero": 128, "dtype": "uint8"}),
    ((49, 96, 40), {"dtype": "int8", "zero": 3}),
    ((7, 64, 1000), {}),
    ((5, 28, 16), {}),
    ((16, 64, 8), {"batch": (2, 3)}),
    ((33, 1024, 32), {"weights": "least", "zero": 255}),
]
CASES = [
    Recipe(make, *shape, options={"convolution": "direct"}, **attributes)
    for make, cases in ((integer_model, CONVOLUTIONS), (product, PRODUCTS))
    for shape, attributes in cases
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_exact(case):
    """On this machine, whatever its instructions."""
    proto = case.model()
    port = proto.graph.input[0].type.tensor_type
    dtype = helper.tensor_dtype_to_np_dtype(port.elem_type)
    limits = np.iinfo(dtype)
    data = np.random.default_rng(0).integers(limits.min, limits.max + 1, [dim.dim_value for dim in port.shape.dim])
    centred = data - zero_point(proto)
    if proto.graph.node[0].op_type == "ConvInteger":
        expected = sums(proto, centred)
    else:
        expected = centred @ numpy_helper.to_array(proto.graph.initializer[0]).astype(np.int64)
    assert np.array_equal(case.compile().run([data.astype(dtype)])[0], expected)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_instructions(onnx2halide, tmp_path, case):
    """They multiply everything, and nothing is kept in memory meanwhile."""
    (tmp_path / "m.onnx").write_bytes(case.model().SerializeToString())
    options = ("--target", TARGET, "--convolution", "direct", "--emit", "assembly")
    done = onnx2halide("m.onnx", "-o", "out", *options)
    assert done.returncode == 0, done.stderr
    assembly = "".join(path.read_text() for path in (tmp_path / "out").glob("*.s"))
    assert "tdpbusd" in assembly
    assert "vpdpbusd" not in assembly
    assert not has_spills(assembly)


def has_spills(assembly: str) -> bool:
    return bool(re.search("Folded (Spill|Reload)", "".join(line for line in assembly.splitlines() if "%tmm" in line)))


OPEN_PRODUCTS = [
    (768, 64, {}),
    (256, 96, {"zero": 128}),
    (96, 40, {"dtype": "int8", "zero": 3}),  # columns that do not fill the last matrix
    (28, 16, {"zero": 7}),
]


@pytest.mark.parametrize("depth, columns, options", OPEN_PRODUCTS)
def test_open_rows(depth, columns, options):
    """Tiles of every size, alone and several."""
    proto = product("rows", depth, columns, ("batch",), **options)
    limits = np.iinfo(options.get("dtype", "uint8"))
    compiled = Recipe(lambda: proto).compile()
    rng = np.random.default_rng(0)
    weights = numpy_helper.to_array(proto.graph.initializer[0]).astype(np.int64)
    for batch, rows in [(1, 1), (1, 2), (1, 3), (1, 4), (3, 5), (2, 8), (1, 31), (1, 33), (3, 47), (1, 100)]:
        data = rng.integers(limits.min, limits.max + 1, (batch, rows, depth))
        expected = (data - options.get("zero", 0)) @ weights
        assert np.array_equal(compiled.run([data.astype(limits.dtype)])[0], expected), (batch, rows)


def test_instructions_of_open_rows(onnx2halide, tmp_path):
    """Each version multiplies with its own instructions: matrices of 16 rows twice, and of 16, 8 and 4, side by side."""
    (tmp_path / "m.onnx").write_bytes(product("rows", 256, 32).SerializeToString())
    done = onnx2halide("m.onnx", "-o", "out", "--target", TARGET, "--emit", "assembly")
    assert done.returncode == 0, done.stderr
    assembly = "".join(path.read_text() for path in (tmp_path / "out").glob("*.s"))
    assert assembly.count("tdpbusd") == 2 * (2 + 1 + 1 + 1)
    assert not has_spills(assembly)

