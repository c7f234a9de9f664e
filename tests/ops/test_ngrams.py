"""TfIdfVectorizer against onnxruntime. As ONNX says, weights belong to n-grams, while in ONNX's reference they belong to columns."""

import numpy as np
import onnx2halide
import pytest
from onnx import TensorProto, helper
from onnx2halide.references import OnnxRuntime

WORDS = ["", "a", "b", "Straße", "日本"]
SHAPES = {np.dtype("int32"): TensorProto.INT32, np.dtype("int64"): TensorProto.INT64, np.dtype(object): TensorProto.STRING}


def pool_of(rng, counts, symbols):
    """Different n-grams: `counts` of each length from 1."""
    items, starts = [], []
    for length, count in enumerate(counts, 1):
        starts.append(len(items))
        places = rng.choice(len(symbols) ** length, count, replace=False)
        items += [symbols[place // len(symbols) ** i % len(symbols)] for place in places for i in range(length)]
    return items, starts


def model(kind, shape, columns=None, **attributes):
    attributes = {"mode": "TF", "min_gram_length": 1, "max_gram_length": 1, "max_skip_count": 0, "ngram_counts": [0], "ngram_indexes": [0]} | attributes
    node = helper.make_node("TfIdfVectorizer", ["x"], ["y"], **attributes)
    width = max(attributes["ngram_indexes"]) + 1 if columns is None else columns
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, [*shape[:-1], width])
    graph = helper.make_graph([node], "ngrams", [helper.make_tensor_value_info("x", kind, shape)], [result])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 9)], ir_version=10)


def check(model, x):
    expected = OnnxRuntime(model).run({"x": x})["y"]
    found = onnx2halide.compile(model).run([x])[0]
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("mode", ["TF", "IDF", "TFIDF"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("lengths, skips", [((1, 1), 0), ((1, 3), 2), ((2, 3), 1), ((3, 3), 20), ((1, 2), 0)])
@pytest.mark.parametrize("kind", ["int64", "int32", "strings"])
def test_modes(mode, weighted, lengths, skips, kind):
    rng = np.random.default_rng(sum(lengths) + skips)
    symbols = WORDS if kind == "strings" else [-3, 0, 1, 2, 2**31 - 1]
    items, starts = pool_of(rng, (4, 15, 60), symbols)
    x = rng.choice(np.array(symbols, object), (3, 17)).astype(object if kind == "strings" else kind)
    pool = {"pool_strings" if kind == "strings" else "pool_int64s": items}
    if weighted:
        pool["weights"] = rng.normal(size=79).astype(np.float32).tolist()
    columns = rng.permutation(79).tolist()
    made = model(SHAPES[x.dtype], x.shape, mode=mode, min_gram_length=lengths[0], max_gram_length=lengths[1], max_skip_count=skips,
                 ngram_counts=starts, ngram_indexes=columns, **pool)
    check(made, x)


@pytest.mark.parametrize("shape", [(6,), (1, 6), (2, 1), (1,), (0,), (2, 0)])
def test_shapes(shape):
    x = np.random.default_rng(1).integers(0, 3, shape)
    check(model(TensorProto.INT64, shape, pool_int64s=[0, 1, 0, 1, 1, 2], ngram_counts=[0, 2], ngram_indexes=[0, 5, 2, 2],
                max_gram_length=2, max_skip_count=2), x)


@pytest.mark.parametrize("mode", ["TF", "IDF", "TFIDF"])
def test_shared_columns(mode):
    check(model(TensorProto.INT64, (5,), mode=mode, pool_int64s=[7, 8, 9], ngram_indexes=[1, 1, 3], weights=[10.5, 20.25, -30.0]), np.array([7, 8, 9, 7, 5]))


def test_no_ngram_of_the_length():
    check(model(TensorProto.INT64, (4,), pool_int64s=[7, 8], ngram_counts=[0, 2], ngram_indexes=[0, 1], min_gram_length=2, max_gram_length=2), np.arange(6, 10))


def test_open_dims():
    made = model(TensorProto.STRING, ["rows", "words"], pool_strings=["a", "b", "a", "b"], ngram_counts=[0, 2], ngram_indexes=[0, 1, 2], max_gram_length=2)
    compiled, reference = onnx2halide.compile(made), OnnxRuntime(made)
    for x in ([["a", "b", "a"]], [["b", "c"], ["a", "b"]], [["a"]]):
        x = np.array(x, object)
        np.testing.assert_array_equal(compiled.run([x])[0], reference.run({"x": x})["y"])


INTEGERS = {"pool_int64s": [1, 2, 3], "ngram_counts": [0, 1], "ngram_indexes": [0, 1], "max_gram_length": 2}
ERRORS = [
    ({}, "pool_int64s has 0 items and pool_strings has 0, expected one of them to have any"),
    (INTEGERS | {"pool_strings": ["a"]}, "pool_int64s has 3 items and pool_strings has 1, expected one of them to have any"),
    ({"pool_strings": ["a"]}, "the pool has strings, but input 0 has type int64"),
    (INTEGERS | {"mode": "BM25"}, "mode is 'BM25', expected TF, IDF or TFIDF"),
    (INTEGERS | {"min_gram_length": 3}, "min_gram_length is 3 and max_gram_length is 2, expected 1 <= min <= max"),
    (INTEGERS | {"min_gram_length": 0}, "min_gram_length is 0 and max_gram_length is 2, expected 1 <= min <= max"),
    (INTEGERS | {"max_skip_count": -1}, "max_skip_count is -1, expected 0 or more"),
    (INTEGERS | {"ngram_indexes": [0, 1, 2]}, "ngram_indexes has 3 values, expected 2 as there are n-grams"),
    (INTEGERS | {"ngram_indexes": [0, -1]}, "ngram_indexes has -1, expected 0 to 2147483646"),
    (INTEGERS | {"ngram_indexes": [0, 2**40]}, "ngram_indexes has 1099511627776, expected 0 to 2147483646"),
    (INTEGERS | {"ngram_counts": [0, 2]}, "the pool has 1 items for n-grams of length 2, expected a multiple"),
    (INTEGERS | {"ngram_counts": [0, 4]}, "ngram_counts has 0 and then 4, expected ascending places in a pool of 3 from 0"),
    (INTEGERS | {"ngram_counts": [0, 2, 1]}, "ngram_counts has 2 and then 1, expected ascending places in a pool of 3 from 0"),
    (INTEGERS | {"weights": [1.0], "mode": "IDF"}, "weights has 1 values, expected 2 as there are n-grams"),
]


@pytest.mark.parametrize("attributes, message", ERRORS, ids=[row[1][:30] for row in ERRORS])
def test_errors(attributes, message):
    with pytest.raises(onnx2halide.CompileError) as error:
        onnx2halide.compile(model(TensorProto.INT64, (4,), columns="n", **attributes))
    assert str(error.value).partition(": ")[2] == f"node 'y' (TfIdfVectorizer): {message}"


def test_rank():
    with pytest.raises(onnx2halide.CompileError, match="input 0 has rank 3, expected 1 or 2"):
        onnx2halide.compile(model(TensorProto.INT64, (4, 2, 2), columns="n", **INTEGERS))
