#include "ops/ml/tree_ensemble.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <span>
#include <string_view>

#include <fmt/ranges.h>

#include "ops/ml/maps.h"

namespace onnx2halide {

namespace {

using Test = TreeEnsemble::Test;

/// The enumerator whose value is the index of a name in a list.
template <typename Enum, size_t N>
Enum enumerator(const std::string& attribute, const std::string& name, const std::array<std::string_view, N>& names) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end())
        throw CompileError("{} has the value '{}', expected one of {}", attribute, name, fmt::join(names, ", "));
    return static_cast<Enum>(found - names.begin());
}

template <typename Enum>
Enum enumerator(const std::string& attribute, int64_t number, Enum last) {
    const auto most = static_cast<int64_t>(last);
    if (number < 0 || number > most)
        throw CompileError("{} has the value {}, expected one in [0, {}]", attribute, number, most);
    return static_cast<Enum>(number);
}

constexpr std::array<std::string_view, 4> aggregate_names = {"AVERAGE", "SUM", "MIN", "MAX"};
constexpr std::array<std::string_view, 5> post_transform_names = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO",
                                                                  "PROBIT"};
constexpr std::array<std::string_view, 7> test_names = {"BRANCH_LEQ", "BRANCH_LT",  "BRANCH_GTE",   "BRANCH_GT",
                                                        "BRANCH_EQ",  "BRANCH_NEQ", "BRANCH_MEMBER"};
constexpr std::string_view leaf_name = "LEAF";

/// Throws CompileError unless an attribute has as many values as the one to which it corresponds.
void check_count(const std::string& attribute, size_t found, size_t expected) {
    if (found != expected) throw CompileError("{} has {} values, expected {}", attribute, found, expected);
}

/// An index from an attribute. Throws CompileError if it is outside of [0, count).
size_t checked_index(const std::string& attribute, int64_t index, size_t count) {
    if (index < 0 || static_cast<uint64_t>(index) >= count)
        throw CompileError("{} has the value {}, expected one in [0, {})", attribute, index, count);
    return static_cast<size_t>(index);
}

/// Numbers from a list of floats or, with the suffix `_as_tensor`, from a tensor. Empty if there is neither.
std::vector<double> reals(const Node& node, const std::string& attribute) {
    if (node.has(attribute + "_as_tensor")) return node.tensor(attribute + "_as_tensor").reals();
    if (!node.has(attribute)) return {};
    const std::vector<float> floats = node.reals(attribute);
    return {floats.begin(), floats.end()};
}

/// Throws CompileError if a path of branches is endless or leads to a root. Several branches may lead to the same node,
/// as where an exporter tests for one of several categories by several comparisons.
void check_trees(const TreeEnsemble& ensemble) {
    std::vector<size_t> parents(ensemble.nodes.size(), 0);
    const auto for_children = [&](const TreeEnsemble::Node& node, const auto& action) {
        if (!node.branch) return;
        action(node.branch->if_true);
        action(node.branch->if_false);
    };
    for (const TreeEnsemble::Node& node : ensemble.nodes) for_children(node, [&](size_t child) { ++parents[child]; });
    for (const size_t root : ensemble.roots) {
        if (ensemble.nodes[root].branch && parents[root] > 0)
            throw CompileError("a branch leads to node {}, which is the root of a tree", root);
    }
    // A node is removed when all of its parents are; those of a cycle, and behind it, remain.
    std::vector<size_t> open;
    for (size_t i = 0; i < parents.size(); ++i) {
        if (parents[i] == 0) open.push_back(i);
    }
    while (!open.empty()) {
        const size_t node = open.back();
        open.pop_back();
        for_children(ensemble.nodes[node], [&](size_t child) {
            if (--parents[child] == 0) open.push_back(child);
        });
    }
    for (size_t i = 0; i < parents.size(); ++i) {
        if (parents[i] > 0) throw CompileError("the branches that lead to node {} form a cycle", i);
    }
}

