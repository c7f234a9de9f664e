"""The tiles of lowered kernels: their sums stay in registers."""

import json
import math
import re

import numpy as np
import pytest
from make_models import FLOAT, model, node

REGISTERS = 32  # of AVX-512, of 16 floats each


@pytest.mark.parametrize(
    "channels, image, kernel, tiles",
    [
        (64, (2000,), (1,), {"pixels", "columns"}),  # strips of pixels
        (64, (2000,), (3,), {"pixels", "columns"}),
        (64, (100, 40), (1, 1), {"pixels", "rows"}),  # strips of rows
        (64, (200, 4), (1, 1), {"pixels", "tile_rows", "rows"}),  # tiles of several rows
        (736, (361,), (1,), {"pixels", "columns"}),  # strips and tiles of channels are tasks
        (448, (16, 4), (1, 1), {"pixels", "tile_rows", "rows"}),
    ],
)
def test_sums_of_convolutions_fit_in_registers(onnx2halide, tmp_path, channels, image, kernel, tiles):
    weights = np.random.default_rng(0).normal(size=(channels, channels, *kernel)).astype(np.float32)
    pads = [size // 2 for size in kernel] * 2
    shape = [1, channels, *image]
    proto = model([node("Conv", "x w", "y", pads=pads)], [("x", FLOAT, shape)], [("y", FLOAT, shape)], {"w": weights})
    (tmp_path / "conv.onnx").write_bytes(proto.SerializeToString())
    target = "x86-64-linux-avx512_skylake-avx512-avx2-avx-sse41-fma-f16c"
    done = onnx2halide("conv.onnx", "-o", tmp_path, "--emit", "stmt", "--target", target, "--convolution", "direct")
    assert done.returncode == 0, done.stderr

    kernels = json.loads((tmp_path / "conv.json").read_text())["kernels"]
    assert any(tiles <= kernel.get("parameters", {}).keys() for kernel in kernels), kernels
    sums = [
        math.prod(map(int, re.findall(r"\d+", extents)))
        for path in tmp_path.glob("conv_*.stmt")
        for extents in re.findall(r"allocate \w*_sum\[float32((?: \* \d+)+)\]", path.read_text())
    ]
    assert sums
    assert max(sums) <= REGISTERS * 16
