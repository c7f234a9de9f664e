"""Model.run."""

import threading
import weakref

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto
from small_models import WEIGHTS, dense, difference_of_two, unary

import onnx2halide

A = np.array([[1, 2, 3], [-1, 0, 1]], np.float32)
B = np.array([1, 1, 2], np.float32)


@pytest.fixture(scope="module")
def difference(own_cache):
    return onnx2halide.compile(difference_of_two(), cache=own_cache)


def test_inputs_by_place_and_name(difference):
    for inputs in ([A, B], (A, B), {"b": B, "a": A}, [A.tolist(), B.tolist()], {"a": A[:, ::-1][:, ::-1], "b": B}):
        (result,) = difference.run(inputs)
        assert result.dtype == np.float32 and np.array_equal(result, A - B)


def test_results_belong_to_the_caller(difference, own_cache):
    for model, inputs in ((difference, [A, B]), (onnx2halide.compile(dense(), cache=own_cache), [A])):
        first = model.run(inputs)[0]
        kept = first.copy()
        model.run([2 * array for array in inputs])
        assert np.array_equal(first, kept)


@pytest.mark.parametrize("shape", ([300, 400], ["rows", 400]))
def test_large_results_reuse_memory_that_nothing_refers_to(own_cache, shape):
    model = onnx2halide.compile(unary("Neg", TensorProto.FLOAT, shape), cache=own_cache)
    x = np.arange(120000, dtype=np.float32).reshape(300, 400)
    dropped = weakref.ref(model.run([x])[0])
    assert model.run([x])[0] is dropped()
    whole, part = model.run([x])[0], model.run([2 * x])[0][5:]
    later = model.run([3 * x])[0]
    assert np.array_equal(whole, -x) and np.array_equal(part, -2 * x[5:]) and np.array_equal(later, -3 * x)


@pytest.mark.parametrize(
    "inputs, error, message",
    [
        ([A], ValueError, "small: 1 inputs are given, expected 2"),
        ({"a": A}, ValueError, "small: input 'b' is missing"),
        ({"a": A, "b": B, "c": B}, ValueError, "small: no input is called 'c'; expected 'a', 'b'"),
        (A, TypeError, "small: inputs are a list or a dict of arrays, not ndarray"),
        ([A.astype(np.float64), B], TypeError, "small: input 'a' has elements of type float64, expected float32"),
        ([A, A], ValueError, "small: input 'b' has shape [2, 3], expected [3]"),
        ([A, A[0, :2]], ValueError, "small: input 'b' has shape [2], expected [3]"),
        ([A, 1.0], ValueError, "small: input 'b' has shape [], expected [3]"),
        ([A, "b"], ValueError, "small: input 'b' cannot be made an array of float32: could not convert string to float: 'b'"),
        ([A, None], ValueError, "small: input 'b' has shape [], expected [3]"),
    ],
)
def test_inputs_that_do_not_fit(difference, inputs, error, message):
    with pytest.raises(error) as caught:
        difference.run(inputs)
    assert str(caught.value) == message
    assert np.array_equal(difference.run([A, B])[0], A - B)  # the session still works


@pytest.mark.parametrize("number", [-1, 300, 10**30])
def test_numbers_out_of_range(own_cache, number):
    copy = onnx2halide.compile(unary("Identity", TensorProto.UINT8, [1]), cache=own_cache)
    with pytest.raises(ValueError, match="small: input 'x' cannot be made an array of uint8: "):
        copy.run([[number]])


def test_open_batch(own_cache):
    model = onnx2halide.compile(dense(), cache=own_cache)
    for batch in (1, 5, 2):
        x = np.random.default_rng(batch).integers(-3, 3, (batch, 3)).astype(np.float32)
        assert np.array_equal(model.run([x])[0], np.maximum(x @ WEIGHTS, 0))


@pytest.mark.parametrize(
    "x, message",
    [
        (np.zeros((2, 4), np.float32), "small: input 'x' has shape [2, 4], expected [None, 3]"),
        (np.zeros((0, 3), np.float32), "small: input 'x': dim 0 (batch) is 0, expected 1 to 2147483647"),
    ],
)
def test_open_batch_that_does_not_fit(own_cache, x, message):
    with pytest.raises(ValueError) as caught:
        onnx2halide.compile(dense(), cache=own_cache).run([x])
    assert str(caught.value) == message


def test_all_outputs(own_cache):
    model = onnx2halide.compile(dense(), cache=own_cache)
    values = model.run([A], all_outputs=True)
    assert list(values) == ["product", "scores"]
    assert np.array_equal(values["product"], A @ WEIGHTS) and np.array_equal(values["scores"], np.maximum(A @ WEIGHTS, 0))


@pytest.mark.parametrize("type, dtype", [(TensorProto.FLOAT16, np.float16), (TensorProto.BFLOAT16, ml_dtypes.bfloat16), (TensorProto.DOUBLE, np.float64), (TensorProto.INT8, np.int8)])
def test_element_types(type, dtype, own_cache):
    (result,) = onnx2halide.compile(unary("Neg", type), cache=own_cache).run([A.astype(dtype)])
    assert result.dtype == dtype and np.array_equal(result.astype(np.float32), -A)


def test_bools(own_cache):
    (result,) = onnx2halide.compile(unary("Not", TensorProto.BOOL), cache=own_cache).run([A > 0])
    assert result.dtype == bool and np.array_equal(result, A <= 0)


def test_scalars_and_empty_tensors(own_cache):
    scalar = onnx2halide.compile(unary("Neg", shape=()), cache=own_cache)
    assert scalar.run([2.0])[0] == -2 and scalar.run([np.float32(3)])[0].shape == ()
    assert onnx2halide.compile(unary("Neg", shape=(0, 3)), cache=own_cache).run([np.empty((0, 3), np.float32)])[0].shape == (0, 3)


def test_many_threads_share_a_model(difference):
    wrong = []

    def work(seed):
        a = np.random.default_rng(seed).normal(size=(2, 3)).astype(np.float32)
        for _ in range(200):
            if not np.array_equal(difference.run([a, B])[0], a - B):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_arrays_of_the_other_byte_order(own_cache):
    model = onnx2halide.compile(difference_of_two(), cache=own_cache)
    assert np.array_equal(model.run([A.astype(">f4"), B.astype(">f4")])[0], A - B)
