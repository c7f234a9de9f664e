"""Operators on strings against ONNX's reference or onnxruntime."""

import ml_dtypes
import numpy as np
import onnx2halide
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx2halide.references import OnnxReference, OnnxRuntime

STRING, INT64 = TensorProto.STRING, TensorProto.INT64
WORDS = ["", "a", "Straße", "日本", "a\0b", "long " * 30]


def strings(shape, seed=0) -> np.ndarray:
    texts = np.random.default_rng(seed).choice(WORDS, shape)
    return np.array(texts, dtype=object).reshape(shape)


def model(nodes, inputs: dict, outputs: dict, constants: dict | None = None):
    """Ports are types and shapes by name."""
    ports = ([helper.make_tensor_value_info(name, *port) for name, port in ports.items()] for ports in (inputs, outputs))
    initialisers = [numpy_helper.from_array(array, name) for name, array in (constants or {}).items()]
    graph = helper.make_graph(nodes, "strings", *ports, initialisers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)], ir_version=10)


def check(model, inputs: dict, reference=OnnxReference):
    expected = reference(model).run(inputs)
    for name, found in onnx2halide.compile(model).run_by_name(inputs).items():
        assert found.dtype == expected[name].dtype
        np.testing.assert_array_equal(found, expected[name])


@pytest.mark.parametrize("a, b", [((5,), (5,)), ((2, 3), (3,)), ((2, 1), (1, 4)), ((), (3,)), ((0,), (1,))])
def test_concat(a, b):
    node = helper.make_node("StringConcat", ["a", "b"], ["y"])
    shape = np.broadcast_shapes(a, b)
    check(model([node], {"a": (STRING, a), "b": (STRING, b)}, {"y": (STRING, shape)}), {"a": strings(a), "b": strings(b, 1)})


def test_concat_of_open_dims():
    node = helper.make_node("StringConcat", ["a", "b"], ["y"])
    made = model([node], {"a": (STRING, ["n", 2])}, {"y": (STRING, ["n", 2])}, {"b": np.array(["x", "é"], dtype=object)})
    compiled = onnx2halide.compile(made)
    for rows in (1, 4, 2):
        x = strings((rows, 2), rows)
        np.testing.assert_array_equal(compiled.run([x])[0], x + np.array(["x", "é"], dtype=object))


def test_bytes_and_lists():
    made = model([helper.make_node("Identity", ["a"], ["y"])], {"a": (STRING, [2])}, {"y": (STRING, [2])})
    compiled = onnx2halide.compile(made)
    assert compiled.run([["a", "日"]])[0].tolist() == ["a", "日"]
    assert compiled.run([[b"a", b"\xff"]])[0].tolist() == ["a", "\udcff"]
    with pytest.raises(TypeError, match="input 'a' has elements of type int64, expected strings"):
        compiled.run([[1, 2]])
    with pytest.raises(ValueError, match=r"input 'a' has shape \[3\], expected \[2\]"):
        compiled.run([["a", "b", "c"]])


@pytest.mark.parametrize("most", [None, 0, 1, 2])
@pytest.mark.parametrize("delimiter", [None, "", ",", "ab"])
def test_split(delimiter, most):
    x = np.array(["", " ", "a,b,,c ", "  one  two three\t four ", ",", "ababxab", "xabyab z"], dtype=object)
    attributes = {name: value for name, value in (("delimiter", delimiter), ("maxsplit", most)) if value is not None}
    node = helper.make_node("StringSplit", ["x"], ["y", "counts"], **attributes)
    check(model([node], {"x": (STRING, [7])}, {"y": (STRING, [7, None]), "counts": (INT64, [7])}), {"x": x})


@pytest.mark.parametrize("change", ["NONE", "LOWER", "UPPER"])
@pytest.mark.parametrize("is_case_sensitive", [0, 1])
@pytest.mark.parametrize("stop_words", [None, ["Monday", "émile"]])
@pytest.mark.parametrize("shape", [[5], [1, 5]])
def test_normalizer(change, is_case_sensitive, stop_words, shape):
    x = np.array(["Monday", "monday", "ÉMILE", "Émile", "Жук"], dtype=object).reshape(shape)
    attributes = {"stopwords": stop_words} if stop_words else {}
    node = helper.make_node("StringNormalizer", ["x"], ["y"], case_change_action=change, is_case_sensitive=is_case_sensitive, locale="C.UTF-8", **attributes)
    check(model([node], {"x": (STRING, shape)}, {"y": (STRING, [None] * len(shape))}), {"x": x}, OnnxRuntime)


