"""Sums over images whose sizes only a run knows: each is divided into slabs, so that those of large images are not rounded off."""

import numpy as np
import onnx
import onnx2halide
import pytest


def over_images(operator: str, sizes: str, channels: int) -> onnx.ModelProto:
    """The operator on images with channels innermost, as networks keep them."""
    return onnx.parser.parse_model(f"""<ir_version: 9, opset_import: ["" : 18]>
        images (float[{sizes},{channels}] x, float[{channels}] scale, float[{channels}] bias) => (float[a,{channels},b,c] y) {{
            t = Transpose<perm = [0, 3, 1, 2]>(x)
            y = {operator}
        }}""")


OPERATORS = {
    "GlobalAveragePool(t)": (lambda x: x.mean((2, 3), keepdims=True), 4e-6),
    "InstanceNormalization(t, scale, bias)": (lambda x: (x - x.mean((2, 3), keepdims=True)) / np.sqrt(x.var((2, 3), keepdims=True) + 1e-5), 2e-5),
}


@pytest.mark.parametrize("operator, channels", [(operator, channels) for operator in OPERATORS for channels in (16, 24, 40)])
@pytest.mark.parametrize("sizes", ["n,h,w", "1,h,w", "2,h,47"])
def test_against_float64(operator, channels, sizes):
    compute, allowed = OPERATORS[operator]
    compiled = onnx2halide.compile(over_images(operator, sizes, channels), threads=3)
    rng = np.random.default_rng(0)
    for size in [(1, 1, 1), (3, 2, 5), (1, 7, 7), (2, 17, 47), (1, 33, 47), (1, 300, 310), (2, 160, 47)]:
        if any(dim.isdigit() and int(dim) != length for dim, length in zip(sizes.split(","), size)):
            continue
        x = (rng.random((*size, channels)) + 1).astype(np.float32)
        scale, bias = np.ones(channels, np.float32), np.zeros(channels, np.float32)
        found = compiled.run_by_name({"x": x, "scale": scale, "bias": bias})["y"]
        expected = compute(x.astype(np.float64).transpose(0, 3, 1, 2))
        assert np.abs(found - expected).max() <= allowed * max(1, np.abs(expected).max()), size
