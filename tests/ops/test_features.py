"""Operators of ai.onnx.ml against references: see reference_cases.py. onnxruntime has no shape inference for them, so that the
models declare what comes out."""

import numpy as np
import onnx
import onnx2halide
import pytest
from onnx import TensorProto, helper
from onnx2halide.compare import difference
from onnx2halide.references import OnnxRuntime
from recipes import Recipe

FLOATS = np.random.default_rng(0).normal(size=(3, 17)).astype(np.float32)
INTEGERS = np.random.default_rng(0).integers(-3, 4, (3, 17))
WEIGHTS = np.random.default_rng(1).normal(size=4 * 17).astype(np.float32).tolist()
HOLES = np.where(FLOATS > 0.5, np.float32(np.nan), FLOATS)

CASES = [
    ("Scaler", [FLOATS], {"offset": [0.5], "scale": [2.0]}, [(TensorProto.FLOAT, (3, 17))]),
    ("Scaler", [INTEGERS], {"offset": WEIGHTS[:17], "scale": WEIGHTS[17:34]}, [(TensorProto.FLOAT, (3, 17))]),
    ("Imputer", [HOLES], {"imputed_value_floats": WEIGHTS[:17], "replaced_value_float": float("nan")}, [(TensorProto.FLOAT, (3, 17))]),
    ("Imputer", [INTEGERS], {"imputed_value_int64s": [7], "replaced_value_int64": -1}, [(TensorProto.INT64, (3, 17))]),
    ("Imputer", [INTEGERS], {"imputed_value_int64s": list(range(17)), "replaced_value_int64": 2}, [(TensorProto.INT64, (3, 17))]),
    ("Binarizer", [FLOATS], {"threshold": 0.25}, [(TensorProto.FLOAT, (3, 17))]),
    ("Normalizer", [abs(FLOATS)], {"norm": "MAX"}, [(TensorProto.FLOAT, (3, 17))]),
    ("Normalizer", [FLOATS], {"norm": "L1"}, [(TensorProto.FLOAT, (3, 17))]),
    ("Normalizer", [FLOATS], {"norm": "L2"}, [(TensorProto.FLOAT, (3, 17))]),
    ("FeatureVectorizer", [FLOATS, FLOATS[:, :5]], {"inputdimensions": [17, 5]}, [(TensorProto.FLOAT, (3, 22))]),
    ("ArrayFeatureExtractor", [FLOATS, np.array([[3, 0, 16]])], {}, [(TensorProto.FLOAT, (3, 3))]),
    ("ArrayFeatureExtractor", [FLOATS[0], np.array([3, 0])], {}, [(TensorProto.FLOAT, (1, 2))]),
    ("LinearRegressor", [FLOATS], {"coefficients": WEIGHTS[:17]}, [(TensorProto.FLOAT, (3, 1))]),
    ("LinearRegressor", [FLOATS], {"coefficients": WEIGHTS, "targets": 4, "intercepts": WEIGHTS[:4]}, [(TensorProto.FLOAT, (3, 4))]),
    *(
        (
            "LinearClassifier",
            [FLOATS],
            {"coefficients": WEIGHTS, "intercepts": WEIGHTS[:4], "classlabels_ints": [5, 6, 9, 2], "post_transform": transform, "multi_class": 1},
            [(TensorProto.INT64, (3,)), (TensorProto.FLOAT, (3, 4))],
        )
        for transform in ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO")
    ),
]

TRANSFORMS = ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO", "PROBIT")
NAMES = ["versicolor", "", "日本", "10"]


def linear(op: str, models: int, outputs, element=TensorProto.FLOAT, n="n", transform="NONE", **attributes):
    """PROBIT requires numbers between 0 and 1."""
    coefficients = [0.002 * weight for weight in WEIGHTS] if transform == "PROBIT" else WEIGHTS
    intercepts = [0.5] * models if transform == "PROBIT" else WEIGHTS[-models:]
    attributes = {"coefficients": coefficients[: models * 17], "intercepts": intercepts, "post_transform": transform} | attributes
    node = helper.make_node(op, ["x"], [name for name, *_ in outputs], domain="ai.onnx.ml", **attributes)
    ports = [helper.make_tensor_value_info(*output) for output in outputs]
    graph = helper.make_graph([node], "small", [helper.make_tensor_value_info("x", element, [n, 17])], ports)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 1)], ir_version=8)


