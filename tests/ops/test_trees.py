"""Tree ensembles against onnxruntime, which is followed in what ONNX leaves open, such as the labels of two classes."""

import numpy as np
import onnx2halide
import pytest
from onnx import AttributeProto, TensorProto, helper
from onnx2halide.compare import default_floor, default_tolerance, difference
from onnx2halide.references import OnnxReference, OnnxRuntime
from trees import FEATURES, MODES, Forest, classifier, ensemble, one_node, regressor

TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")


def rows(count: int, element: int = TensorProto.FLOAT, missing: bool = False) -> np.ndarray:
    """Normal numbers, among them small integers, infinities and, where some are missing, NaN."""
    rng = np.random.default_rng(1)
    dtype = helper.tensor_dtype_to_np_dtype(element)
    numbers = rng.normal(size=(count, FEATURES))
    numbers = np.where(rng.random(numbers.shape) < 0.5, np.round(numbers), numbers)
    if dtype.kind == "f":
        numbers[rng.random(numbers.shape) < 0.05] = np.inf
        numbers[rng.random(numbers.shape) < 0.05] = -np.inf
        if missing:
            numbers[rng.random(numbers.shape) < 0.2] = np.nan
    return numbers.astype(dtype)


def check(model, *inputs: np.ndarray, reference=None):
    """Compares with onnxruntime on the same model, or with another reference, whose results may be narrower."""
    compare(onnx2halide.compile(model), reference or OnnxRuntime(model), *inputs)


def check_all(models: list, *inputs: np.ndarray):
    """The same for models that are compiled together."""
    for model, compiled in zip(models, onnx2halide.compile_many(models)):
        compare(compiled, OnnxRuntime(model), *inputs)


def compare(compiled, reference, *inputs: np.ndarray):
    for x in inputs:
        expected = reference.run({"x": x})
        for name, array in compiled.run_by_name({"x": x}).items():
            assert array.shape == expected[name].shape
            if array.dtype.kind in "OUTS":
                assert array.tolist() == expected[name].tolist()
                continue
            found = difference(array, expected[name].astype(array.dtype))
            assert not found.exceeds(default_tolerance(array.dtype), default_floor(array.dtype, [x])), f"{name}: {found.text()}"


@pytest.mark.parametrize("trees, depth", [(1, 0), (5, 0), (1, 1), (1, 12), (300, 3), (7, 2), (20, 12)])
def test_counts(trees, depth):
    check(regressor(Forest(trees, depth)), *(rows(count) for count in (1, 7, 8, 9, 65, 1000)))


def test_leaves_alone():
    forests = [Forest(1, 0, targets=targets, per_leaf=targets) for targets in (1, 2, 3)]
    models = [regressor(forest, aggregate_function=aggregate) for forest in forests for aggregate in ("AVERAGE", "SUM", "MIN")]
    check_all(models + [classifier(forest) for forest in forests[1:]], *(rows(count) for count in (1, 65)))


@pytest.mark.parametrize("count", [0, 1, 4, 7, 8, 33, 65, 100])
def test_fixed_rows(count):
    check(regressor(Forest(10, 5), rows=count), rows(count))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("missing", [False, True])
def test_mode(mode, missing):
    check(regressor(Forest(modes=(mode,), missing=missing, integers=True)), rows(100, missing=True))


@pytest.mark.parametrize("element", [TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.INT64, TensorProto.INT32], ids=TensorProto.DataType.Name)
def test_element(element):
    forest = Forest(modes=MODES, missing=True, integers=True, targets=3, per_leaf=2)
    x = rows(100, element, missing=True)
    as_tensors = element == TensorProto.DOUBLE
    check(classifier(forest, element=element, as_tensors=as_tensors), x)
    if x.dtype.kind == "f":  # as onnxruntime's regressor requires
        check(regressor(forest, element=element, as_tensors=as_tensors), x)


@pytest.mark.parametrize("per_leaf", [0, 1, 2, 5])
@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE", "MIN", "MAX"])
def test_targets(per_leaf, aggregate):
    # onnxruntime does not add the base value of a target that no leaf of a row scores.
    base = {"base_values": [0.5, -1.0, 2.0, 0.0, 1.0]} if per_leaf == 5 else {}
    check(regressor(Forest(targets=5, per_leaf=per_leaf), aggregate_function=aggregate, **base), rows(1), rows(3), rows(100))


