"""Vectors of AVX2 in lowered kernels: stored in part, and interleaved."""

import re

import numpy as np
import onnx2halide as api
import pytest
from make_models import model, node
from onnx import helper
from onnx2halide.references import OnnxRuntime

TARGET = "x86-64-linux-avx-avx2-f16c-fma-sse41"


def channel_shuffle(type, groups, channels):
    """Swaps groups with the channels of each, which are innermost."""
    elements = helper.np_dtype_to_tensor_dtype(np.dtype(type))
    nodes = [node("Transpose", "x", "y", perm=[0, 1, 3, 2])]
    return model(nodes, [("x", elements, [3, 5, groups, channels])], [("y", elements, [3, 5, channels, groups])])


def grouped_convolution(channels):
    weights = np.random.default_rng(0).normal(size=(4 * channels, channels, 1, 1)).astype(np.float32)
    ports = [[(name, helper.np_dtype_to_tensor_dtype(np.dtype(np.float32)), [1, 4 * channels, 6, 7])] for name in "xy"]
    return model([node("Conv", "x w", "y", group=4)], *ports, {"w": weights})


def kernels(onnx2halide, folder, proto, kind):
    """The text of all kernels."""
    (folder / "m.onnx").write_bytes(proto.SerializeToString())
    done = onnx2halide("m.onnx", "-o", "out", "--target", TARGET, "--emit", kind)
    assert done.returncode == 0, done.stderr
    found = [path.read_text() for path in (folder / "out").glob("m_*") if path.suffix in (".s", ".stmt")]
    assert found
    return "\n".join(found)


@pytest.mark.parametrize("channels", [9, 34, 37, 63])
def test_last_channels_are_stored_without_masks(onnx2halide, tmp_path, channels):
    proto = grouped_convolution(channels)
    text = kernels(onnx2halide, tmp_path, proto, "assembly")
    stores = re.findall(r"vmaskmovps\s+%[xy]mm\d+, %[xy]mm\d+, \S*\(", text)
    assert not stores
    x = np.random.default_rng(1).normal(size=(1, 4 * channels, 6, 7)).astype(np.float32)
    got = api.compile(proto, target=TARGET).run_by_name({"x": x})["y"]
    np.testing.assert_allclose(got, OnnxRuntime(proto).run({"x": x})["y"], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("groups", [2, 4, 8])
@pytest.mark.parametrize("type", [np.float32, np.float16, np.uint16, np.int64])
@pytest.mark.parametrize("channels", [34, 68])
def test_interleaves(onnx2halide, tmp_path, type, groups, channels):
    proto = channel_shuffle(type, groups, channels)
    text = kernels(onnx2halide, tmp_path, proto, "stmt")
    assert "interleave_vectors" not in text
    x = np.arange(15 * groups * channels).astype(type).reshape(3, 5, groups, channels)
    got = api.compile(proto, target=TARGET).run_by_name({"x": x})["y"]
    np.testing.assert_array_equal(got, x.transpose(0, 1, 3, 2))


def test_an_input_may_be_named_as_a_part(onnx2halide, tmp_path):
    proto = channel_shuffle(np.float32, 4, 64)
    proto.graph.input[0].name = proto.graph.node[0].input[0] = "part"
    kernels(onnx2halide, tmp_path, proto, "stmt")
    x = np.random.default_rng(0).normal(size=(3, 5, 4, 64)).astype(np.float32)
    got = api.compile(proto, target=TARGET).run_by_name({"part": x})["y"]
    np.testing.assert_array_equal(got, x.transpose(0, 1, 3, 2))


def test_four_vectors_of_floats_take_few_instructions(onnx2halide, tmp_path):
    text = kernels(onnx2halide, tmp_path, channel_shuffle(np.float32, 4, 64), "assembly")
    assert "vunpcklps" in text
    assert "vperm2f128" in text
    assert not re.search(r"v(blend|shuf|perm[a-z]*)p[sd]", text)
