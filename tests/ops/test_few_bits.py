"""Products with constant integers of a few bits, for any number of rows: MatMulNBits, and products of what DequantizeLinear makes."""

import json

import numpy as np
import onnx
import pytest
from microsoft_cases import bytes_of
from onnx import TensorProto, helper, numpy_helper
from onnx2halide import compile
from onnx2halide.references import OnnxRuntime
from open_models import check
from reference_cases import constant


def model(*axes, bits: int, depth=128, columns=70, block=32, has_zeros=True, dtype=np.float32, level=0):
    blocks, in_byte = -(-depth // block), 8 // bits
    weights = {"integers": bytes_of(columns, blocks, block // in_byte), "scales": constant(columns, blocks).astype(dtype)}
    if has_zeros:
        weights["zeros"] = bytes_of(columns, -(-blocks // in_byte))
    attributes = {"K": depth, "N": columns, "bits": bits, "block_size": block, "accuracy_level": level}
    node = helper.make_node("MatMulNBits", ["x", *weights], ["y"], "node", domain="com.microsoft", **attributes)
    element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    ports = (helper.make_tensor_value_info(name, element, [*axes, size]) for name, size in (("x", depth), ("y", columns)))
    graph = helper.make_graph([node], "small", [next(ports)], [next(ports)], [numpy_helper.from_array(w, n) for n, w in weights.items()])
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def operators(proto, onnx2halide, tmp_path) -> list[str]:
    """Those that a compiled model has."""
    onnx.save(proto, tmp_path / "net.onnx")
    assert onnx2halide("net.onnx", "-o", "out", "--sources-only", "--overwrite").returncode == 0
    steps = json.loads((tmp_path / "out" / "net.json").read_text())["steps"]
    return [node.split()[0] for step in steps for node in step["nodes"]]


@pytest.mark.parametrize("rows", (4, 9, "rows"))
def test_the_integers_stay_as_they_are(onnx2halide, tmp_path, rows):
    assert operators(model(rows, bits=4), onnx2halide, tmp_path) == ["PackedMatMulNBits"]


@pytest.mark.parametrize("target", ("host", "x86-64-linux-avx2-fma-f16c"))
@pytest.mark.parametrize("columns", (64, 70, 300))
@pytest.mark.parametrize("bits", (4, 8))
def test_any_number_of_rows(bits, columns, target):
    proto = model("batch", "rows", bits=bits, columns=columns)
    check(proto, [{"x": (*shape, 128)} for shape in ((1, 1), (1, 2), (1, 5), (4, 4), (1, 17), (40, 1))], target=target)


@pytest.mark.parametrize("block, has_zeros", ((16, True), (128, True), (32, False)))
@pytest.mark.parametrize("rows", (1, 3, 8, 13, 17, 40))
@pytest.mark.parametrize("bits", (4, 8))
def test_blocks_of_known_rows(bits, rows, block, has_zeros):
    check(model(rows, bits=bits, block=block, has_zeros=has_zeros), [{"x": (rows, 128)}])


def test_a_last_block_in_part():
    check(model("rows", bits=4, depth=40), [{"x": (rows, 40)} for rows in (1, 3, 20)])


@pytest.fixture
def used_level(onnx2halide, tmp_path):
    """The level that is used where 4 is permitted: on CPUs that do not multiply bytes, products stay exact."""
    return 4 if "PackedMatMulBytes" in operators(model(4, bits=4, level=4), onnx2halide, tmp_path) else 0


@pytest.mark.parametrize("bits, columns, block, has_zeros", [
    (4, 70, 32, True), (4, 300, 32, False), (4, 64, 16, True), (4, 16, 128, True),
    (8, 70, 32, True), (8, 64, 128, False), (8, 300, 16, True),
])
@pytest.mark.parametrize("rows", (1, 3, 21, "rows"))
def test_rows_are_quantised_as_permitted(used_level, bits, columns, block, has_zeros, rows):
    form = dict(bits=bits, columns=columns, block=block, has_zeros=has_zeros, depth=256)
    proto, reference = (model("batch", rows, level=level, **form) for level in (4, used_level))
    shapes = [(batch, count, 256) for batch in (1, 3) for count in ((1, 2, 9, 40) if rows == "rows" else (rows,))]
    check(proto, [{"x": shape} for shape in shapes], reference=reference)


def test_quantised_rows_of_zeros_and_nan():
    """A block of zeros has no scale, and a NaN spreads to the results of its row only."""
    x = np.random.default_rng(0).normal(size=(4, 128)).astype(np.float32)
    x[0], x[1, 32:64], x[2, 5] = 0, 1e-42, np.nan
    y = compile(model(4, bits=4, level=4)).run_by_name({"x": x})["y"]
    exact = compile(model(4, bits=4)).run_by_name({"x": np.nan_to_num(x)})["y"]
    assert np.isnan(y[2]).all() and (y[0] == 0).all()
    for row in (1, 3):
        np.testing.assert_allclose(y[row], exact[row], rtol=0, atol=0.02 * np.abs(exact[row]).max())


def test_zero_points_that_are_floats():
    """Of 8 bits, which onnxruntime does not take."""
    proto, zeros = model("rows", bits=8, has_zeros=False), 200 * np.abs(constant(70, 4, 1))
    proto.graph.node[0].input.append("zeros")
    proto.graph.initializer.append(numpy_helper.from_array(zeros, "zeros"))
    tensors = {tensor.name: numpy_helper.to_array(tensor) for tensor in proto.graph.initializer}
    elements = (tensors["integers"].astype(np.float64) - zeros) * tensors["scales"].reshape(zeros.shape)
    compiled = compile(proto)
    for rows in (1, 20):
        x = np.random.default_rng(0).normal(size=(rows, 128)).astype(np.float32)
        expected = x @ elements.reshape(70, 128).T
        np.testing.assert_allclose(compiled.run_by_name({"x": x})["y"], expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize("level", (0, 4))
@pytest.mark.parametrize("bits", (4, 8))
def test_halves(used_level, bits, level):
    compiled = compile(model("rows", bits=bits, dtype=np.float16, level=level))
    reference = OnnxRuntime(model("rows", bits=bits, dtype=np.float16, level=min(level, used_level)))
    for rows in (1, 5, 40):
        x = np.random.default_rng(0).normal(size=(rows, 128)).astype(np.float16)
        expected, found = reference.run({"x": x})["y"], compiled.run_by_name({"x": x})["y"]
        assert found.dtype == np.float16
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3 * np.abs(expected).max())


FORMS = {
    "MatMul": "y = MatMul(x, w)",
    "Gemm": "y = Gemm<alpha = 0.5>(x, w, c)",
    "transposed": "t = Transpose<perm = [1, 0]>(w) y = MatMul(x, t)",
    "Gemm of columns": "y = Gemm<transB = 1>(x, w)",
}
NUMBERS = {"int4": (-8, 8), "uint4": (0, 16), "int8": (-128, 128), "uint8": (0, 256)}


def dequantised(element: str, form: str, has_zeros: bool, block=32):
    """The integers are dequantised by a node of its own."""
    has_columns_first, depth, columns = form in ("transposed", "Gemm of columns"), 128, 70
    zeros = ", z" if has_zeros else ""
    proto = onnx.parser.parse_model(f"""<ir_version: 10, opset_import: ["" : 21]> g (float[rows, {depth}] x) => (float[rows, {columns}] y) {{
        w = DequantizeLinear<axis = {int(has_columns_first)}, block_size = {block}>(q, s{zeros}) {FORMS[form]}
    }}""")
    rng, type = np.random.default_rng(0), getattr(TensorProto, element.upper())
    for name, steps in (("q", depth), ("z", depth // block))[: 1 + has_zeros]:
        shape = (columns, steps) if has_columns_first else (steps, columns)
        proto.graph.initializer.append(helper.make_tensor(name, type, shape, rng.integers(*NUMBERS[element], shape).ravel()))
    scales = constant(columns, depth // block)
    proto.graph.initializer.append(numpy_helper.from_array(scales if has_columns_first else np.ascontiguousarray(scales.T), "s"))
    proto.graph.initializer.append(numpy_helper.from_array(constant(columns), "c"))
    return proto


def without_blocks(element: str, form: str, has_zeros: bool, scales: str):
    """As dequantised(), with a scale for each column or one for all."""
    proto = dequantised(element, form, has_zeros, block=128)
    node, counts = proto.graph.node[0], {"column": 70, "matrix": 1}
    del node.attribute[1:]
    node.attribute[0].i = 1 - node.attribute[0].i
    for tensor in proto.graph.initializer:
        if tensor.name in ("s", "z"):
            elements = numpy_helper.to_array(tensor).ravel()[: counts[scales]]
            tensor.CopyFrom(helper.make_tensor(tensor.name, tensor.data_type, elements.shape if scales == "column" else (), elements))
    return proto


@pytest.mark.parametrize("has_zeros", (False, True))
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("element", NUMBERS)
def test_dequantised_blocks(element, form, has_zeros):
    check(dequantised(element, form, has_zeros), [{"x": (rows, 128)} for rows in (1, 5, 20)])


@pytest.mark.parametrize("has_zeros", (False, True))
@pytest.mark.parametrize("scales", ("column", "matrix"))
@pytest.mark.parametrize("form, element", [("MatMul", element) for element in NUMBERS] + [("transposed", "int8"), ("Gemm of columns", "uint4")])
def test_dequantised_columns(onnx2halide, tmp_path, element, form, scales, has_zeros):
    proto = without_blocks(element, form, has_zeros, scales)
    check(proto, [{"x": (rows, 128)} for rows in (1, 20)])
    assert operators(proto, onnx2halide, tmp_path) == ["PackedMatMulNBits"]


@pytest.mark.parametrize("form", FORMS)
def test_dequantised_blocks_stay_as_they_are(onnx2halide, tmp_path, form):
    assert operators(dequantised("int4", form, has_zeros=True), onnx2halide, tmp_path) == ["PackedMatMulNBits"]
    # A block would be no whole word.
    assert operators(dequantised("int4", form, has_zeros=True, block=4), onnx2halide, tmp_path) == ["PackedMatMul"]