def classifier(labels: list, models: int | None = None, n="n", **kind):
    name, element = ("classlabels_strings", TensorProto.STRING) if isinstance(labels[0], str) else ("classlabels_ints", TensorProto.INT64)
    outputs = [("label", element, [n]), ("scores", TensorProto.FLOAT, [n, len(labels)])]
    return linear("LinearClassifier", models or len(labels), outputs, n=n, **{name: labels, "multi_class": int(len(labels) > 2)}, **kind)


def regressor(targets: int, **kind):
    return linear("LinearRegressor", targets, [("y", TensorProto.FLOAT, ["n", targets])], targets=targets, **kind)


def check(case: Recipe, *inputs: np.ndarray):
    compiled, reference = case.compile(), OnnxRuntime(case.model())
    for x in inputs:
        expected = reference.run({"x": x})
        for name, array in compiled.run_by_name({"x": x}).items():
            wanted = np.asarray(expected[name])
            assert array.shape == wanted.shape, name
            if array.dtype.kind in "OUTS":
                assert array.tolist() == wanted.tolist()
                continue
            found = difference(array, wanted)
            assert not found.exceeds(1e-4, 2e-6), f"{name}: {found.text()}"


def samples(count: int, dtype=np.float32) -> np.ndarray:
    return (2 * np.random.default_rng(3).normal(size=(count, 17))).astype(dtype)


# PROBIT of one score for two classes is rejected: onnxruntime leaves the other one uninitialised.
@pytest.mark.parametrize(
    "case",
    [
        Recipe(classifier, labels[:classes], models, transform=transform)
        for labels in ([5, -6, 9, 2], NAMES)
        for classes, models, transforms in ((2, 1, TRANSFORMS[:-1]), *((n, n, TRANSFORMS) for n in (2, 3, 4)))
        for transform in transforms
    ],
    ids=str,
)
def test_linear_classifier(case):
    check(case, samples(1), samples(40))


@pytest.mark.parametrize(
    "case, dtype",
    [
        (Recipe(classifier, NAMES[:3], element=helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), n=20), dtype)
        for dtype in ("float64", "int64", "int32")
    ],
    ids=str,
)
def test_linear_element(case, dtype):
    check(case, samples(20, dtype))


def of_one_or_two_features(models: int, transform: str):
    coefficients = [1.0] + [0.0] * 16 if models == 1 else [1.0] + [0.0] * 17 + [1.0] + [0.0] * 15
    return classifier(NAMES[:2], models, transform=transform, coefficients=coefficients, intercepts=[0.0] * models)


@pytest.mark.parametrize(
    "case", [Recipe(of_one_or_two_features, models, transform) for transform in ("NONE", "LOGISTIC") for models in (1, 2)], ids=str
)
def test_linear_labels_go_by_sums(case):
    """Of sums whose logistic is the same, and of equal ones."""
    x = np.zeros((6, 17), np.float32)
    x[:, :2] = [(0, 0), (1e-9, 0), (-1e-9, 0), (0, 1e-9), (30, 31), (31, 30)]
    check(case, x)


@pytest.mark.parametrize(
    "case", [Recipe(regressor, targets, transform=transform) for targets in (1, 3) for transform in TRANSFORMS], ids=str
)
def test_linear_regressor(case):
    check(case, samples(1), samples(40))


def of_each_feature(op: str):
    """A number per feature for any number of rows, followed by elementwise nodes."""
    numbers = {"Scaler": {"offset": WEIGHTS[:17], "scale": WEIGHTS[17:34]}, "Imputer": {"imputed_value_floats": WEIGHTS[:17], "replaced_value_float": float("nan")}}
    nodes = [helper.make_node(op, ["x"], ["features"], domain="ai.onnx.ml", **numbers[op]), helper.make_node("Neg", ["features"], ["y"])]
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 17]) for name in ("x", "y")]
    graph = helper.make_graph(nodes, "small", ports[:1], ports[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 1)], ir_version=8)


@pytest.mark.parametrize("case", [Recipe(of_each_feature, op) for op in ("Scaler", "Imputer")], ids=str)
def test_numbers_of_each_feature(case):
    check(case, samples(1), np.resize(HOLES, (40, 17)))


