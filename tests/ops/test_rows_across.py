"""Normalisations of strided rows, against onnxruntime: of a few long rows, in parallel slabs, and of many, in numbers that do and do not
fill tiles, along several axes, and with an epilogue."""

import numpy as np
import onnx
import onnx2halide
import pytest
from onnx2halide.compare import difference
from onnx2halide.references import OnnxRuntime

HEADER = '<ir_version: 9, opset_import: ["" : 18]>'


def images(n: int, channels: int, *sizes: int) -> onnx.ModelProto:
    """An InstanceNormalization of images with channels innermost."""
    rank = len(sizes) + 2
    first, last = [0, rank - 1, *range(1, rank - 1)], [0, *range(2, rank), 1]
    shape = ",".join(map(str, (n, *sizes, channels)))
    return onnx.parser.parse_model(f"""{HEADER}
        images (float[{shape}] x, float[{channels}] scale, float[{channels}] bias) => (float[{shape}] y) {{
            t = Transpose<perm = {first}>(x)
            i = InstanceNormalization(t, scale, bias)
            r = LeakyRelu<alpha = 0.1>(i)
            y = Transpose<perm = {last}>(r)
        }}""")


def groups(n: int, channels: int, count: int, *sizes: int) -> onnx.ModelProto:
    """A GroupNormalization of images with channels innermost."""
    shape = ",".join(map(str, (n, *sizes, channels)))
    return onnx.parser.parse_model(f"""<ir_version: 10, opset_import: ["" : 21]>
        groups (float[{shape}] x, float[{channels}] scale, float[{channels}] bias) => (float[{shape}] y) {{
            t = Transpose<perm = [0, 3, 1, 2]>(x)
            g = GroupNormalization<num_groups = {count}>(t, scale, bias)
            y = Transpose<perm = [0, 2, 3, 1]>(g)
        }}""")


def columns(op: str, *shape: int) -> onnx.ModelProto:
    """An operator over the second last axis."""
    text = ",".join(map(str, shape))
    return onnx.parser.parse_model(f"{HEADER} columns (float[{text}] x) => (float[{text}] y) {{ y = {op}<axis = -2>(x) }}")


MODELS = {
    "slabs of an image": images(1, 64, 96, 80),
    "slabs of a few channels": images(1, 16, 300, 50),
    "slabs of a signal": images(1, 256, 3199),
    "slabs of a volume": images(1, 32, 20, 24, 18),
    "slabs of two images": images(2, 16, 120, 90),
    "slabs of columns": columns("LogSoftmax", 1, 2000, 64),
    "groups": groups(1, 128, 32, 64, 64),
    "a few groups": groups(1, 64, 16, 48, 40),
    "tiles of eight vectors": images(1, 512, 40, 8),
    "tiles and a rest": images(2, 144, 30, 20),
    "no whole vectors": images(1, 40, 70, 60),
    "less than a vector": images(3, 5, 70, 60),
    "few elements": images(1, 128, 4, 4),
    "softmax of columns": columns("Softmax", 2, 21, 1000),
    "softmax of long columns": columns("Softmax", 3, 1000, 48),
    "softmax of a few": columns("LogSoftmax", 7, 33, 50),
    "no rows": columns("Softmax", 3, 0, 40),
}


@pytest.mark.parametrize("name", MODELS)
def test_rows(name):
    proto = MODELS[name]
    rng = np.random.default_rng(0)
    inputs = {
        port.name: (rng.normal(size=[dim.dim_value for dim in port.type.tensor_type.shape.dim]) + 3).astype(np.float32) for port in proto.graph.input
    }
    expected = OnnxRuntime(proto).run(inputs)["y"]
    for threads in (1, 2):
        found = onnx2halide.compile(proto, threads=threads).run_by_name(inputs)["y"]
        error = difference(found, expected)
        assert not error.exceeds(1e-5, 1e-5), error.text()
