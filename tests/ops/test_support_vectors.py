"""Support vector machines of ai.onnx.ml against onnxruntime, which settles what ONNX leaves open."""

from itertools import product

import numpy as np
import onnx
import onnx2halide
import pytest
from onnx import TensorProto, helper
from onnx2halide.compare import difference
from onnx2halide.references import OnnxRuntime
from recipes import Recipe

FEATURES = 5
KERNELS = {
    "LINEAR": [0.0, 0.0, 0.0],
    "POLY": [0.3, 1.5, 2.0],
    "RBF": [0.2, 0.0, 0.0],
    "SIGMOID": [0.1, -0.2, 0.0],
}
TRANSFORMS = ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO", "PROBIT")


def numbers(count: int, seed: int = 0, scale: float = 1.0) -> list[float]:
    return (scale * np.random.default_rng(seed).normal(size=count)).astype(np.float32).tolist()


def one_node(op: str, outputs, element=TensorProto.FLOAT, shape=("n", FEATURES), **attributes):
    node = helper.make_node(op, ["x"], [name for name, *_ in outputs], domain="ai.onnx.ml", **attributes)
    ports = [helper.make_tensor_value_info(*output) for output in outputs]
    graph = helper.make_graph([node], "small", [helper.make_tensor_value_info("x", element, shape)], ports)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def kernel(kind: str) -> dict:
    return {"kernel_type": kind, "kernel_params": KERNELS[kind]}


def classifier(classes: int, kind: str = "RBF", vectors: int = 7, probabilities: bool = False, strings: bool = False, n="n", element=TensorProto.FLOAT, **attributes):
    """With support vectors, a different number for each class; without any (`vectors=0`), with weights."""
    pairs = classes * (classes - 1) // 2
    attributes = kernel(kind) | attributes
    if vectors:
        per_class = [vectors + 3 * (i % 2) for i in range(classes)]
        total = sum(per_class)
        attributes = {
            "vectors_per_class": per_class,
            "support_vectors": numbers(total * FEATURES, 1),
            "coefficients": numbers((classes - 1) * total, 2),
            "rho": numbers(pairs, 3, 0.1),
        } | attributes
    else:
        attributes = {"coefficients": numbers(classes * FEATURES, 2), "rho": [0.25]} | attributes
    if probabilities:
        attributes |= {"prob_a": numbers(pairs, 4), "prob_b": numbers(pairs, 5, 0.5)}
    labels = [10 * i - 10 for i in range(classes)]
    attributes |= {"classlabels_strings": [f"class {label}" for label in labels]} if strings else {"classlabels_ints": labels}
    columns = classes if probabilities or not vectors else max(2, pairs)
    label = TensorProto.STRING if strings else TensorProto.INT64
    return one_node("SVMClassifier", [("label", label, [n]), ("scores", TensorProto.FLOAT, [n, columns])], element, (n, FEATURES), **attributes)


def regressor(kind: str = "RBF", vectors: int = 30, n="n", **attributes):
    attributes = kernel(kind) | {"rho": [0.125], "coefficients": numbers(vectors or FEATURES, 2), "n_supports": vectors} | attributes
    if vectors:
        attributes["support_vectors"] = numbers(vectors * FEATURES, 1)
    return one_node("SVMRegressor", [("y", TensorProto.FLOAT, [n, 1])], shape=(n, FEATURES), **attributes)


def rows(count: int, dtype=np.float32, seed: int = 9) -> np.ndarray:
    return (1.5 * np.random.default_rng(seed).normal(size=(count, FEATURES))).astype(dtype)


def check(case: Recipe, *inputs: np.ndarray, tolerance=1e-5, floor=2e-6, columns=None):
    compiled, reference = case.compile(), OnnxRuntime(case.model())
    for x in inputs:
        expected = reference.run({"x": x})
        for name, array in compiled.run_by_name({"x": x}).items():
            wanted = np.asarray(expected[name])
            assert array.shape == wanted.shape, name
            if array.dtype.kind in "OUTS":
                assert array.tolist() == wanted.tolist()
                continue
            found = difference(array[..., :columns], wanted[..., :columns])
            assert not found.exceeds(tolerance, floor), f"{name}: {found.text()}"


@pytest.mark.parametrize(
    "case",
    [Recipe(classifier, classes, kind, probabilities=given) for given, classes, kind in product((False, True), (2, 3, 5), KERNELS)],
    ids=str,
)
def test_classifier(case):
    check(case, rows(1), rows(40), rows(7))


