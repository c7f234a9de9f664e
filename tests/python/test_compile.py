"""onnx2halide.compile and compile_many."""

import copy
import pickle
import subprocess

import numpy as np
import onnx
import pytest
from small_models import WEIGHTS, dense, difference_of_two, make, unary

import onnx2halide
from onnx2halide import CompileError

X = np.array([[1, 2, 3], [-1, 0, 1]], np.float32)


def test_model_as_path_bytes_and_proto(tmp_path, own_cache):
    file = tmp_path / "absolute.onnx"
    onnx.save(unary("Abs"), file)
    for model in (file, str(file), file.read_bytes(), unary("Abs")):
        assert np.array_equal(onnx2halide.compile(model, cache=own_cache).run([X])[0], abs(X))
    with pytest.raises(TypeError, match="a model is a path, bytes or a ModelProto, not int"):
        onnx2halide.compile(3)
    with pytest.raises(TypeError, match="a model is a path, bytes or a ModelProto, not GraphProto"):
        onnx2halide.compile(unary("Abs").graph)


def test_ports(own_cache):
    model = onnx2halide.compile(dense(), cache=own_cache)
    assert [(port.name, port.dtype, port.shape) for port in model.inputs + model.outputs] == [("x", np.float32, (None, 3)), ("scores", np.float32, (None, 4))]
    assert repr(model) == "<onnx2halide.Model small (x: float32[None, 3]) -> (scores: float32[None, 4])>"


def test_dims(own_cache):
    model = onnx2halide.compile(dense(), dims={"batch": 2}, cache=own_cache)
    assert model.inputs[0].shape == (2, 3)
    assert np.array_equal(model.run([X])[0], np.maximum(X @ WEIGHTS, 0))
    with pytest.raises(CompileError, match="--dim batches=2"):
        onnx2halide.compile(dense(), dims={"batches": 2}, cache=own_cache)


def test_bounds_of_dims(own_cache):
    model = onnx2halide.compile(dense(), dims={"batch": "2..4"}, cache=own_cache)
    assert model.run([X])[0].shape == (2, 4)
    with pytest.raises(ValueError, match="batch"):
        model.run([X[:1]])


def test_names_that_are_too_long_for_files(own_cache):
    proto = unary("Neg")
    proto.graph.name = "graph/" * 100
    assert np.array_equal(onnx2halide.compile(proto, cache=own_cache).run([X])[0], -X)


def test_until_node_or_value(own_cache):
    for name in ("product_node", "product"):
        model = onnx2halide.compile(dense(), until=name, cache=own_cache)
        assert [port.name for port in model.outputs] == ["product"]
        assert np.array_equal(model.run([X])[0], X @ WEIGHTS)
    with pytest.raises(CompileError, match="--until nothing: no node has this name, and none makes a value of this name"):
        onnx2halide.compile(dense(), until="nothing", cache=own_cache)


def test_error_names_the_file(tmp_path, own_cache):
    file = tmp_path / "broken.onnx"
    file.write_bytes(b"no model")
    with pytest.raises(CompileError, match=r"^broken\.onnx: is not an ONNX model, or is truncated$"):
        onnx2halide.compile(file, cache=own_cache)
    with pytest.raises(FileNotFoundError):
        onnx2halide.compile(tmp_path / "missing.onnx", cache=own_cache)


def test_second_compilation_comes_from_the_cache(own_cache, monkeypatch):
    onnx2halide.compile(unary("Exp"), cache=own_cache)

    def refuse(*_, **__):
        raise AssertionError("the compiler runs")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    onnx2halide.compile(unary("Exp"), cache=own_cache)
    with pytest.raises(AssertionError, match="the compiler runs"):
        onnx2halide.compile(unary("Exp"), schedule="naive", cache=own_cache)


def test_cache_notices_changed_external_weights(tmp_path, own_cache):
    file = tmp_path / "dense.onnx"
    onnx.save(dense(), file, save_as_external_data=True, location="weights.bin", size_threshold=0)
    first = onnx2halide.compile(file, cache=own_cache).run([X])[0]
    assert np.array_equal(first, np.maximum(X @ WEIGHTS, 0))
    (tmp_path / "weights.bin").write_bytes((2 * WEIGHTS).tobytes())
    assert np.array_equal(onnx2halide.compile(file, cache=own_cache).run([X])[0], 2 * first)


def test_many(own_cache):
    models = [unary("Abs"), b"no model", difference_of_two(), unary("Neg")]
    absolute, failed, difference, negated = onnx2halide.compile_many(models, cache=own_cache, return_exceptions=True)
    assert np.array_equal(absolute.run([X])[0], abs(X))
    assert str(failed) == "model.onnx: is not an ONNX model, or is truncated"
    assert np.array_equal(difference.run([X, X[0]])[0], X - X[0])
    assert np.array_equal(negated.run([X])[0], -X)
    with pytest.raises(CompileError):
        onnx2halide.compile_many(models, cache=own_cache)
    assert onnx2halide.compile_many([], cache=own_cache) == []
    missing, negated = onnx2halide.compile_many(["none.onnx", unary("Neg")], cache=own_cache, return_exceptions=True)
    assert isinstance(missing, FileNotFoundError) and np.array_equal(negated.run([X])[0], -X)


def test_models_are_not_copied(own_cache):
    """A copy would share the session, which ends with the original."""
    model = onnx2halide.compile(unary("Abs"), cache=own_cache)
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="a model cannot be copied or pickled"):
            copied(model)


def test_many_of_one_name_that_is_taken(own_cache):
    """`open` is also a function of C."""
    models = [unary(op) for op in ("Abs", "Neg", "Floor")]
    for proto, name in zip(models, ("open", "open", "open_2")):
        proto.graph.name = name
    absolute, negated, floor = (model.run([X])[0] for model in onnx2halide.compile_many(models, cache=own_cache))
    assert np.array_equal(absolute, abs(X)) and np.array_equal(negated, -X) and np.array_equal(floor, np.floor(X))


def test_unsupported_operator(own_cache):
    node = onnx.helper.make_node("Mystery", ["x"], ["y"], domain="none.such")
    model = make([node], [("x", 1, [2])], [("y", 1, [2])])
    model.opset_import.append(onnx.helper.make_opsetid("none.such", 1))
    with pytest.raises(CompileError, match=r"^small\.onnx: unsupported operators in 1 of 1 nodes:\n  none\.such\.Mystery \(version 1\): node 'y'$"):
        onnx2halide.compile(model, cache=own_cache)