@pytest.mark.parametrize("pattern", [r"(www\.[\w.-]+\.\w+)|.*@.*", r"", r"\pL+", r".", r"(?i)STRASSE|a", "日.", r"[^a]*", "a\0b", "a\\x00b", r'"\\?"'])
def test_full_match(pattern):
    x = np.array([*WORDS, "www.abc.de", "me@here", "A", "ab", "\n", '"\\"'], dtype=object)
    node = helper.make_node("RegexFullMatch", ["x"], ["y"], pattern=pattern)
    check(model([node], {"x": (STRING, x.shape)}, {"y": (TensorProto.BOOL, x.shape)}), {"x": x}, OnnxRuntime)


@pytest.mark.parametrize("shape", [(), (2, 3), (0,), (1,)])
def test_shapes_of_matches(shape):
    node = helper.make_node("RegexFullMatch", ["x"], ["y"], pattern=r"\w*")
    check(model([node], {"x": (STRING, shape)}, {"y": (TensorProto.BOOL, shape)}), {"x": strings(shape)}, OnnxRuntime)


TOKENS = [
    {"tokenexp": r"[a-zA-Z0-9_]+"}, {"tokenexp": "."}, {"tokenexp": r"\b\w\w+\b"}, {"tokenexp": "x*"}, {"tokenexp": "a|ab"}, {"tokenexp": "a."}, {"tokenexp": "日|ß", "mincharnum": 1},
    {"separators": [""]}, {"separators": [" "]}, {"separators": [" ", ","], "mincharnum": 2}, {"separators": [r"[\s,]+"]}, {"separators": ["b", "ab"]},
    {"separators": ["a|ab", "x."], "tokenexp": "a"},
]  # fmt: skip


@pytest.mark.parametrize("shape, mark", [([8], 0), ([2, 4], 1)])
@pytest.mark.parametrize("attributes", TOKENS, ids=str)
def test_tokenizer(attributes, shape, mark):
    x = np.array(["", "The cat, sat", "aab,b", "Straße 日本", " x xx ", "a\nb", ",", "cab bab abab"], dtype=object).reshape(shape)
    node = helper.make_node("Tokenizer", ["x"], ["y"], domain="com.microsoft", **{"mark": mark, "pad_value": "#", "mincharnum": 1} | attributes)
    check(model([node], {"x": (STRING, shape)}, {"y": (STRING, [*shape, None])}), {"x": x}, OnnxRuntime)


@pytest.mark.parametrize("texts", [["", ""], [" ", ""], ["", "a b"], ["7"]], ids=str)
def test_marks_where_no_text_has_tokens(texts):
    node = helper.make_node("Tokenizer", ["x"], ["y"], domain="com.microsoft", separators=[" ", "7"], mark=1, pad_value="#", mincharnum=1)
    check(model([node], {"x": (STRING, [len(texts)])}, {"y": (STRING, [len(texts), None])}), {"x": np.array(texts, dtype=object)}, OnnxRuntime)


def test_tokenizer_that_finds_nothing():
    texts = ["", ","]
    node = helper.make_node("Tokenizer", ["x"], ["y"], domain="com.microsoft", tokenexp=r"\w+", mark=0, pad_value="", mincharnum=1)
    check(model([node], {"x": (STRING, [len(texts)])}, {"y": (STRING, [len(texts), None])}), {"x": np.array(texts, dtype=object)}, OnnxRuntime)


REALS = [1, -1, 0.1, 2 / 3, 123456.789, 1e7, 1e8, 1e-4, 1e20, 65504, np.nan, np.inf, -np.inf, -0.0, 0]
TEXTS = ["1", " -1.9x", "+1e2", "0x10", "010", "inf", "-INF", "NaN", "1e39", "300", "-300", "99999999999", "18446744073709551615", ".5", "-0", "1\0002"]
NUMBERS = ["FLOAT", "DOUBLE", "FLOAT16", "INT8", "UINT8", "INT16", "UINT16", "INT32", "UINT32", "INT64", "UINT64", "BOOL"]