/// Reads TreeEnsembleClassifier and TreeEnsembleRegressor (1, 3): one list of branches and leaves, in which the first
/// of each tree is its root, and another list of scores (`class_…` or `target_…`).
class NodeListReader {
public:
    NodeListReader(const Node& node, const std::string& scores) : node_(node), scores_(scores) {}

    TreeEnsemble read() {
        read_nodes();
        link_nodes();
        read_scores();
        ensemble_.base_values = reals(node_, "base_values");
        ensemble_.aggregate = aggregate_of(node_.string("aggregate_function", "SUM"));
        ensemble_.post_transform = enumerator<TreeEnsemble::PostTransform>(
            "post_transform", node_.string("post_transform", "NONE"), post_transform_names);
        return std::move(ensemble_);
    }

private:
    using Id = std::pair<int64_t, int64_t>;  // of tree and node

    std::vector<int64_t> integers(const std::string& attribute) const {
        std::vector<int64_t> values = node_.integers(attribute, {});
        check_count(attribute, values.size(), ids_.size());
        return values;
    }

    void read_nodes() {
        const std::vector<int64_t> trees = node_.integers("nodes_treeids", {}),
                                   numbers = node_.integers("nodes_nodeids", {});
        if (trees.empty()) throw CompileError("nodes_treeids is empty, expected a tree");
        check_count("nodes_nodeids", numbers.size(), trees.size());
        for (size_t i = 0; i < trees.size(); ++i) {
            ids_.emplace_back(trees[i], numbers[i]);
            if (!places_.emplace(ids_.back(), i).second)
                throw CompileError("tree {} has two nodes {}", trees[i], numbers[i]);
            if (known_trees_.insert(trees[i]).second) ensemble_.roots.push_back(i);
        }
        const std::vector<std::string> modes = node_.strings("nodes_modes");
        const std::vector<int64_t> features = integers("nodes_featureids");
        const std::vector<double> splits = reals(node_, "nodes_values");
        const std::vector<int64_t> missing = node_.integers("nodes_missing_value_tracks_true", {});
        check_count("nodes_modes", modes.size(), ids_.size());
        check_count("nodes_values", splits.size(), ids_.size());
        if (!missing.empty()) check_count("nodes_missing_value_tracks_true", missing.size(), ids_.size());
        ensemble_.nodes.resize(ids_.size());
        for (size_t i = 0; i < ids_.size(); ++i) {
            if (modes[i] == leaf_name) continue;
            TreeEnsemble::Branch branch;
            branch.test = enumerator<Test>("nodes_modes", modes[i], test_names);
            if (branch.test == Test::member)
                throw CompileError("nodes_modes has the value '{}', which only TreeEnsemble has", modes[i]);
            branch.feature = features[i];
            branch.split = splits[i];
            branch.missing_tracks_true = !missing.empty() && missing[i] != 0;
            ensemble_.nodes[i].branch = std::move(branch);
        }
    }

    size_t place(const std::string& attribute, const Id& id) const {
        const auto found = places_.find(id);
        if (found == places_.end())
            throw CompileError("{} names node {} of tree {}, which does not exist", attribute, id.second, id.first);
        return found->second;
    }

    void link_nodes() {
        const std::vector<int64_t> if_true = integers("nodes_truenodeids"), if_false = integers("nodes_falsenodeids");
        for (size_t i = 0; i < ids_.size(); ++i) {
            auto& branch = ensemble_.nodes[i].branch;
            if (!branch) continue;
            branch->if_true = place("nodes_truenodeids", {ids_[i].first, if_true[i]});
            branch->if_false = place("nodes_falsenodeids", {ids_[i].first, if_false[i]});
        }
    }

