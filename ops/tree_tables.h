#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ops/tree_ensemble.h"

namespace onnx2halide {

/// An ensemble as the tables that its kernel walks. Every test becomes `column(feature) < threshold`: the columns of a
/// row are its features as they are or negated, with NaN, which fails every test, or -infinity, which passes, in place
/// of NaN. A place of a tree has a threshold, the number of a column, and the place of its children, who are
/// neighbours: the first is for rows that fail, the second for those that pass. Leaves are their own first child, and
/// no row passes there. Places of a tree follow each other level by level, and no tree has a place of another.
struct TreeTables {
    struct Column {
        int64_t feature = 0;
        bool is_negated = false, missing_passes = false;
        auto operator<=>(const Column&) const = default;
    };

    std::vector<Column> columns;
    // Of each place.
    std::vector<int32_t> features, children;
    std::vector<double> thresholds;
    // Of each tree: the place of its root, which is its first, and the tests on the longest way to a leaf.
    std::vector<int32_t> roots, depths;
    // Its places from the bottom up, in the order of trees, and how many of each kind a tree has: leaves whose sibling
    // is a test, tests of two leaves, other tests, each behind its children; then the leaves that these tests know.
    std::vector<int32_t> upwards, leaf_counts, low_counts, test_counts;

    // What leaves score. Each has `width` scores, filled up with ones that change nothing. With a width of 1 they
    // belong to a place, else to a row of scores that a place names.
    int64_t width = 1;
    std::vector<int32_t> rows;  // of each place; empty where the width is 1
    std::vector<double> weights;
    // Whose targets they are: there is one, or one a tree, or a row of scores has all in order, or each score has its
    // own.
    enum class Targets { single, of_tree, all, of_score };
    Targets targets_of = Targets::single;
    std::vector<int32_t> targets;  // of each tree, or of each score
};

/// What WalkTrees calls them: single, of_tree, all or of_score. The reverse throws CompileError for another name.
std::string name(TreeTables::Targets targets);
TreeTables::Targets targets_of(const std::string& name);

/// `is_double` tells in what numbers the kernel compares, and `has_nan` whether an element can be NaN. Throws
/// CompileError where the tables exceed what kernels can count.
TreeTables make_tree_tables(const TreeEnsemble& ensemble, bool is_double, bool has_nan);

}  // namespace onnx2halide
