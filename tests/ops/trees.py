"""Random tree ensembles as models, for tests of ai.onnx.ml's tree operators."""

from dataclasses import dataclass, field

import numpy as np
import onnx
from onnx import TensorProto, helper

FEATURES = 6
MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")


@dataclass
class Forest:
    """Trees of random splits. Leaves have scores for `per_leaf` of the targets, or for the tree's own one if it is 0."""

    trees: int = 10
    depth: int = 4
    targets: int = 1
    per_leaf: int = 1
    modes: tuple[str, ...] = ("BRANCH_LEQ",)
    missing: bool = False
    full: bool = False
    integers: bool = False  # splits, so that equality is frequent
    positive: bool = False  # weights
    only: tuple[int, ...] | None = None  # targets that leaves score
    features: int = FEATURES
    nodes: list = field(default_factory=list)  # tree, number, mode, feature, split, missing, yes, no
    scores: list = field(default_factory=list)  # tree, number, target, weight

    def __post_init__(self):
        self.rng = np.random.default_rng(0)
        for tree in range(self.trees):
            self._grow(tree)

    def _grow(self, tree):
        open_nodes, count = [(0, 0)], 1
        while open_nodes:
            number, level = open_nodes.pop(0)
            is_leaf = level == self.depth or (not self.full and level > 0 and self.rng.random() < 0.2)
            if is_leaf:
                self.nodes.append((tree, number, "LEAF", 0, 0.0, 0, 0, 0))
                self._score(tree, number)
                continue
            split = float(self.rng.integers(-2, 3)) if self.integers else float(np.float32(self.rng.normal()))
            mode = self.modes[self.rng.integers(len(self.modes))]
            missing = int(self.missing and self.rng.random() < 0.5)
            self.nodes.append((tree, number, mode, int(self.rng.integers(self.features)), split, missing, count, count + 1))
            open_nodes += [(count, level + 1), (count + 1, level + 1)]
            count += 2

    def _score(self, tree, number):
        choice = np.array(self.only or range(self.targets))
        targets = self.rng.permutation(choice)[: self.per_leaf] if self.per_leaf else [choice[tree % len(choice)]]
        for target in targets:
            weight = abs(self.rng.normal()) if self.positive else self.rng.normal()
            self.scores.append((tree, number, int(target), float(np.float32(weight / self.trees))))

    def attributes(self, scores: str, as_tensors: bool = False) -> dict:
        """The attributes of TreeEnsembleRegressor (`target`) or TreeEnsembleClassifier (`class`)."""
        trees, numbers, modes, features, splits, missing, yes, no = map(list, zip(*self.nodes))
        lists = {
            "nodes_treeids": trees,
            "nodes_nodeids": numbers,
            "nodes_modes": modes,
            "nodes_featureids": features,
            "nodes_truenodeids": yes,
            "nodes_falsenodeids": no,
        }
        if self.missing:
            lists["nodes_missing_value_tracks_true"] = missing
        score_trees, score_numbers, targets, weights = map(list, zip(*self.scores))
        lists |= {f"{scores}_treeids": score_trees, f"{scores}_nodeids": score_numbers, f"{scores}_ids": targets}
        for name, values in (("nodes_values", splits), (f"{scores}_weights", weights)):
            if as_tensors:
                lists[name + "_as_tensor"] = helper.make_tensor(name, TensorProto.DOUBLE, [len(values)], values)
            else:
                lists[name] = values
        return lists

    def branch_attributes(self, element: int) -> dict:
        """The attributes of TreeEnsemble. A tree that is a leaf has a branch both of whose ways lead there."""
        branches, leaves = {}, {}
        for node in self.nodes:
            (leaves if node[2] == "LEAF" else branches)[node[:2]] = node
        branch_ids, leaf_ids = {key: i for i, key in enumerate(branches)}, {key: i for i, key in enumerate(leaves)}
        score = {(tree, number): (target, weight) for tree, number, target, weight in self.scores}
        rows = list(branches.values())
        children = [[(node[0], node[place]) for node in rows] for place in (6, 7)]

        def tensor(name, values, kind=element):
            return helper.make_tensor(name, kind, [len(values)], values)

        lists = {
            "nodes_modes": tensor("modes", [MODES.index(node[2]) for node in rows], TensorProto.UINT8),
            "nodes_featureids": [node[3] for node in rows],
            "nodes_splits": tensor("splits", [node[4] for node in rows]),
            "leaf_targetids": [score[key][0] for key in leaves],
            "leaf_weights": tensor("weights", [score[key][1] for key in leaves]),
            "tree_roots": [branch_ids[tree, 0] for tree in range(self.trees)],
        }
        for way, keys in zip(("true", "false"), children):
            lists[f"nodes_{way}leafs"] = [int(key in leaves) for key in keys]
            lists[f"nodes_{way}nodeids"] = [leaf_ids[key] if key in leaves else branch_ids[key] for key in keys]
        if self.missing:
            lists["nodes_missing_value_tracks_true"] = [node[5] for node in rows]
        return lists


def one_node(node: onnx.NodeProto, forest: Forest, rows: int | str, element: int, result: int, version: int = 3) -> onnx.ModelProto:
    input_ = helper.make_tensor_value_info("x", element, [rows, forest.features])
    results = [helper.make_tensor_value_info("y", result, [rows, forest.targets])]
    if len(node.output) == 2:
        has_strings = any(attribute.name == "classlabels_strings" for attribute in node.attribute)
        results.insert(0, helper.make_tensor_value_info("label", TensorProto.STRING if has_strings else TensorProto.INT64, [rows]))
    graph = helper.make_graph([node], "trees", [input_], results)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("ai.onnx.ml", version), helper.make_opsetid("", 21)], ir_version=10)


def regressor(forest: Forest, rows: int | str = "n", element: int = TensorProto.FLOAT, as_tensors: bool = False, **attributes) -> onnx.ModelProto:
    lists = forest.attributes("target", as_tensors) | {"n_targets": forest.targets} | attributes
    node = helper.make_node("TreeEnsembleRegressor", ["x"], ["y"], domain="ai.onnx.ml", **lists)
    return one_node(node, forest, rows, element, TensorProto.FLOAT)


def classifier(forest: Forest, rows: int | str = "n", element: int = TensorProto.FLOAT, as_tensors: bool = False, **attributes) -> onnx.ModelProto:
    labels = {} if "classlabels_strings" in attributes else {"classlabels_int64s": [10 + 3 * i for i in range(forest.targets)]}
    lists = labels | forest.attributes("class", as_tensors) | attributes
    node = helper.make_node("TreeEnsembleClassifier", ["x"], ["label", "y"], domain="ai.onnx.ml", **lists)
    return one_node(node, forest, rows, element, TensorProto.FLOAT)


def ensemble(forest: Forest, rows: int | str = "n", element: int = TensorProto.FLOAT, **attributes) -> onnx.ModelProto:
    lists = forest.branch_attributes(element) | {"n_targets": forest.targets} | attributes
    node = helper.make_node("TreeEnsemble", ["x"], ["y"], domain="ai.onnx.ml", **lists)
    return one_node(node, forest, rows, element, element, version=5)