    void read_scores() {
        const std::vector<int64_t> trees = node_.integers(scores_ + "_treeids", {}),
                                   numbers = node_.integers(scores_ + "_nodeids", {}),
                                   targets = node_.integers(scores_ + "_ids", {});
        const std::vector<double> weights = reals(node_, scores_ + "_weights");
        check_count(scores_ + "_nodeids", numbers.size(), trees.size());
        check_count(scores_ + "_ids", targets.size(), trees.size());
        check_count(scores_ + "_weights", weights.size(), trees.size());
        for (size_t i = 0; i < trees.size(); ++i) {
            TreeEnsemble::Node& leaf = ensemble_.nodes[place(scores_ + "_nodeids", {trees[i], numbers[i]})];
            if (!leaf.branch) leaf.scores.push_back({targets[i], weights[i]});
        }
    }

    const Node& node_;
    const std::string scores_;
    TreeEnsemble ensemble_;
    std::vector<Id> ids_;
    std::map<Id, size_t> places_;
    std::set<int64_t> known_trees_;
};

/// Reads TreeEnsemble (5): a list of branches and a list of leaves, each with one score.
class BranchListReader {
public:
    explicit BranchListReader(const Node& node) : node_(node), branches_(node.integers("nodes_featureids").size()) {}

    TreeEnsemble read() {
        read_branches();
        read_leaves();
        link("nodes_truenodeids", "nodes_trueleafs", &TreeEnsemble::Branch::if_true);
        link("nodes_falsenodeids", "nodes_falseleafs", &TreeEnsemble::Branch::if_false);
        for (const int64_t root : node_.integers("tree_roots"))
            ensemble_.roots.push_back(checked_index("tree_roots", root, branches_));
        if (ensemble_.roots.empty()) throw CompileError("tree_roots is empty, expected a tree");
        ensemble_.targets = node_.integer("n_targets", 1);
        ensemble_.aggregate =
            enumerator("aggregate_function", node_.integer("aggregate_function", 1), TreeEnsemble::Aggregate::max);
        ensemble_.post_transform =
            enumerator("post_transform", node_.integer("post_transform", 0), TreeEnsemble::PostTransform::probit);
        return std::move(ensemble_);
    }

private:
    std::vector<int64_t> integers(const std::string& attribute) const {
        std::vector<int64_t> values = node_.integers(attribute);
        check_count(attribute, values.size(), branches_);
        return values;
    }

    void read_branches() {
        const std::vector<int64_t> modes = node_.tensor("nodes_modes").integers(),
                                   features = integers("nodes_featureids"),
                                   missing = node_.integers("nodes_missing_value_tracks_true", {});
        const std::vector<double> splits = node_.tensor("nodes_splits").reals();
        check_count("nodes_modes", modes.size(), branches_);
        check_count("nodes_splits", splits.size(), branches_);
        if (!missing.empty()) check_count("nodes_missing_value_tracks_true", missing.size(), branches_);
        std::vector<double> members;
        if (node_.has("membership_values")) members = node_.tensor("membership_values").reals();
        std::span<const double> left = members;
        for (size_t i = 0; i < branches_; ++i) {
            TreeEnsemble::Branch branch;
            branch.test = enumerator("nodes_modes", modes[i], Test::member);
            branch.feature = features[i];
            branch.split = splits[i];
            branch.missing_tracks_true = !missing.empty() && missing[i] != 0;
            if (branch.test == Test::member) branch.members = take_members(left);
            ensemble_.nodes.push_back({std::move(branch), {}});
        }
    }

    /// Members up to the next NaN, which ends a set.
    static std::vector<double> take_members(std::span<const double>& left) {
        const auto end = std::find_if(left.begin(), left.end(), [](double number) { return std::isnan(number); });
        if (end == left.end()) throw CompileError("membership_values has too few sets, expected one per BRANCH_MEMBER");
        std::vector<double> members(left.begin(), end);
        left = left.subspan(members.size() + 1);
        return members;
    }

    void read_leaves() {
        const std::vector<int64_t> targets = node_.integers("leaf_targetids");
        const std::vector<double> weights = node_.tensor("leaf_weights").reals();
        check_count("leaf_weights", weights.size(), targets.size());
        for (size_t i = 0; i < targets.size(); ++i) ensemble_.nodes.push_back({{}, {{targets[i], weights[i]}}});
    }