def cast(x: np.ndarray, to: int):
    kind = STRING if x.dtype == object else helper.np_dtype_to_tensor_dtype(x.dtype)
    return model([helper.make_node("Cast", ["x"], ["y"], to=to)], {"x": (kind, x.shape)}, {"y": (to, x.shape)})


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_to_strings(name):
    dtype = helper.tensor_dtype_to_np_dtype(getattr(TensorProto, name))
    limits = [np.iinfo(dtype).min, np.iinfo(dtype).max] if dtype.kind in "iu" else []
    with np.errstate(over="ignore"):
        x = np.array(REALS if dtype.kind == "f" else [0, 1, 65, *limits], dtype)
    check(cast(x, STRING), {"x": x}, OnnxRuntime)


@pytest.mark.parametrize("name", NUMBERS)
def test_strings_to_numbers(name):
    """Texts that onnxruntime rejects are rejected, and the session still works."""
    to = getattr(TensorProto, name)
    made = cast(np.array(["1"], object), to)
    compiled, reference = onnx2halide.compile(made), OnnxRuntime(made)
    for text in [*TEXTS, "", "x1", "true", "1e400", "1e-400", "9" * 30]:
        x = np.array([text], object)
        try:
            expected = reference.run({"x": x})["y"]
        except Exception:
            wide = "int64" if name.startswith("INT") else "uint64" if name[0] in "UB" else "float64" if name == "DOUBLE" else "float32"
            with pytest.raises(ValueError) as error:
                compiled.run([x])
            assert str(error.value).endswith(f"node 'y' (Cast): input 0 has the string '{text}', expected a number of type {wide}")
        else:
            np.testing.assert_array_equal(compiled.run([x])[0], expected)


def test_casts_of_open_dims():
    node = helper.make_node("CastLike", ["x", "like"], ["y"])
    compiled = onnx2halide.compile(model([node], {"x": (STRING, ["n", 2])}, {"y": (INT64, ["n", 2])}, {"like": np.array([0])}))
    for rows in (1, 3):
        np.testing.assert_array_equal(compiled.run([np.array([["1", "22"]] * rows, object)])[0], [[1, 22]] * rows)
    nodes = [helper.make_node("Cast", ["x"], ["t"], to=STRING), helper.make_node("Cast", ["t"], ["y"], to=STRING)]
    compiled = onnx2halide.compile(model(nodes, {"x": (TensorProto.BFLOAT16, ["n"])}, {"y": (STRING, ["n"])}))
    assert compiled.run([np.array([0.1, 1], ml_dtypes.bfloat16)])[0].tolist() == ["0.10009766", "1"]


def test_casts_of_constants():
    nodes = [helper.make_node("Cast", ["c"], ["t"], to=STRING), helper.make_node("StringConcat", ["x", "t"], ["y"])]
    x = strings((3,))
    check(model(nodes, {"x": (STRING, [3])}, {"y": (STRING, [3])}, {"c": np.float32([0.1, 2, -3])}), {"x": x}, OnnxRuntime)


MOVEMENTS = [
    ("Gather", {"axis": 1}, {"i": np.array([2, 0, 2])}, [2, 3]),
    ("Transpose", {"perm": [1, 0]}, {}, [3, 2]),
    ("Reshape", {}, {"s": np.array([3, 2])}, [3, 2]),
    ("Concat", {"axis": 0}, {"other": strings((1, 3), 7)}, [3, 3]),
    ("Expand", {}, {"s": np.array([2, 2, 3])}, [2, 2, 3]),
    ("Tile", {}, {"r": np.array([1, 2])}, [2, 6]),
    ("Slice", {}, {"from": np.array([1]), "to": np.array([3]), "axes": np.array([1])}, [2, 2]),
    ("Equal", {}, {"other": strings((2, 3), 1)}, [2, 3]),
    ("Compress", {"axis": 1}, {"keep": np.array([True, False, True])}, [2, None]),
]