REFUSALS = [
    (classifier([7], coefficients=WEIGHTS[:17]), "there is 1 class label, expected 2 or more"),
    (classifier([7, 8], classlabels_strings=["a", "b"]), "classlabels_ints has 2 items and classlabels_strings has 2, expected one of them to have any"),
    (linear("LinearClassifier", 2, [("label", TensorProto.INT64, ["n"]), ("scores", TensorProto.FLOAT, ["n", 2])]), "classlabels_ints has 0 items and classlabels_strings has 0, expected one of them to have any"),
    (classifier(NAMES[:3], 2), "coefficients has 34 values, expected 51"),
    (classifier(NAMES[:3], intercepts=[0.5]), "intercepts has 1 value, expected 3"),
    (classifier(NAMES[:2], transform="RELU"), "post_transform is 'RELU', expected NONE, LOGISTIC, SOFTMAX, SOFTMAX_ZERO or PROBIT"),
    (classifier(NAMES[:2], 1, transform="PROBIT"), "post_transform is 'PROBIT', expected another one as two classes have one score"),
    (regressor(0, coefficients=WEIGHTS[:17], intercepts=[0.5]), "targets is 0, expected 1 or more"),
    (regressor(2, coefficients=WEIGHTS[:17]), "coefficients has 17 values, expected 34"),
]


@pytest.mark.parametrize("model, message", REFUSALS, ids=[message for _, message in REFUSALS])
def test_linear_refused(model, message):
    (node,) = model.graph.node
    with pytest.raises(onnx2halide.CompileError) as error:
        onnx2halide.compile(model)
    assert str(error.value).partition(": ")[2] == f"node '{node.output[0]}' (ai.onnx.ml.{node.op_type}): {message}"


def named(operands: list[np.ndarray]) -> dict[str, np.ndarray]:
    return {f"x{i}": operand for i, operand in enumerate(operands)}


def feature(op: str, operands: list[np.ndarray], attributes: dict, results: list) -> onnx.ModelProto:
    inputs = named(operands)
    names = [f"y{i}" for i in range(len(results))]
    node = helper.make_node(op, list(inputs), names, domain="ai.onnx.ml", **attributes)
    ports = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape) for name, array in inputs.items()]
    outputs = [helper.make_tensor_value_info(name, *result) for name, result in zip(names, results, strict=True)]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    model = helper.make_model(helper.make_graph([node], "small", ports, outputs), opset_imports=opsets, ir_version=8)
    onnx.checker.check_model(model)
    return model


@pytest.mark.parametrize("case", [Recipe(feature, *case) for case in CASES], ids=[f"{case[0]} {i}" for i, case in enumerate(CASES)])
def test_features(case):
    _, operands, *_ = case.model.args
    inputs = named(operands)
    expected = OnnxRuntime(case.model()).run(inputs)
    for name, array in case.compile().run_by_name(inputs).items():
        found = difference(array, np.asarray(expected[name]))
        assert not found.exceeds(1e-5, 1e-6), f"{name}: {found.text()}"


@pytest.mark.parametrize(
    "case",
    [
        Recipe(classifier, [5, 6, 9], 3),
        Recipe(classifier, [5, 6], 1),
        Recipe(regressor, 4),
    ],
    ids=str,
)
def test_open_features(case):
    """Converters of scikit-learn's models leave the number of features open, which only one number fits."""
    model = case.model()
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_param = "features"
    compiled, reference = onnx2halide.compile(model), OnnxRuntime(case.model())
    expected = reference.run({"x": samples(5)})
    for name, array in compiled.run_by_name({"x": samples(5)}).items():
        np.testing.assert_allclose(array, expected[name], rtol=1e-4, atol=1e-5)


def test_open_features_that_nothing_tells():
    """Without intercepts, 16 coefficients may be one vector for two classes, or two of half the length. onnxruntime requires intercepts."""

    def model(**intercepts) -> onnx.ModelProto:
        attributes = {"coefficients": WEIGHTS[:16], "classlabels_ints": [5, 6]} | intercepts
        node = helper.make_node("LinearClassifier", ["x"], ["label", "scores"], domain="ai.onnx.ml", **attributes)
        ports = [("x", TensorProto.FLOAT, ["n", "features"]), ("label", TensorProto.INT64, ["n"]), ("scores", TensorProto.FLOAT, ["n", 2])]
        x, *outputs = [helper.make_tensor_value_info(*port) for port in ports]
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 1)]
        return helper.make_model(helper.make_graph([node], "pair", [x], outputs), opset_imports=opsets, ir_version=8)

    with pytest.raises(onnx2halide.CompileError, match="expected rows of features"):
        onnx2halide.compile(model())
    for features in (8, 16):
        rows = np.ascontiguousarray(samples(2)[:, :features])
        expected = OnnxRuntime(model(intercepts=[0.0] * (16 // features))).run({"x": rows})["scores"]
        scores = onnx2halide.compile(model(), dims={"features": features}).run([rows])[1]
        np.testing.assert_allclose(scores, expected, rtol=1e-4, atol=1e-5)
