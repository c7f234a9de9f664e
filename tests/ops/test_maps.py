"""Maps, and the operators of ai.onnx.ml on them, against onnxruntime."""

import numpy as np
import onnx2halide
import pytest
from onnx import TensorProto, helper
from onnx2halide.references import OnnxRuntime

FLOAT, INT64, STRING, DOUBLE = TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING, TensorProto.DOUBLE
INTEGERS = {"classlabels_int64s": [5, -2, 9]}
NAMES = {"classlabels_strings": ["versicolor", "", "日本"]}


def tensor(type: int, shape):
    return helper.make_tensor_type_proto(type, shape)


def map_of(key: int, value: int, shape=None):
    return helper.make_map_type_proto(key, tensor(value, shape))


def maps_of(key: int):
    return helper.make_sequence_type_proto(map_of(key, FLOAT))


def model(nodes, inputs: dict, outputs: dict):
    """Ports are types by name."""
    ports = ([helper.make_value_info(name, type) for name, type in ports.items()] for ports in (inputs, outputs))
    opsets = [helper.make_opsetid("ai.onnx.ml", 3), helper.make_opsetid("", 18)]
    return helper.make_model(helper.make_graph(nodes, "maps", *ports), opset_imports=opsets, ir_version=10)


def node(op: str, inputs=("x",), outputs=("y",), **attributes):
    return helper.make_node(op, inputs, outputs, domain="ai.onnx.ml", **attributes)


def zip_map(shape, **labels):
    return model([node("ZipMap", **labels)], {"x": tensor(FLOAT, shape)}, {"y": maps_of(INT64 if "classlabels_int64s" in labels else STRING)})


def scores(*shape) -> np.ndarray:
    return np.random.default_rng(shape).normal(size=shape).astype(np.float32)


def same(found, expected) -> None:
    assert type(found) is type(expected)
    if isinstance(expected, list):
        assert len(found) == len(expected)
        for a, b in zip(found, expected):
            same(a, b)
    elif isinstance(expected, dict):
        assert found == expected and all(type(found[key]) is type(value) for key, value in expected.items())
    else:
        assert found.dtype == expected.dtype and found.shape == expected.shape
        np.testing.assert_array_equal(found, expected)


def check(made, *inputs) -> None:
    """Runs with each of the inputs, then with the first again."""
    compiled, reference = onnx2halide.compile(made), OnnxRuntime(made)
    for given in [*inputs, inputs[0]]:
        expected = reference.run(given)
        for name, found in compiled.run_by_name(given).items():
            same(found, expected[name])


@pytest.mark.parametrize("labels", [INTEGERS, NAMES], ids=["int64", "string"])
@pytest.mark.parametrize("shape, rows", [(["n", 3], [4, 1, 9]), (["n", "c"], [1, 2]), ([2, 3], [2]), ([3], [None]), (["c"], [None])])
def test_zip_map(labels, shape, rows):
    check(zip_map(shape, **labels), *({"x": scores(3) if count is None else scores(count, 3)} for count in rows))


def test_labels_that_are_there_twice():
    check(zip_map(["n", 3], classlabels_strings=["a", "b", "a"]), {"x": scores(2, 3)})


def test_no_rows():
    assert onnx2halide.compile(zip_map(["n", 3], **NAMES), dims={"n": "0..8"}).run([scores(0, 3)]) == [[]]


def test_maps_of_a_constant():
    nodes = [helper.make_node("Constant", [], ["c"], value_floats=[0.5, 1.5, 2.5]), node("ZipMap", ["c"], **NAMES)]
    (found,) = onnx2halide.compile(model(nodes, {}, {"y": maps_of(STRING)})).run([])
    assert found == [{"versicolor": 0.5, "": 1.5, "日本": 2.5}]


def test_maps_in_branches():
    """onnxruntime has no If of such a type."""
    branches = {f"{name}_branch": helper.make_graph([node("ZipMap", [source], ["z"], **INTEGERS)], name, [], [helper.make_value_info("z", maps_of(INT64))]) for name, source in (("then", "a"), ("else", "b"))}
    made = model([helper.make_node("If", ["is"], ["y"], **branches)], {"is": tensor(TensorProto.BOOL, []), "a": tensor(FLOAT, ["n", 3]), "b": tensor(FLOAT, [3])}, {"y": maps_of(INT64)})
    compiled = onnx2halide.compile(made)
    for way, rows in ((True, scores(2, 3)), (False, scores(1, 3))):
        (found,) = compiled.run([np.array(way), scores(2, 3), scores(1, 3)[0]])
        assert found == [dict(zip([5, -2, 9], row)) for row in rows.tolist()]


