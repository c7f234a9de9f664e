"""LabelEncoder and OneHotEncoder of numbers against onnxruntime or, for types that it lacks, ONNX's reference."""

from itertools import product

import numpy as np
import onnx2halide
import pytest
from onnx import TensorProto, helper
from onnx2halide.references import OnnxReference, OnnxRuntime
from recipes import Recipe

TYPES = ("int64", "float32", "int32", "int16", "float64")


def model(op: str, x: np.ndarray, result: int, version: int = 4, **attributes):
    node = helper.make_node(op, ["x"], ["y"], domain="ai.onnx.ml", **attributes)
    categories = attributes.get("cats_int64s") or attributes.get("cats_strings")
    shape = [*x.shape, len(categories)] if op == "OneHotEncoder" else x.shape
    ports = [helper.make_tensor_value_info("x", helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)]
    graph = helper.make_graph([node], "encoder", ports, [helper.make_tensor_value_info("y", result, shape)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("ai.onnx.ml", version), helper.make_opsetid("", 21)], ir_version=10)


def check(model, x: np.ndarray, reference=OnnxRuntime):
    expected = reference(model).run({"x": x})["y"]
    found = onnx2halide.compile(model).run([x])[0]
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


def tensor(kind: int, numbers) -> TensorProto:
    return helper.make_tensor("t", kind, [len(numbers)], numbers)


def integers(count: int) -> tuple[np.ndarray, dict]:
    """An input, and keys and values."""
    rng = np.random.default_rng(count)
    keys = rng.permutation(3 * count)[:count] - count
    x = rng.integers(-count - 2, 2 * count + 2, (3, 17))
    return x, {"keys_int64s": keys.tolist(), "values_int64s": rng.integers(0, 100, count).tolist(), "default_int64": -7}


def model_of_integers(count: int, version: int):
    x, lists = integers(count)
    return model("LabelEncoder", x, TensorProto.INT64, version, **lists)


@pytest.mark.parametrize("case", [Recipe(model_of_integers, count, version) for count in (1, 2, 7, 8, 100) for version in (2, 4)], ids=str)
def test_integers(case):
    count, _ = case.model.args
    check(case.model(), integers(count)[0])


@pytest.mark.parametrize("version", [2, 4])
def test_floats(version):
    x = np.float32([1, -0.0, 0.5, np.inf, -np.inf, 2.5, 1e30])
    lists = {"keys_floats": [np.inf, 0.5, 0.0, 1.0, -np.inf], "values_floats": [1.5, 2.5, 3.5, 4.5, -5.5], "default_float": 9.0}
    check(model("LabelEncoder", x, TensorProto.FLOAT, version, **lists), x)


@pytest.mark.parametrize("others", [[], [2.0, -1.0]])
def test_nan(others):
    x = np.float32([1, np.nan, 2, -np.nan])
    keys = [np.nan, *others]
    check(model("LabelEncoder", x, TensorProto.INT64, keys_floats=keys, values_int64s=list(range(5, 5 + len(keys)))), x)


def few(kind: str) -> np.ndarray:
    return np.arange(-3, 6).astype(kind)


def model_of_tensors(key: str, value: str):
    kinds = [helper.np_dtype_to_tensor_dtype(np.dtype(name)) for name in (key, value)]
    values = {"values_tensor": tensor(kinds[1], [40, 20, 10, 30]), "default_tensor": tensor(kinds[1], [7])}
    return model("LabelEncoder", few(key), kinds[1], keys_tensor=tensor(kinds[0], [4, 2, -1, 2]), **values)


@pytest.mark.parametrize("case", [Recipe(model_of_tensors, *types) for types in product(TYPES, TYPES)], ids=str)
def test_tensors(case):
    """A duplicate key has its last value, as ONNX says; onnxruntime uses the first."""
    key, value = case.model.args
    x = few(key)
    values = {-1: 10, 2: 30, 4: 40}
    expected = [values.get(int(number), 7) for number in x]
    np.testing.assert_array_equal(case.compile().run([x])[0], np.array(expected, value))