@pytest.mark.parametrize("op, attributes, constants, shape", MOVEMENTS, ids=lambda value: value if isinstance(value, str) else "")
def test_movements(op, attributes, constants, shape):
    node = helper.make_node(op, ["x", *constants], ["y"], **attributes)
    made = model([node], {"x": (STRING, [2, 3])}, {"y": (TensorProto.BOOL if op == "Equal" else STRING, shape)}, constants)
    check(made, {"x": strings((2, 3), 1)})


@pytest.mark.parametrize("attributes", [{}, {"sorted": 0}, {"axis": 0}, {"axis": 1, "sorted": 0}], ids=str)
def test_distinct(attributes):
    x = np.array([["b", "a"], ["日", ""], ["b", "a"], ["ab", "a\0b"], ["b", "ä"], ["b" * 30, "a"]], dtype=object)
    node = helper.make_node("Unique", ["x"], ["y", "first", "places", "counts"], **attributes)
    outputs = {name: (INT64, [None]) for name in ("first", "places", "counts")}
    made = model([node], {"x": (STRING, ["n", 2])}, {"y": (STRING, [None] * (2 if "axis" in attributes else 1))} | outputs)
    for rows in (x, x[:1]):
        check(made, {"x": rows}, OnnxRuntime)


@pytest.mark.parametrize("axis", [0, -1])
def test_one_hot(axis):
    made = model([helper.make_node("OneHot", ["x", "depth", "values"], ["y"], axis=axis)], {"x": (INT64, [5]), "values": (STRING, [2])}, {"y": (STRING, [None, None])}, {"depth": np.array(3)})
    check(made, {"x": np.array([0, -1, 1, 7, 2]), "values": np.array(["off", "on"], dtype=object)}, OnnxRuntime)


def test_choice_and_constants():
    nodes = [helper.make_node("Constant", [], ["c"], value_strings=["no", "", "no"]), helper.make_node("Where", ["is", "x", "c"], ["y"])]
    made = model(nodes, {"is": (TensorProto.BOOL, [3]), "x": (STRING, [3])}, {"y": (STRING, [3])})
    check(made, {"is": np.array([True, False, False]), "x": strings(3)})


ERRORS = [
    ("StringConcat", {}, INT64, "node 'y' (StringConcat): input 0 has type int64, expected string"),
    ("Add", {}, STRING, "node 'y' (Add): input 0 has type string, which is not supported"),
    ("OneHot", {}, STRING, "node 'y' (OneHot): input 0 has type string, expected numbers"),
    ("StringNormalizer", {"case_change_action": "TITLE"}, STRING, "node 'y' (StringNormalizer): case_change_action is 'TITLE', expected NONE, LOWER or UPPER"),
    ("RegexFullMatch", {"pattern": "a(b"}, STRING, "node 'y' (RegexFullMatch): pattern is not an expression of RE2: missing ): a(b"),
    ("RegexFullMatch", {"pattern": r"(a)\1"}, STRING, r"node 'y' (RegexFullMatch): pattern is not an expression of RE2: invalid escape sequence: \1"),
    ("Tokenizer", {"tokenexp": "a(b", "domain": "com.microsoft", "mark": 0, "pad_value": "", "mincharnum": 1}, STRING, "node 'y' (com.microsoft.Tokenizer): tokenexp is not an expression of RE2: missing ): a(b"),
    ("Tokenizer", {"separators": ["a", ""], "domain": "com.microsoft", "mark": 0, "pad_value": "", "mincharnum": 1}, STRING, "node 'y' (com.microsoft.Tokenizer): a separator is empty"),
    ("RegexFullMatch", {"pattern": "a"}, INT64, "node 'y' (RegexFullMatch): input 0 has type int64, expected string"),
]


@pytest.mark.parametrize("op, attributes, kind, message", ERRORS, ids=[f"{row[0]} {row[1]}" for row in ERRORS])
def test_errors(op, attributes, kind, message):
    inputs = {"StringNormalizer": 1, "RegexFullMatch": 1, "Tokenizer": 1, "OneHot": 3}
    node = helper.make_node(op, ["x"] * inputs.get(op, 2), ["y"], **attributes)
    with pytest.raises(onnx2halide.CompileError) as error:
        onnx2halide.compile(model([node], {"x": (kind, [3])}, {"y": (kind, [3])}))
    assert str(error.value).partition(": ")[2] == message
