"""The tiles of lowered kernels: their sums stay in registers."""

import json
import math
import re

import numpy as np
import onnx2halide as api
import pytest
from make_models import FLOAT, model, node
from onnx import helper
from onnx2halide.references import OnnxRuntime

REGISTERS = 32  # of AVX-512, of 16 floats each
AVX2 = "x86-64-linux-avx-avx2-f16c-fma-sse41"


def parameters_by_kernel(onnx2halide, folder, proto, *options):
    """The schedules' parameters for AVX2."""
    (folder / "m.onnx").write_bytes(proto.SerializeToString())
    done = onnx2halide("m.onnx", "-o", folder, "--target", AVX2, *options)
    assert done.returncode == 0, done.stderr
    kernels = json.loads((folder / "m.json").read_text())["kernels"]
    return {kernel["name"]: kernel.get("parameters", {}) for kernel in kernels}


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


@pytest.mark.parametrize("type", [np.float32, np.float16])
@pytest.mark.parametrize("size, stride, pad", [(7, 1, 1), (14, 2, 1), (9, 1, 0)])
def test_all_tiles_of_a_small_image_use_weights_before_the_next_ones(onnx2halide, tmp_path, type, size, stride, pad):
    """Of rows of 7 pixels, the second tile of 4 extends past the row where a copy of the input does, too."""
    channels = 512
    rng = np.random.default_rng(0)
    weights = rng.normal(size=(channels, channels, 3, 3), scale=0.02).astype(type)
    element = helper.np_dtype_to_tensor_dtype(np.dtype(type))
    ports = [("x", element, [1, channels, size, size])], [("y", element, [1, channels, 7, 7])]
    proto = model([node("Conv", "x w", "y", pads=[pad] * 4, strides=[stride] * 2)], *ports, {"w": weights})
    kernels = parameters_by_kernel(onnx2halide, tmp_path, proto, "--convolution", "direct")
    found = [parameters for parameters in kernels.values() if "products" in parameters]
    is_guarded = pad > 0 and (type == np.float32 or stride == 1)
    assert [parameters["pixels"] < 7 for parameters in found] == [True] * is_guarded
    x = rng.normal(size=(1, channels, size, size)).astype(type)
    got = api.compile(proto, target=AVX2, convolution="direct").run_by_name({"x": x})["y"].astype(np.float32)
    expected = OnnxRuntime(proto).run({"x": x})["y"].astype(np.float32)
    tolerance = 1e-5 if type == np.float32 else 1e-2
    assert np.abs(got - expected).max() < tolerance * np.abs(expected).max()


