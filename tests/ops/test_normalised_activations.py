"""Normalisations with an activation in their kernel that takes many instructions, whose rows do not fill vectors, against onnxruntime."""

import numpy as np
import onnx
import onnx2halide
import pytest
from onnx import numpy_helper
from onnx2halide.references import OnnxRuntime

HEADER = '<ir_version: 8, opset_import: ["" : 17]>'
ACTIVATIONS = ("Relu", "Sigmoid", "Tanh", "Elu")

# Of one row each.
WHOLE = {
    "instance": (
        "n = InstanceNormalization(x, one, zero)",
        "1, 1, 20, 20",
        {"one": np.ones(1, np.float32), "zero": np.zeros(1, np.float32)},
    ),
    "layer": (
        "n = LayerNormalization<axis = 1>(x, scale)",
        "1, 10, 20",
        {"scale": np.linspace(0.5, 2, 200, dtype=np.float32).reshape(10, 20)},
    ),
    "mean-variance": ("n = MeanVarianceNormalization<axes = [2, 3]>(x)", "1, 1, 5, 4", {}),
    "softmax": ("n = Softmax<axis = 0>(x)", "35", {}),
}

# The image's dims, and sizes of a run.
IMAGES = {
    "fixed": ("1, 3, 9, 9", [(1, 3, 9, 9)]),
    "pixel": ("1, 3, 1, 1", [(1, 3, 1, 1)]),
    "batch": ("n, 3, 9, 7", [(1, 3, 9, 7), (3, 3, 9, 7)]),
    "narrow": ("n, 3, 9, 1", [(1, 3, 9, 1), (2, 3, 9, 1)]),
    "height": ("1, 3, h, 9", [(1, 3, 1, 9), (1, 3, 40, 9)]),
    "open": ("n, 3, h, w", [(1, 3, 5, 6), (2, 3, 1, 30)]),
    "row": ("1, 3, 1, w", [(1, 3, 1, 1), (1, 3, 1, 300)]),
}


def parsed(inputs: str, body: str, constants: dict) -> onnx.ModelProto:
    proto = onnx.parser.parse_model(f"{HEADER} net (float[{inputs}] x) => (float[{', '.join('?' * len(inputs.split(',')))}] y) {{ {body} }}")
    proto.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in constants.items())
    return proto


def compare(protos: list, sizes: list, **options) -> None:
    for proto, compiled in zip(protos, onnx2halide.compile_many(protos, **options), strict=True):
        for size in sizes:
            x = np.random.default_rng(len(size)).normal(size=size).astype(np.float32)
            expected = OnnxRuntime(proto).run({"x": x})["y"]
            np.testing.assert_allclose(compiled.run_by_name({"x": x})["y"], expected, rtol=1e-5, atol=1e-6, err_msg=str(size))


@pytest.mark.parametrize("target", ["host", "x86-64-linux-sse41-avx-f16c-fma-avx2"])
@pytest.mark.parametrize("kind", WHOLE)
def test_single_row(kind, target):
    body, dims, constants = WHOLE[kind]
    protos = [parsed(dims, f"{body} y = {activation}(n)", constants) for activation in ACTIVATIONS]
    compare(protos, [tuple(int(dim) for dim in dims.split(","))], target=target)


@pytest.mark.parametrize("target", ["host", "x86-64-linux-sse41-avx-f16c-fma-avx2"])
@pytest.mark.parametrize("kind", IMAGES)
def test_local_response(kind, target):
    """Channels are innermost behind the convolution."""
    dims, sizes = IMAGES[kind]
    rng = np.random.default_rng(0)
    protos = []
    for channels, activation in ((7, "Elu"), (20, "Sigmoid"), (20, "Relu"), (96, "Tanh")):
        weights = rng.normal(size=(channels, 3, *[1] * (dims.count(",") - 1))).astype(np.float32)
        protos.append(parsed(dims, f"c = Conv(x, w) n = LRN<size = 3, alpha = 0.1>(c) y = {activation}(n)", {"w": weights}))
    compare(protos, sizes, target=target, threads=2)