def classifier(kind: str):
    """As skl2onnx exports it: labels, and probabilities by class."""
    if kind == "linear":
        body = [
            node("LinearClassifier", ["x"], ["label", "raw"], coefficients=scores(12).tolist(), intercepts=[0.5, 0.0, -0.5], multi_class=1, post_transform="LOGISTIC", classlabels_ints=[0, 1, 2]),
            node("Normalizer", ["raw"], ["probabilities"], norm="L1"),
        ]
    else:
        tree = {"nodes_treeids": [0] * 5, "nodes_nodeids": list(range(5)), "nodes_featureids": [0, 0, 2, 0, 0], "nodes_values": [0.1, 0.0, -0.2, 0.0, 0.0]}
        ways = {"nodes_modes": ["BRANCH_LEQ", "LEAF", "BRANCH_LEQ", "LEAF", "LEAF"], "nodes_truenodeids": [1, 0, 3, 0, 0], "nodes_falsenodeids": [2, 0, 4, 0, 0]}
        leaves = {"class_treeids": [0] * 4, "class_nodeids": [1, 3, 3, 4], "class_ids": [0, 1, 2, 2], "class_weights": [1.0, 0.25, 0.75, 1.0]}
        body = [node("TreeEnsembleClassifier", ["x"], ["label", "probabilities"], classlabels_int64s=[0, 1, 2], post_transform="NONE", **tree, **ways, **leaves)]
    nodes = [*body, helper.make_node("Cast", ["label"], ["output_label"], to=INT64), node("ZipMap", ["probabilities"], ["output_probability"], classlabels_int64s=[0, 1, 2])]
    return model(nodes, {"x": tensor(FLOAT, [None, 4])}, {"output_label": tensor(INT64, [None]), "output_probability": maps_of(INT64)})


@pytest.mark.parametrize("kind", ["tree", "linear"])
def test_classifiers(kind):
    made = classifier(kind)
    compiled, reference = onnx2halide.compile(made), OnnxRuntime(made)
    for rows in (5, 1, 8):
        expected = reference.run({"x": scores(rows, 4)})
        label, maps = compiled.run([scores(rows, 4)])
        same(label, expected["output_label"])
        assert [list(row) for row in maps] == [[0, 1, 2]] * rows
        np.testing.assert_allclose([list(row.values()) for row in maps], [list(row.values()) for row in expected["output_probability"]], rtol=1e-5)


VOCABULARIES = [
    (STRING, FLOAT, {"string_vocabulary": ["a", "c", "", "日本", "c"]}, [{"c": 8.0, "a": 4.5}, {"": 1.0, "other": 2.0, "日本": -3.0}, {"z": 1.0}]),
    (INT64, FLOAT, {"int64_vocabulary": [7, -1, 3]}, [{3: 2.5, 7: 1.5}, {8: 1.0, -1: 0.5}]),
]


@pytest.mark.parametrize("key, value, vocabulary, contents", VOCABULARIES, ids=["string", "int64"])
@pytest.mark.parametrize("shape", [None, [], [1]])
def test_dict_vectorizer(key, value, vocabulary, contents, shape):
    """A model may give a map's values any shape, which says nothing."""
    made = model([node("DictVectorizer", **vocabulary)], {"x": map_of(key, value, shape)}, {"y": tensor(value, [1, None])})
    check(made, *({"x": content} for content in contents))


@pytest.mark.parametrize("key, value, content, expected", [
    (INT64, STRING, {2: "zwei", 5: "fünf"}, [["", "zwei", "fünf", ""]]),
    (INT64, DOUBLE, {7: 1e300}, [[1e300, 0, 0, 0]]),
    (STRING, INT64, {"b": 1 << 60, "a": -1}, [[0, -1, 0, 1 << 60]]),
    (STRING, DOUBLE, {}, [[0, 0, 0, 0]]),
])  # fmt: skip
def test_dict_vectorizer_of_what_onnxruntime_cannot_be_given(key, value, content, expected):
    vocabulary = {"int64_vocabulary": [7, 2, 5, -1]} if key == INT64 else {"string_vocabulary": ["c", "a", "", "b"]}
    made = model([node("DictVectorizer", **vocabulary)], {"x": map_of(key, value)}, {"y": tensor(value, [1, 4])})
    compiled = onnx2halide.compile(made)
    for _ in range(2):
        same(compiled.run([content])[0], np.array(expected, helper.tensor_dtype_to_np_dtype(value)))


FORMS = [{"map_form": "DENSE"}, {"map_form": "SPARSE", "max_map": 5}]


@pytest.mark.parametrize("form", FORMS, ids=["dense", "sparse"])
@pytest.mark.parametrize("to, type", [("TO_FLOAT", FLOAT), ("TO_INT64", INT64), ("TO_STRING", STRING)])
def test_cast_map(form, to, type):
    made = model([node("CastMap", cast_to=to, **form)], {"x": map_of(INT64, FLOAT)}, {"y": tensor(type, [1, None])})
    check(made, *({"x": content} for content in ({5: 1.5, 0: -2.75, 3: 1 / 3}, {4: 1e6}, {6: 7.0, 2: 1e20})))


