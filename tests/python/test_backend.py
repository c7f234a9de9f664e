"""onnx2halide.backend."""

import numpy as np
import onnx.backend.base
import pytest
from onnx import helper
from small_models import difference_of_two

import onnx2halide

A = np.array([[1, 2, 3], [-1, 0, 1]], np.float32)
B = np.array([1, 1, 2], np.float32)


def test_prepare_and_run_model(own_cache):
    assert issubclass(onnx2halide.backend.Backend, onnx.backend.base.Backend)
    prepared = onnx2halide.backend.prepare(difference_of_two(), "CPU", cache=own_cache)
    assert np.array_equal(prepared.run([A, B])[0], A - B)
    assert np.array_equal(onnx2halide.backend.run_model(difference_of_two(), {"b": B, "a": A}, cache=own_cache)[0], A - B)


def test_run_node(own_cache):
    node = helper.make_node("Mul", ["a", "b"], ["y"])
    assert np.array_equal(onnx2halide.backend.run_node(node, [A, B], cache=own_cache)[0], A * B)
    clip = helper.make_node("Clip", ["x", "", "most"], ["y"])
    assert np.array_equal(onnx2halide.backend.run_node(clip, [A, np.float32(1)], opset_version=13, cache=own_cache)[0], np.minimum(A, 1))


def test_devices():
    assert onnx2halide.backend.supports_device("CPU")
    assert not onnx2halide.backend.supports_device("TPU")
    with pytest.raises(ValueError, match="device TPU is not supported"):
        onnx2halide.backend.prepare(difference_of_two(), "TPU")