def forest_for(transform: str, **kind) -> Forest:
    """PROBIT requires positive scores."""
    return Forest(positive=transform == "PROBIT", **kind)


@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE", "MIN", "MAX"])
def test_single_target(aggregate):
    models = [regressor(forest_for(transform), aggregate_function=aggregate, post_transform=transform, base_values=[0.25]) for transform in TRANSFORMS]
    check_all(models, rows(50))


@pytest.mark.parametrize("targets", [2, 3])
def test_transform(targets):
    models = [regressor(forest_for(transform, targets=targets, per_leaf=targets), post_transform=transform) for transform in TRANSFORMS]
    check_all(models, rows(50))


@pytest.mark.parametrize("base", [0, 1, 2])
@pytest.mark.parametrize("only", [(0,), (1,), (0, 1)], ids=str)
@pytest.mark.parametrize("positive", [False, True])
def test_two_classes(base, only, positive):
    forest = Forest(targets=2, per_leaf=2, only=only, positive=positive)
    bases = {"base_values": [0.1, -0.2][:base]} if base else {}
    check_all([classifier(forest, post_transform=transform, **bases) for transform in TRANSFORMS[:-1]], rows(50))


def with_more_scores(forest: Forest) -> Forest:
    """Leaves have further scores for the same targets, some of them far from the first ones."""
    rng = np.random.default_rng(2)
    more = [(*score[:3], float(np.float32(rng.normal()))) for score in forest.scores if rng.random() < 0.7]
    forest.scores += [more[i] for i in rng.permutation(len(more))] + more[::2]
    return forest


@pytest.mark.parametrize("targets, per_leaf", [(1, 1), (2, 1), (3, 0), (3, 3)])
def test_scores_of_same_target(targets, per_leaf):
    """For a single target the first one counts."""
    forest = with_more_scores(Forest(targets=targets, per_leaf=per_leaf))
    check_all([regressor(forest, aggregate_function=aggregate) for aggregate in ("SUM", "AVERAGE", "MIN", "MAX")], rows(1), rows(50))


@pytest.mark.parametrize("classes, only", [(1, None), (2, (0,)), (2, (1,)), (2, None), (3, None)])
def test_scores_of_same_class(classes, only):
    forest = with_more_scores(Forest(targets=classes, per_leaf=classes, only=only))
    check_all([classifier(forest), classifier(forest, base_values=[0.25] * classes)], rows(1), rows(50))


@pytest.mark.parametrize("classes, per_leaf, only", [(1, 1, None), (3, 0, None), (4, 4, None), (4, 2, (1, 3))])
def test_classes(classes, per_leaf, only):
    kind = {"targets": classes, "per_leaf": per_leaf, "only": only}
    check_all([classifier(forest_for(transform, **kind), post_transform=transform) for transform in TRANSFORMS], rows(1), rows(50))


NAMES = ["versicolor", "", "日本", "10", "a"]


@pytest.mark.parametrize("base", [0, 1, 2])
@pytest.mark.parametrize("only", [(0,), (1,), (0, 1)], ids=str)
@pytest.mark.parametrize("positive", [False, True])
def test_two_strings(base, only, positive):
    """Unlike integers, strings are chosen by their indices if leaves score both classes."""
    forest = Forest(targets=2, per_leaf=2, only=only, positive=positive)
    bases = {"base_values": [0.1, -0.2][:base]} if base else {}
    check_all([classifier(forest, post_transform=transform, classlabels_strings=NAMES[:2], **bases) for transform in ("NONE", "LOGISTIC")], rows(1), rows(50))


@pytest.mark.parametrize("classes, per_leaf, only", [(3, 0, None), (4, 4, None), (4, 2, (1, 3)), (5, 5, None)])
def test_strings(classes, per_leaf, only):
    kind = {"targets": classes, "per_leaf": per_leaf, "only": only}
    check_all([classifier(forest_for(transform, **kind), post_transform=transform, classlabels_strings=NAMES[:classes]) for transform in TRANSFORMS], rows(1), rows(50))


