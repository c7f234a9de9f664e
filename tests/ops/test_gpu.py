"""Schedules of a GPU on OpenCL, against onnxruntime: tiles that do and do not fit, sums in slices of any length, contiguous and strided
rows that threads share, pieces and updates that threads copy, and elements of several widths."""

import subprocess

import numpy as np
import onnx
import onnx2halide
import pytest
from onnx2halide.compare import difference
from onnx2halide.references import OnnxRuntime
from paths import COMPILER

TARGET = "host-opencl"
HEADER = '<ir_version: 9, opset_import: ["" : 18]>'


def product(a: list[int], b: list[int], element: str = "float") -> onnx.ModelProto:
    shape = [*np.broadcast_shapes(a[:-2], b[:-2]), a[-2], b[-1]]
    return onnx.parser.parse_model(f"{HEADER} product ({element}{a} a, {element}{b} b) => ({element}{shape} y) {{ y = MatMul(a, b) }}")


def gemm(rows: int, columns: int, depth: int, bias: list[int]) -> onnx.ModelProto:
    return onnx.parser.parse_model(
        f"""{HEADER} gemm (float[{rows},{depth}] a, float[{columns},{depth}] b, float{bias} c) => (float[{rows},{columns}] y) {{
            p = Gemm<transB = 1, alpha = 0.5>(a, b, c)
            y = Relu(p)
        }}""")


def convolution(inputs: int, channels: int, size: int, kernel: int, stride: int = 1, images: int = 1, element: str = "float") -> onnx.ModelProto:
    pad = kernel // 2
    out = (size + 2 * pad - kernel) // stride + 1
    model = onnx.parser.parse_model(
        f"""{HEADER} convolution ({element}[{images},{inputs},{size},{size}] x) => ({element}[{images},{channels},{out},{out}] y) {{
            c = Conv<kernel_shape = [{kernel},{kernel}], strides = [{stride},{stride}], pads = [{pad},{pad},{pad},{pad}]>(x, w, b)
            y = LeakyRelu<alpha = 0.1>(c)
        }}""")
    rng = np.random.default_rng(1)
    dtype = np.float32 if element == "float" else np.float16
    weights = rng.standard_normal((channels, inputs, kernel, kernel)) / (inputs * kernel * kernel) ** 0.5
    model.graph.initializer.append(onnx.numpy_helper.from_array(weights.astype(dtype), "w"))
    model.graph.initializer.append(onnx.numpy_helper.from_array(rng.standard_normal(channels).astype(dtype), "b"))
    return model


def convolution_of_open_sizes() -> onnx.ModelProto:
    model = convolution(4, 16, 5, 3)
    for value in (*model.graph.input, *model.graph.output):
        for axis, name in ((0, "n"), (2, "h"), (3, "w")):
            value.type.tensor_type.shape.dim[axis].dim_param = name
    return model


def rows(op: str, shape: list[int], axis: int) -> onnx.ModelProto:
    return onnx.parser.parse_model(f"{HEADER} rows (float{shape} x) => (float{shape} y) {{ y = {op}<axis = {axis}>(x) }}")


def normalised(shape: list[int], axis: int) -> onnx.ModelProto:
    scale = shape[axis:]
    return onnx.parser.parse_model(
        f"""{HEADER} normalised (float{shape} x, float{scale} s, float{scale} b) => (float{shape} y) {{
            y = LayerNormalization<axis = {axis}>(x, s, b)
        }}""")


def reduced(op: str, shape: list[int], axes: list[int]) -> onnx.ModelProto:
    kept = [size for axis, size in enumerate(shape) if axis not in axes]
    return onnx.parser.parse_model(
        f"""{HEADER} reduced (float{shape} x) => (float{kept} y) {{
            axes = Constant<value_ints = {axes}>()
            y = {op}<keepdims = 0>(x, axes)
        }}""")


def groups() -> onnx.ModelProto:
    """A GroupNormalization of images whose size is known only at run time."""
    return onnx.parser.parse_model(
        """<ir_version: 10, opset_import: ["" : 21]> groups (float[2,16,h,w] x, float[16] s, float[16] b) => (float[2,16,h,w] y) {
            y = GroupNormalization<num_groups = 8>(x, s, b)
        }""")


def quantised(zero: int) -> onnx.ModelProto:
    """A zero point of 0, as computed by a kernel, and another one."""
    return onnx.parser.parse_model(
        f"""{HEADER} quantised (float[3,64] x) => (uint8[3,64] y, uint8[3,64] z, float s, uint8 zero) {{
            scale = Constant<value = float {{0.05}}>()
            point = Constant<value = uint8 {{{zero}}}>()
            y = QuantizeLinear(x, scale, point)
            z, s, zero = DynamicQuantizeLinear(x)
        }}""")


