#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ops/ml/tree_ensemble.h"

namespace onnx2halide {

/// An ensemble as the tables that its kernel walks. Every test becomes `column(feature) < threshold`: the columns of a
/// row are its features, possibly negated, with NaN, which fails every test, kept or replaced by -infinity, which
/// passes. Each node of a tree has a threshold, the number of a column, and the index of its children, which are
/// adjacent: the first is for rows that fail, the second for rows that pass. A leaf is its own first child, and all
/// rows fail there. The nodes of a tree are stored level by level; trees share none.
struct TreeTables {
    struct Column {
        int64_t feature = 0;
        bool is_negated = false, missing_passes = false;
        auto operator<=>(const Column&) const = default;
    };

    std::vector<Column> columns;
    // For each node.
    std::vector<int32_t> features, children;
    std::vector<double> thresholds;
    // For each tree: the index of its root, its first node, and the number of tests on the longest path to a leaf.
    std::vector<int32_t> roots, depths;
    // The nodes from the bottom up, tree by tree, and how many of each kind a tree has: leaves whose sibling is a test;
    // tests of two leaves; other tests, each after its children. The leaves of tests of two leaves come last,
    // uncounted.
    std::vector<int32_t> upwards, leaf_counts, low_counts, test_counts;

    // The scores of leaves. Each leaf has `width` scores, padded with neutral ones. If the width is 1 they are indexed
    // by node, else by the row of scores that a node refers to.
    int64_t width = 1;
    std::vector<int32_t> rows;  // for each node; empty if the width is 1
    std::vector<double> weights;
    // The targets of scores: a single one, one per tree, all of them in order in each row of scores, or one for each
    // score.
    enum class Targets { single, of_tree, all, of_score };
    Targets targets_of = Targets::single;
    std::vector<int32_t> targets;  // of each tree, or of each score
};

/// Their names in WalkTrees' attributes: single, of_tree, all or of_score. The inverse throws CompileError for others.
std::string name(TreeTables::Targets targets);
TreeTables::Targets targets_of(const std::string& name);

/// `is_double` is whether the kernel compares doubles, `has_nan` whether an element can be NaN. Throws CompileError if
/// the tables exceed what kernels can index.
TreeTables make_tree_tables(const TreeEnsemble& ensemble, bool is_double, bool has_nan);

}  // namespace onnx2halide