@pytest.mark.parametrize("element", [TensorProto.DOUBLE, TensorProto.INT64], ids=TensorProto.DataType.Name)
def test_strings_of_fixed_rows(element):
    forest = Forest(targets=3, per_leaf=3)
    check(classifier(forest, rows=20, element=element, classlabels_strings=["b", "a", "b"]), rows(20, element))


def test_single_string():
    """The label of all rows. If a sum is above 0, onnxruntime reads a string out of range."""
    forest = Forest(positive=True)
    check(classifier(forest, classlabels_strings=["only"], base_values=[-100.0]), rows(20))
    label = onnx2halide.compile(classifier(forest, classlabels_strings=["only"])).run_by_name({"x": rows(20)})["label"]
    assert label.tolist() == ["only"] * 20


@pytest.mark.parametrize("element", [TensorProto.FLOAT, TensorProto.DOUBLE], ids=TensorProto.DataType.Name)
@pytest.mark.parametrize("targets, transform, aggregate", [(1, 0, "SUM"), (3, 1, "AVERAGE"), (3, 2, "MIN"), (2, 3, "MAX")])
def test_branch_lists(element, targets, transform, aggregate):
    forest = Forest(targets=targets, modes=MODES, missing=True, integers=True)
    number = ("AVERAGE", "SUM", "MIN", "MAX").index(aggregate)
    # onnxruntime has 1 for LOGISTIC and 2 for SOFTMAX, while ONNX numbers them the other way; the older operator has names.
    named = regressor(forest, element=element, as_tensors=element == TensorProto.DOUBLE, post_transform=TRANSFORMS[transform], aggregate_function=aggregate)
    check(ensemble(forest, element=element, post_transform=transform, aggregate_function=number), rows(100, element, missing=True), reference=OnnxRuntime(named))


def test_members():
    """Sets of several sizes, and NaN that passes or not, against ONNX's reference, which treats a member 0 as a set's end."""
    sets = [[1.0], [-2.0, 2.0, 1.0], [], [0.5, 2.0, 3.0, -1.0, -3.0, 7.0]]
    tensors = {
        "nodes_modes": (TensorProto.UINT8, [6] * 4),
        "nodes_splits": (TensorProto.FLOAT, [0.0] * 4),
        "membership_values": (TensorProto.FLOAT, [member for each in sets for member in [*each, np.nan]]),
        "leaf_weights": (TensorProto.FLOAT, [1.0, 2.0, 3.0, 4.0, 5.0]),
    }
    lists = {
        "nodes_featureids": [0, 1, 2, 3],
        "nodes_truenodeids": [0, 1, 2, 3],
        "nodes_trueleafs": [1] * 4,
        "nodes_falsenodeids": [1, 2, 3, 4],
        "nodes_falseleafs": [0, 0, 0, 1],
        "nodes_missing_value_tracks_true": [0, 1, 0, 1],
        "leaf_targetids": [0] * 5,
        "tree_roots": [0],
        "n_targets": 1,
    }
    for name, (kind, values) in tensors.items():
        lists[name] = helper.make_tensor(name, kind, [len(values)], values)
    node = helper.make_node("TreeEnsemble", ["x"], ["y"], domain="ai.onnx.ml", **lists)
    model = one_node(node, Forest(), "n", TensorProto.FLOAT, TensorProto.FLOAT, version=5)
    check(model, rows(200, missing=True), reference=OnnxReference(model))


def test_branches_that_share_a_node():
    """As converters write a test for one of several categories: one comparison after the other leads there."""
    lists = {
        "nodes_treeids": [0] * 6,
        "nodes_nodeids": [0, 1, 2, 3, 4, 5],
        "nodes_featureids": [0, 0, 1, 0, 0, 0],
        "nodes_modes": ["BRANCH_EQ", "BRANCH_EQ", "BRANCH_LEQ", "LEAF", "LEAF", "LEAF"],
        "nodes_values": [1.0, 2.0, 0.5, 0.0, 0.0, 0.0],
        "nodes_truenodeids": [2, 2, 4, 0, 0, 0],
        "nodes_falsenodeids": [1, 3, 5, 0, 0, 0],
        "target_treeids": [0] * 3,
        "target_nodeids": [3, 4, 5],
        "target_ids": [0] * 3,
        "target_weights": [10.0, 20.0, 30.0],
        "n_targets": 1,
    }
    node = helper.make_node("TreeEnsembleRegressor", ["x"], ["y"], domain="ai.onnx.ml", **lists)
    check(one_node(node, Forest(), "n", TensorProto.FLOAT, TensorProto.FLOAT), rows(200))