@pytest.mark.parametrize("form, rows", list(zip(FORMS, ([-2000.0, 7.0, 1.5], [0, -2000.0, 0, 7.0, 0]))), ids=["dense", "sparse"])
def test_cast_map_of_strings(form, rows):
    content = {7: "1.5", 1: " -2e3 apples", 3: "7"} if form["map_form"] == "DENSE" else {3: "7", 1: "-2e3", 5: "no column"}
    made = model([node("CastMap", cast_to="TO_FLOAT", **form)], {"x": map_of(INT64, STRING)}, {"y": tensor(FLOAT, [1, None])})
    same(onnx2halide.compile(made).run([content])[0], np.float32([rows]))


def test_maps_pass_through():
    made = model([helper.make_node("Identity", ["x"], ["y"])], {"x": helper.make_optional_type_proto(map_of(STRING, FLOAT, []))}, {"y": helper.make_optional_type_proto(map_of(STRING, FLOAT, []))})
    compiled = onnx2halide.compile(made)
    for content in ({"a": 1.5, "": 2.0}, None, {}):
        assert compiled.run([content]) == [content]


RUN_ERRORS = [
    (zip_map(["n", "c"], **INTEGERS), scores(2, 4), "node 'y' (ai.onnx.ml.ZipMap): input 0 has 4 columns, expected 3 as there are labels"),
    (model([node("CastMap", map_form="SPARSE", max_map=3)], {"x": map_of(INT64, FLOAT)}, {"y": tensor(FLOAT, [1, None])}), {-1: 1.0}, "node 'y' (ai.onnx.ml.CastMap): a key is -1, expected 0 or more"),
    (model([node("CastMap", cast_to="TO_INT64")], {"x": map_of(INT64, STRING)}, {"y": tensor(INT64, [1, None])}), {1: "one"}, "node 'y' (ai.onnx.ml.CastMap): value 'one' is not a number"),
]


@pytest.mark.parametrize("made, x, message", RUN_ERRORS, ids=["columns", "key", "number"])
def test_errors_of_runs(made, x, message):
    compiled = onnx2halide.compile(made, name="errors")
    with pytest.raises(ValueError) as error:
        compiled.run([x])
    assert str(error.value) == f"errors: {message}"


def item_of_maps(op: str, inputs, **attributes):
    nodes = [node("ZipMap", ["x"], ["maps"], **INTEGERS), helper.make_node(op, inputs, ["y"], **attributes)]
    return model(nodes, {"x": tensor(FLOAT, [2, 3]), "place": tensor(INT64, [])}, {"y": map_of(INT64, FLOAT)})


ERRORS = [
    (zip_map(["n", 4], **INTEGERS), "ZipMap): input 0 has 4 columns, expected 3 as there are labels"),
    (zip_map(["n", 3], classlabels_strings=["a"], classlabels_int64s=[1]), "ZipMap): classlabels_int64s has 1 items and classlabels_strings has 1, expected one of them to have any"),
    (zip_map(["n", 3]), "ZipMap): classlabels_int64s has 0 items and classlabels_strings has 0, expected one of them to have any"),
    (model([node("ZipMap", **INTEGERS)], {"x": tensor(DOUBLE, ["n", 3])}, {"y": maps_of(INT64)}), "ZipMap): input 0 is float64 [n, 3], expected float32"),
    (model([node("DictVectorizer", int64_vocabulary=[1])], {"x": map_of(STRING, FLOAT)}, {"y": tensor(FLOAT, [1, 1])}), "DictVectorizer): the vocabulary has type int64, but the keys of input 0 have string"),
    (model([node("CastMap", cast_to="TO_DOUBLE")], {"x": map_of(INT64, FLOAT)}, {"y": tensor(FLOAT, [1, None])}), "CastMap): cast_to is 'TO_DOUBLE', expected TO_FLOAT, TO_STRING or TO_INT64"),
    (model([node("CastMap", map_form="SPARSE", max_map=0)], {"x": map_of(INT64, FLOAT)}, {"y": tensor(FLOAT, [1, None])}), "CastMap): max_map is 0, expected 1 to 2147483646"),
    (item_of_maps("SequenceAt", ["maps", "place"]), "SequenceAt): input 0 is sequence of map of int64 to float32, expected a sequence of tensors"),
    (item_of_maps("ConcatFromSequence", ["maps"], axis=0, new_axis=1), "ConcatFromSequence): input 0 is sequence of map of int64 to float32, expected a sequence of tensors"),
]


@pytest.mark.parametrize("made, message", ERRORS, ids=["columns", "both", "neither", "float64", "keys", "cast_to", "max_map", "item", "items"])
def test_errors(made, message):
    with pytest.raises(onnx2halide.CompileError) as error:
        onnx2halide.compile(made)
    assert str(error.value).endswith(message)