@pytest.mark.parametrize("case", [Recipe(classifier, 3, "POLY", kernel_params=[0.3, 1.5, degree]) for degree in (1.0, 3.0, 4.0)], ids=str)
def test_degree(case):
    check(case, rows(40))


@pytest.mark.parametrize(
    "of_any_rows, of_three",
    [(Recipe(classifier, 2, vectors=vectors), Recipe(classifier, 2, vectors=vectors, n=3)) for vectors in (1, 8, 16, 37, 200)],
    ids=str,
)
def test_vectors(of_any_rows, of_three):
    check(of_any_rows, rows(1), rows(300))
    check(of_three, rows(3))


def transformed(classes: int, probabilities: bool, vectors: int, transform: str):
    scale = {}
    if transform == "PROBIT" and not probabilities:  # which requires numbers between 0 and 1
        count = (17 if classes == 2 else 3 * 34) if vectors else classes * FEATURES
        scale = {"coefficients": numbers(count, 2, 0.01), "rho": [0.5] * (classes * (classes - 1) // 2 if vectors else 1)}
    return classifier(classes, vectors=vectors, probabilities=probabilities, post_transform=transform, **scale)


MACHINES = [(2, False, 7), (2, True, 7), (4, False, 7), (4, True, 7), (1, False, 0), (2, False, 0), (2, True, 0), (4, False, 0)]


@pytest.mark.parametrize("case", [Recipe(transformed, *machine, transform) for machine in MACHINES for transform in TRANSFORMS], ids=str)
def test_transform(case):
    classes, probabilities, vectors, transform = case.model.args
    is_single = vectors and classes == 2 and not probabilities
    # For a single sum onnxruntime leaves the second score uninitialised. A probit near 0 is a difference of nearly equal numbers.
    kind = {"columns": 1 if is_single else None, "tolerance": 1e-4} if transform == "PROBIT" else {}
    check(case, rows(20), **kind)


@pytest.mark.parametrize(
    "case",
    [
        Recipe(classifier, classes, vectors=vectors, probabilities=probabilities, strings=True)
        for classes, vectors, probabilities in product((2, 3), (7, 0), (False, True))
    ],
    ids=str,
)
def test_strings(case):
    check(case, rows(1), rows(20))


def linear(classes: int, sign: int, **kind):
    """A model with weights that are all positive (1), all negative (-1), or mixed (0)."""
    weights = numbers(classes * FEATURES, 2, 0.3)
    return classifier(classes, vectors=0, coefficients=[sign * abs(weight) if sign else weight for weight in weights], **kind)


@pytest.mark.parametrize(
    "scores, negative_scores, probabilities",
    [
        (*(Recipe(linear, *machine, rho=[rho]) for rho in (0.25, -0.5)), Recipe(linear, *machine, probabilities=machine[0] > 1))
        for machine in product((1, 2, 3, 5), (1, -1, 0))
    ],
    ids=str,
)
def test_linear(scores, negative_scores, probabilities):
    """Without support vectors coefficients are weights; the label of two classes depends on the signs of all."""
    check(scores, rows(1), rows(100))
    check(negative_scores, rows(1), rows(100))
    check(probabilities, rows(50))


@pytest.mark.parametrize(
    "case, dtype",
    [
        (Recipe(classifier, 3, vectors=vectors, element=helper.np_dtype_to_tensor_dtype(np.dtype(dtype))), dtype)
        for vectors in (0, 7)
        for dtype in ("float64", "int64", "int32")
    ],
    ids=str,
)
def test_element(case, dtype):
    check(case, rows(20, dtype))


def test_votes_that_are_equal():
    """Three classes each of which beats the next one; and scores of exactly 0, which are votes for the second."""
    shared = {"vectors_per_class": [1, 1, 1], "support_vectors": [0.0] * 3 * FEATURES}
    check(Recipe(classifier, 3, "LINEAR", coefficients=[0.0] * 6, rho=[1.0, -1.0, 1.0], **shared), rows(3))
    check(Recipe(classifier, 3, "LINEAR", coefficients=[0.0] * 6, rho=[0.0, 0.0, 0.0], **shared), rows(3))


def test_class_without_vectors():
    check(Recipe(classifier, 3, vectors_per_class=[3, 0, 2], support_vectors=numbers(5 * FEATURES), coefficients=numbers(10)), rows(20))


def test_distances_far_from_zero():
    """Rows near support vectors, all of which are far from the origin."""
    vectors = (np.array(numbers(40 * FEATURES, 1)) + 3000).astype(np.float32)
    case = Recipe(classifier, 3, vectors_per_class=[20, 10, 10], support_vectors=vectors.tolist(), coefficients=numbers(80, 2))
    check(case, rows(50) + np.float32(3000))


def test_many_classes():
    """Probabilities take different numbers of iterations for each row."""
    check(Recipe(classifier, 20, vectors=2, probabilities=True), rows(200))


@pytest.mark.parametrize(
    "case",
    [Recipe(regressor, kind, vectors, one_class=one_class) for vectors, one_class, kind in product((0, 30), (0, 1), KERNELS)],
    ids=str,
)
def test_regressor(case):
    check(case, rows(1), rows(40), rows(7))


def test_regressor_of_fixed_rows():
    check(Recipe(regressor, n=1), rows(1))
    check(Recipe(regressor, n=9, post_transform="LOGISTIC"), rows(9))  # which has no effect


def of_a_single_row():
    model = classifier(3)
    for port, shape in zip([*model.graph.input, *model.graph.output], [[FEATURES], [1], [1, 3]], strict=True):
        port.CopyFrom(helper.make_tensor_value_info(port.name, port.type.tensor_type.elem_type, shape))
    return model


def test_single_row():
    """A single row may lack the axis of rows."""
    check(Recipe(of_a_single_row), rows(1)[0])


def test_more_rows_than_a_task_has():
    check(Recipe(classifier, 3, vectors=60, probabilities=True), rows(2000))
    check(Recipe(regressor, n=2000), rows(2000))


CLASSIFIER_REFUSALS = [
    ({"coefficients": [1.0] * 3}, "coefficients has 3 values, expected 48"),
    ({"support_vectors": [1.0]}, "support_vectors has 1 value, expected 120"),
    ({"vectors_per_class": [20, 7]}, "vectors_per_class has 2 values, expected 3"),
    ({"vectors_per_class": [20, -1, 8]}, "vectors_per_class has the value -1, expected 0 or more"),
    ({"rho": [0.5]}, "rho has 1 value, expected 3"),
    ({"rho": []}, "rho has no values"),
    ({"prob_a": [0.5] * 2, "prob_b": [0.5] * 3}, "prob_a has 2 values, expected 3"),
    ({"prob_a": [0.5] * 3, "prob_b": [0.5] * 2}, "prob_b has 2 values, expected 3"),
    ({"kernel_params": [0.5]}, "kernel_params has 1 value, expected 3"),
    ({"kernel_type": "COSINE"}, "kernel_type is 'COSINE', expected LINEAR, POLY, RBF or SIGMOID"),
    ({"post_transform": "RELU"}, "post_transform is 'RELU', expected NONE, LOGISTIC, SOFTMAX, SOFTMAX_ZERO or PROBIT"),
    ({"classlabels_ints": []}, "classlabels_ints has 0 items and classlabels_strings has 0, expected one of them to have any"),
    ({"classlabels_ints": [7]}, "there is 1 class label, expected 2 or more"),
]
REGRESSOR_REFUSALS = [
    ({"coefficients": [1.0]}, "coefficients has 1 value, expected 30"),
    ({"n_supports": 0, "coefficients": [1.0]}, "coefficients has 1 value, expected 5"),
    ({"support_vectors": [1.0]}, "support_vectors has 1 value, expected 150"),
    ({"rho": [1.0, 2.0]}, "rho has 2 values, expected 1"),
]


def check_refused(model, attributes: dict, label: str, message: str):
    (node,) = model.graph.node
    for name, value in attributes.items():
        kept = [attribute for attribute in node.attribute if attribute.name != name]
        kind = {"attr_type": onnx.AttributeProto.FLOATS if name == "rho" else onnx.AttributeProto.INTS} if value == [] else {}
        del node.attribute[:]
        node.attribute.extend([*kept, helper.make_attribute(name, value, **kind)])
    with pytest.raises(onnx2halide.CompileError) as error:
        onnx2halide.compile(model)
    assert str(error.value).partition(": ")[2] == f"node '{label}' (ai.onnx.ml.{node.op_type}): {message}"


@pytest.mark.parametrize("attributes, message", CLASSIFIER_REFUSALS, ids=[message for _, message in CLASSIFIER_REFUSALS])
def test_refused_classifier(attributes, message):
    check_refused(classifier(3), attributes, "label", message)


@pytest.mark.parametrize("attributes, message", REGRESSOR_REFUSALS, ids=[message for _, message in REGRESSOR_REFUSALS])
def test_refused_regressor(attributes, message):
    check_refused(regressor(), attributes, "y", message)


def test_refused_input():
    model = regressor()
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_value = 4
    check_refused(model, {}, "y", "support_vectors has 150 values, expected 120")