@pytest.mark.parametrize("dtype", ["int64", "float32", "float64", "int32"])
def test_one_hot(dtype):
    x = np.array([[3, 4, 7.9], [5, -3.5, 7]]).astype(dtype)
    if dtype == "int32":  # onnxruntime lacks it, and the reference fails on duplicate categories
        check(model("OneHotEncoder", x, TensorProto.FLOAT, cats_int64s=[3, 5, 7, -3]), x, OnnxReference)
    else:
        check(model("OneHotEncoder", x, TensorProto.FLOAT, cats_int64s=[3, 5, 3, 7, -3]), x)


KNOWN = [
    ([1, 2], [[1, 2, 2], [2, 1, 1]], "int64", 5, "5"),
    ([1, 2, 1], [2, 1], "int64", -(2**63), "-9223372036854775808"),
    ([0, 2], [0.9, -0.5, 2], "float32", 3.5, "3.5"),
    ([0, 2], [2.5], "float64", np.nan, "nan"),
    ([0, 2], [2.5], "float64", 1e300, "1e+300"),
    (["a", "", "a"], ["", "a"], "object", "long " * 30, "'long long long long long long long long '"),
]


@pytest.mark.parametrize("categories, elements, dtype, unknown, text", KNOWN)
def test_one_hot_of_known(categories, elements, dtype, unknown, text):
    """An element that is not a category is an error, after which the session still works."""
    x = np.array(elements, dtype)
    case = model("OneHotEncoder", x, TensorProto.FLOAT, zeros=0, **{f"cats_{'strings' if dtype == 'object' else 'int64s'}": categories})
    case.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "n"
    case.graph.output[0].type.tensor_type.shape.dim[0].dim_param = "n"
    compiled = onnx2halide.compile(case)
    other = np.full((1, *x.shape[1:]), unknown, x.dtype)
    for _ in range(2):
        np.testing.assert_array_equal(compiled.run([x])[0], OnnxRuntime(case).run({"x": x})["y"])
        with pytest.raises(Exception, match="Unknown Category and zeros = 0"):
            OnnxRuntime(case).run({"x": other})
        with pytest.raises(ValueError) as error:
            compiled.run([other])
        assert f"(ai.onnx.ml.OneHotEncoder): input 0 has the element {text}, expected a category" in str(error.value)


NARROW = ["bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "float16", "bfloat16"]


@pytest.mark.parametrize("dtype", NARROW)
def test_one_hot_of_known_of_other_types(dtype):
    """onnxruntime lacks these types; they are read as int64, or as float32."""
    x = np.array([1, 0, 1, 1, 0]).astype(np.dtype(dtype))
    compiled = onnx2halide.compile(model("OneHotEncoder", x, TensorProto.FLOAT, cats_int64s=[1, 2, 0], zeros=0))
    np.testing.assert_array_equal(compiled.run([x])[0], np.float32(np.array([1, 2, 0]) == np.array([[1], [0], [1], [1], [0]])))


ERRORS = [
    ("LabelEncoder", {"keys_strings": ["a"], "values_int64s": [1]}, "keys have type string, expected int64 as input 0"),
    ("LabelEncoder", {"keys_int64s": [1, 2], "values_int64s": [1]}, "there are 2 keys, expected 1 as there are values"),
    ("LabelEncoder", {"keys_floats": [1.0], "values_int64s": [1]}, "keys have type float32, expected int64 as input 0"),
    ("OneHotEncoder", {"cats_strings": ["a"], "zeros": 1}, "categories have type string, but input 0 has int64"),
    ("OneHotEncoder", {"cats_strings": ["a"], "zeros": 0}, "categories have type string, but input 0 has int64"),
]


@pytest.mark.parametrize("op, attributes, message", ERRORS)
def test_errors(op, attributes, message):
    with pytest.raises(onnx2halide.CompileError) as error:
        onnx2halide.compile(model(op, np.zeros(3, np.int64), TensorProto.INT64, **attributes))
    assert str(error.value).endswith(f"(ai.onnx.ml.{op}): {message}")