def concatenated(shapes: list[list], axis: int, then: str = "Identity") -> onnx.ModelProto:
    """A Concat of these shapes, in which open dims have names, and an operator on its result."""
    inputs = ", ".join(f"float[{','.join(map(str, shape))}] x{i}" for i, shape in enumerate(shapes))
    names = ", ".join(f"x{i}" for i in range(len(shapes)))
    rank = ",".join(f"d{i}" for i in range(len(shapes[0])))
    return onnx.parser.parse_model(f"{HEADER} concatenated ({inputs}) => (float[{rank}] y) {{ c = Concat<axis = {axis}>({names}) y = {then}(c) }}")


def scattered(op: str, data: list, count: int, attributes: str = "") -> onnx.ModelProto:
    """Updates of `count` different rows of the data."""
    shape, updates = ",".join(map(str, data)), ",".join(map(str, [count, *data[1:]]))
    model = onnx.parser.parse_model(
        f"{HEADER} scattered (float[{shape}] x, float[{updates}] u) => (float[{shape}] y) {{ y = {op}{attributes}(x, places, u) }}")
    places = np.random.default_rng(2).permutation(data[0])[:count, np.newaxis]
    if op == "ScatterElements":
        places = np.broadcast_to(places.reshape(count, *[1] * (len(data) - 1)), (count, *data[1:]))
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.ascontiguousarray(places), "places"))
    return model


def appended() -> onnx.ModelProto:
    """Attention to a cache of 9 places, to the last of which keys and values are appended."""
    return onnx.parser.parse_model(
        """<ir_version: 10, opset_import: ["com.microsoft" : 1]> appended (
            float[1,3,48] q, float[1,3,16] k, float[1,3,16] v, float[1,2,9,8] past_k, float[1,2,9,8] past_v)
            => (float[1,3,48] y, float[1,2,9,8] next_k, float[1,2,9,8] next_v) <int32[1] last = {8}, int32 total = {9}> {
            y, next_k, next_v = com.microsoft.GroupQueryAttention<num_heads = 6, kv_num_heads = 2>(q, k, v, past_k, past_v, last, total)
        }""")