NODES = len(Forest(2, 2).nodes)
ERRORS = [
    ({"n_targets": 0}, "there are 0 targets, expected 1 to 2147483647"),
    ({"base_values": [1.0, 2.0]}, "base_values has 2 values, expected 1"),
    ({"nodes_modes": ["BRANCH_LEQ"]}, f"nodes_modes has 1 values, expected {NODES}"),
    ({"nodes_modes": ["BRANCH_MEMBER"] * NODES}, "nodes_modes has the value 'BRANCH_MEMBER', which only TreeEnsemble has"),
    ({"nodes_featureids": [-1] * NODES}, f"a branch tests feature -1, expected one in [0, {FEATURES})"),
    ({"nodes_featureids": [FEATURES] * NODES}, f"a branch tests feature {FEATURES}, expected one in [0, {FEATURES})"),
    ({"nodes_truenodeids": [99] * NODES}, "nodes_truenodeids names node 99 of tree 0, which does not exist"),
    ({"nodes_truenodeids": [0] * NODES}, "a branch leads to node 0, which is the root of a tree"),
    ({"nodes_truenodeids": [1] * NODES}, "the branches that lead to node 6 form a cycle"),
    ({"nodes_nodeids": [0] * NODES}, "tree 0 has two nodes 0"),
    ({"aggregate_function": "MEDIAN"}, "aggregate_function has the value 'MEDIAN', expected one of AVERAGE, SUM, MIN, MAX"),
]


@pytest.mark.parametrize("attributes, message", ERRORS, ids=lambda value: next(iter(value)) if isinstance(value, dict) else "")
def test_errors(attributes, message):
    with pytest.raises(onnx2halide.CompileError) as error:
        onnx2halide.compile(regressor(Forest(2, 2), **attributes))
    assert str(error.value).endswith(f"node 'y' (ai.onnx.ml.TreeEnsembleRegressor): {message}")


LABEL_ERRORS = [
    ({"classlabels_int64s": [1, 2], "classlabels_strings": ["a", "b"]}, "classlabels_int64s has 2 items and classlabels_strings has 2, expected one of them to have any"),
    ({"classlabels_strings": []}, "classlabels_int64s has 0 items and classlabels_strings has 0, expected one of them to have any"),
    ({"classlabels_strings": ["a", "b"]}, "a leaf has target 2, expected one in [0, 2)"),
    ({"classlabels_strings": list("abcd"), "base_values": [0.5, 1.0]}, "base_values has 2 values, expected 4"),
]


@pytest.mark.parametrize("attributes, message", LABEL_ERRORS, ids=[message for _, message in LABEL_ERRORS])
def test_label_errors(attributes, message):
    model = classifier(Forest(2, 2, targets=3, per_leaf=3), classlabels_strings=["a"])
    (node,) = model.graph.node
    kept = [attribute for attribute in node.attribute if attribute.name != "classlabels_strings"]
    del node.attribute[:]
    node.attribute.extend([*kept, *(helper.make_attribute(name, value, attr_type=None if value else AttributeProto.STRINGS) for name, value in attributes.items())])
    with pytest.raises(onnx2halide.CompileError) as error:
        onnx2halide.compile(model)
    assert str(error.value).endswith(f"node 'label' (ai.onnx.ml.TreeEnsembleClassifier): {message}")


@pytest.mark.parametrize("make", [regressor, classifier])
def test_open_features(make):
    """Converters of scikit-learn's models leave the number of features open."""
    forest = Forest(5, 3, targets=3)
    model = make(forest)
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_param = "features"
    check(model, rows(1), rows(9), np.pad(rows(9), ((0, 0), (0, 2))))
    with pytest.raises(ValueError, match="the number of features is 2, expected"):
        onnx2halide.compile(model).run([rows(9)[:, :2]])