def test_vectors_past_the_last_channel_have_no_results(onnx2halide, tmp_path):
    """150 channels, whose weights are padded to 160: tiles of several vectors, direct and Winograd's."""
    channels = 150
    rng = np.random.default_rng(0)
    ports = [("x", FLOAT, [1, 48, 24, 24])], [("y", FLOAT, [1, channels, 24, 24])]
    for kernel in (1, 3):
        weights = rng.normal(size=(channels, 48, kernel, kernel), scale=0.1).astype(np.float32)
        proto = model([node("Conv", "x w", "y", pads=[kernel // 2] * 4)], *ports, {"w": weights})
        found = parameters_by_kernel(onnx2halide, tmp_path, proto)
        assert any(parameters.get("vectors", 1) > 1 for parameters in found.values())
        x = rng.normal(size=(1, 48, 24, 24)).astype(np.float32)
        got = api.compile(proto, target=AVX2).run_by_name({"x": x})["y"]
        expected = OnnxRuntime(proto).run({"x": x})["y"]
        assert np.abs(got - expected).max() < 1e-4 * np.abs(expected).max()


@pytest.mark.parametrize("channels, vectors", [(64, 8), (24, 3), (96, 6), (16, 2)])
def test_pools_read_whole_cache_lines(onnx2halide, tmp_path, channels, vectors):
    """AVX2's vectors of floats are half as long as cache lines. The image is small, so that the pool has its own kernel."""
    rng = np.random.default_rng(0)
    weights = rng.normal(size=(channels, 3, 1, 1)).astype(np.float32)
    nodes = [node("Conv", "x w", "c"), node("MaxPool", "c", "y", kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)]
    proto = model(nodes, [("x", FLOAT, [1, 3, 17, 19])], [("y", FLOAT, [1, channels, 9, 10])], {"w": weights})
    kernels = parameters_by_kernel(onnx2halide, tmp_path, proto)
    assert [parameters["vectors"] for name, parameters in kernels.items() if "MaxPool" in name] == [vectors]
    x = rng.normal(size=(1, 3, 17, 19)).astype(np.float32)
    got = api.compile(proto, target=AVX2).run_by_name({"x": x})["y"]
    np.testing.assert_allclose(got, OnnxRuntime(proto).run({"x": x})["y"], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("columns", [40, 48])
def test_a_single_row_reads_no_columns_past_the_last_one(columns):
    """B is computed and the rows are open, so that tiles of two vectors of AVX2 read B in place if there is one row."""
    ports = [("x", FLOAT, ["n", 17]), ("w", FLOAT, [17, columns])], [("y", FLOAT, ["n", columns])]
    compiled = api.compile(model([node("MatMul", "x w", "y")], *ports), target=AVX2)
    rng = np.random.default_rng(0)
    w = rng.normal(size=(17, columns)).astype(np.float32)
    for rows in (1, 2, 7):
        x = rng.normal(size=(rows, 17)).astype(np.float32)
        np.testing.assert_allclose(compiled.run_by_name({"x": x, "w": w})["y"], x @ w, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "rows, is_in_strips",
    [(1000, True), (1006, True), (1008, True), (1009, True), (300, False)],  # 1008: whole strips of whole tiles
)
def test_products_of_many_rows_take_strips_of_them(onnx2halide, tmp_path, rows, is_in_strips):
    """Rows of A that the second-level cache does not hold together; as many results and residuals."""
    depth, columns = 384, 400
    rng = np.random.default_rng(0)
    weights = rng.normal(size=(depth, columns), scale=0.05).astype(np.float32)
    ports = [("x", FLOAT, [rows, depth]), ("r", FLOAT, [rows, columns])], [("y", FLOAT, [rows, columns])]
    proto = model([node("MatMul", "x w", "p"), node("Add", "p r", "y")], *ports, {"w": weights})
    (kernel,) = parameters_by_kernel(onnx2halide, tmp_path, proto, "--emit", "stmt").values()
    assert ("strip_rows" in kernel) == is_in_strips
    (path,) = tmp_path.glob("m_*.stmt")
    allocated = re.findall(r"allocate \w*\[float32((?: \* \d+)+)\]", path.read_text())
    assert allocated and path.read_text().count("allocate ") == len(allocated)  # of constant sizes
    assert max(math.prod(map(int, re.findall(r"\d+", extents))) for extents in allocated) <= 16 * 8
    is_prefetched = ".prefetch(r" in (tmp_path / "m_generators.cpp").read_text()
    assert is_prefetched == is_in_strips

    x, r = (rng.normal(size=(rows, size)).astype(np.float32) for size in (depth, columns))
    for threads in (1, 2):
        got = api.compile(proto, target=AVX2, threads=threads).run_by_name({"x": x, "r": r})["y"]
        np.testing.assert_allclose(got, x @ weights + r, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("channels", [576, 960])
def test_a_strip_of_pixels_is_more_than_a_tile_if_weights_come_from_far(onnx2halide, tmp_path, channels):
    """Each strip reads all weights, for which a single tile would wait."""
    weights = np.ones((128, channels, 1, 1), np.float32)
    proto = model([node("Conv", "x w", "y")], [("x", FLOAT, [1, channels, 14, 14])], [("y", FLOAT, [1, 128, 14, 14])], {"w": weights})
    (tiles,) = (found for found in parameters_by_kernel(onnx2halide, tmp_path, proto).values() if "columns" in found)
    assert tiles["columns"] > tiles["pixels"]
