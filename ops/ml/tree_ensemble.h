#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compiler/graph/graph.h"

namespace onnx2halide {

/// The attributes of ai.onnx.ml's TreeEnsemble, TreeEnsembleClassifier and TreeEnsembleRegressor in one form. A model's
/// trees are data: kernels read them as constant tensors (see TreeTables).
struct TreeEnsemble {
    enum class Test { at_most, below, at_least, above, equal, unequal, member };
    enum class Aggregate { average, sum, min, max };
    enum class PostTransform { none, softmax, logistic, softmax_zero, probit };

    /// A test of one feature. Rows that pass continue at `if_true`.
    struct Branch {
        Test test = Test::at_most;
        int64_t feature = 0;
        double split = 0;
        std::vector<double> members;       // of Test::member
        bool missing_tracks_true = false;  // NaN passes
        size_t if_true = 0, if_false = 0;  // in `nodes`
    };
    /// What a leaf adds to one target.
    struct Score {
        int64_t target = 0;
        double weight = 0;
    };
    /// A branch, or a leaf.
    struct Node {
        std::optional<Branch> branch;
        std::vector<Score> scores;
    };

    std::vector<Node> nodes;
    std::vector<size_t> roots;  // in `nodes`, one per tree
    int64_t targets = 0;
    std::vector<double> base_values;  // empty, or one per target
    Aggregate aggregate = Aggregate::sum;
    PostTransform post_transform = PostTransform::none;
    std::optional<Constant> labels;  // of a classifier: integers or strings, one per target

    bool is_classifier() const { return labels.has_value(); }
};

/// Reads a node of one of these operators, and adds strings to the table. Throws CompileError if its attributes
/// contradict each other or refer to missing nodes, or if branches form a cycle or lead to a root.
TreeEnsemble read_tree_ensemble(const Node& node, StringTable& strings);

bool is_tree_ensemble(const Node& node);

/// ONNX's name of an aggregate function, such as AVERAGE, and the inverse. Throws CompileError for another name.
std::string name(TreeEnsemble::Aggregate aggregate);
TreeEnsemble::Aggregate aggregate_of(const std::string& name);

}  // namespace onnx2halide