MODELS = {
    "square": product([64, 64], [64, 64]),
    "columns beyond a tile": product([1, 12, 64, 64], [1, 12, 64, 65]),
    "rows and columns beyond a tile": product([2, 3, 65, 64], [2, 3, 64, 65]),
    "a row": product([1, 300], [300, 77]),
    "a column": product([100, 300], [300, 1]),
    "few columns": product([9, 40], [40, 3]),
    "parts of a prime depth": product([2, 33, 197], [197, 64]),
    "rows of a batch": product([50, 1, 64], [64, 96]),
    "more rows than memory": product([7, 3072], [3072, 40]),
    "halves": product([20, 64], [64, 48], "float16"),
    "Gemm": gemm(7, 100, 64, [100]),
    "Gemm of a number": gemm(5, 6, 33, [1]),
    "parts beside inputs that fill no vectors": gemm(3, 4, 5, [4]),
    "3x3": convolution(64, 64, 14, 3),
    "3x3 of odd sizes": convolution(10, 7, 13, 3),
    "3x3 of stride 2": convolution(40, 90, 27, 3, 2),
    "1x1": convolution(256, 64, 7, 1),
    "1x1 of odd channels": convolution(33, 31, 19, 1),
    "an image": convolution(3, 24, 30, 7, 2),
    "one channel": convolution(1, 20, 30, 3),
    "a batch": convolution(16, 24, 9, 3, 1, 5),
    "one result": convolution(3, 1, 1, 1),
    "open sizes": convolution_of_open_sizes(),
    "halves of images": convolution(16, 32, 14, 3, element="float16"),
    "Softmax": rows("Softmax", [2, 3, 20, 33], -1),
    "Softmax of one row": rows("Softmax", [1, 1000], -1),
    "Softmax of many rows": rows("Softmax", [5000, 7], -1),
    "Softmax of many pairs": rows("Softmax", [5000, 2], -1),
    "Softmax across": rows("Softmax", [1, 20, 33, 7], 1),
    "LogSoftmax": rows("LogSoftmax", [5, 49], 1),
    "LayerNormalization": normalised([1, 30, 768], -1),
    "LayerNormalization of planes": normalised([2, 5, 7, 9], 2),
    "ReduceMean": reduced("ReduceMean", [4, 60, 40], [2]),
    "ReduceSum of many pairs": reduced("ReduceSum", [5000, 2], [1]),
    "ReduceMax of many short rows": reduced("ReduceMax", [5000, 8], [1]),
    "ReduceMean across": reduced("ReduceMean", [4, 60, 40], [1]),
    "ReduceMax": reduced("ReduceMax", [4, 60, 40], [0, 2]),
    "ReduceMax across": reduced("ReduceMax", [4, 60, 40], [1]),
    "ReduceMin of many": reduced("ReduceMin", [400, 300], [0, 1]),
    "ReduceLogSumExp": reduced("ReduceLogSumExp", [4, 600], [1]),
    "ReduceSum of all": reduced("ReduceSum", [4, 60], [0, 1]),
    "a number before an epilogue": onnx.parser.parse_model(
        f"{HEADER} number (float[70, 90] x, float s) => (float y) {{ m = ReduceMax<keepdims = 0>(x) y = Mul(m, s) }}"
    ),
    "vectors": onnx.parser.parse_model(f"{HEADER} vectors (float[3000] a, float[3000] b) => (float y) {{ y = MatMul(a, b) }}"),
    "ReduceSum of nothing": reduced("ReduceSum", [4, 0, 6], [1]),
    "halves of small images": convolution(512, 40, 7, 3, element="float16"),
    "GroupNormalization of open sizes": groups(),
    "pieces along rows": concatenated([[1, 64, 9, 9], [1, 3, 9, 9], [1, 33, 9, 9]], 1),
    "pieces before an epilogue": concatenated([[1, 64, 9, 9], [1, 31, 9, 9]], 1, "Relu"),
    "pieces of one row": concatenated([[300], [1], [40]], 0),
    "pieces of one element": concatenated([[7, 50, 1], [7, 50, 1]], 2),
    "pieces of short rows": concatenated([[2, 900, 4], [2, 60, 4]], 1),
    "pieces of many images": concatenated([[70000, 2, 3], [70000, 1, 3]], 1),
    "pieces of open length": concatenated([[2, 3, "past", 16], [2, 3, "new", 16]], 2),
    "pieces of open sizes": concatenated([["n", "a", "h", "w"], ["n", "b", "h", "w"]], 1, "Relu"),
    "pieces of open sizes across": concatenated([["n", "c", "a", "w"], ["n", "c", "b", "w"]], 2),
    "updates of rows": scattered("ScatterND", [50, 70], 20),
    "updates of numbers": scattered("ScatterND", [500], 300),
    "updates of open rows": scattered("ScatterND", [40, "w"], 20),
    "updates along an axis": scattered("ScatterElements", [50, 7, 3], 20, "<axis = 0>"),
    "updates that are added": scattered("ScatterElements", [50, 7], 20, '<axis = 0, reduction = "add">'),
    "a cache": appended(),
    "integers": quantised(0),
    "integers around another zero": quantised(100),
}


@pytest.mark.parametrize("name", MODELS)
def test_schedule(name):
    model = MODELS[name]
    rng = np.random.default_rng(0)
    inputs = {}
    for value in model.graph.input:
        shape = [5 if dim.dim_param else dim.dim_value for dim in value.type.tensor_type.shape.dim]
        inputs[value.name] = np.asarray(rng.standard_normal(shape)).astype(onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type))
    expected = OnnxRuntime(model).run(inputs)
    outputs = onnx2halide.compile(model, target=TARGET).run_by_name(inputs)
    for output, values in expected.items():
        tolerance, floor = (1e-5, 1e-6) if values.dtype == np.float32 else (2e-3, 1e-3) if values.dtype == np.float16 else (0, 0)
        found = difference(outputs[output], values)
        assert not found.exceeds(tolerance, floor), f"{output}: {found.text()}"


@pytest.mark.parametrize("sizes", [(), ("n=2",), ("h=20",), ("n=2", "h=20"), ("h=20", "w=20")], ids=" ".join)
def test_sums_of_open_sizes_stay_in_registers(tmp_path, sizes):
    """Not in memory of the device, which would be that of whole rows for each thread."""
    onnx.save(convolution_of_open_sizes(), tmp_path / "open.onnx")
    dims = [word for size in sizes for word in ("--dim", size)]
    subprocess.run([COMPILER, "compile", tmp_path / "open.onnx", "-o", tmp_path, "--target", TARGET, "--emit", "stmt", *dims], check=True)
    (text,) = [path.read_bytes() for path in tmp_path.glob("*_c_y.stmt")]
    assert b"produce y" in text and b"allocate" not in text