    void link(const std::string& ids, const std::string& are_leaves, size_t TreeEnsemble::Branch::*child) {
        const std::vector<int64_t> numbers = integers(ids), leaves = integers(are_leaves);
        const size_t all_leaves = ensemble_.nodes.size() - branches_;
        for (size_t i = 0; i < branches_; ++i) {
            const size_t number = checked_index(ids, numbers[i], leaves[i] ? all_leaves : branches_);
            (*ensemble_.nodes[i].branch).*child = leaves[i] ? branches_ + number : number;
        }
    }

    const Node& node_;
    const size_t branches_;
    TreeEnsemble ensemble_;
};

/// Keeps the first score of each leaf if there is a single target, as onnxruntime does, which settles what ONNX leaves
/// open. With several targets, it aggregates several scores for one target.
void keep_first_scores(TreeEnsemble& ensemble) {
    for (TreeEnsemble::Node& node : ensemble.nodes) {
        if (node.scores.size() > 1) node.scores.resize(1);
    }
}

/// If the only tree is a single leaf, starts it with a branch to that leaf and to a copy of it, as kernels walk
/// branches.
void plant(TreeEnsemble& ensemble) {
    if (ensemble.roots.size() != 1 || ensemble.nodes[ensemble.roots[0]].branch) return;
    TreeEnsemble::Branch branch;
    branch.if_true = ensemble.roots[0];
    branch.if_false = ensemble.nodes.size();
    ensemble.nodes.push_back(ensemble.nodes[ensemble.roots[0]]);
    ensemble.roots[0] = ensemble.nodes.size();
    ensemble.nodes.push_back({branch, {}});
}

void check_targets(const TreeEnsemble& ensemble) {
    // Kernels index elements with 32 bits.
    if (ensemble.targets < 1 || ensemble.targets > INT32_MAX)
        throw CompileError("there are {} targets, expected 1 to {}", ensemble.targets, INT32_MAX);
    for (const TreeEnsemble::Node& node : ensemble.nodes) {
        for (const TreeEnsemble::Score& score : node.scores) {
            if (score.target < 0 || score.target >= ensemble.targets)
                throw CompileError("a leaf has target {}, expected one in [0, {})", score.target, ensemble.targets);
        }
    }
    const auto found = static_cast<int64_t>(ensemble.base_values.size());
    // For two classes, exporters write one.
    const bool is_single = ensemble.is_classifier() && ensemble.targets == 2 && found == 1;
    if (found > 0 && found != ensemble.targets && !is_single)
        throw CompileError("base_values has {} values, expected {}", found, ensemble.targets);
}

}  // namespace

bool is_tree_ensemble(const Node& node) { return node.domain == ml_domain && node.op_type.starts_with("TreeEnsemble"); }

std::string name(TreeEnsemble::Aggregate aggregate) {
    return std::string(aggregate_names.at(static_cast<size_t>(aggregate)));
}

TreeEnsemble::Aggregate aggregate_of(const std::string& name) {
    return enumerator<TreeEnsemble::Aggregate>("aggregate_function", name, aggregate_names);
}

TreeEnsemble read_tree_ensemble(const Node& node, StringTable& strings) {
    TreeEnsemble ensemble;
    if (node.op_type == "TreeEnsemble") {
        ensemble = BranchListReader(node).read();
    } else if (node.op_type == "TreeEnsembleRegressor") {
        ensemble = NodeListReader(node, "target").read();
        ensemble.targets = node.integer("n_targets", 1);
    } else {
        ensemble = NodeListReader(node, "class").read();
        ensemble.labels = read_labels(node, strings);
        ensemble.targets = ensemble.labels->elements();
    }
    check_targets(ensemble);
    check_trees(ensemble);
    if (ensemble.targets == 1) keep_first_scores(ensemble);
    plant(ensemble);
    return ensemble;
}

}  // namespace onnx2halide
