#pragma once

#include "ops/ml/tree_tables.h"
#include "ops/node_generator.h"

namespace onnx2halide {

/// Adds up the scores of the leaves that rows reach in all trees: the compiler's own operator for ai.onnx.ml's tree
/// ensembles. Its inputs after the rows are the constants of TreeTables.
///
/// A row walks down a tree, from test to test, each of which determines what is read next. If trees have few tests, a
/// vector of rows evaluates all of them instead: from the leaves up, each test takes the score of one of its children,
/// and every read except that of a feature is the same for all rows.
class WalkTrees : public NodeGenerator {
public:
    /// The indices of its inputs.
    enum Inputs : size_t {
        rows,
        column_features,  // omitted if columns are features
        column_factors,   // one per column, or one for all: 1 or -1; omitted if all are 1
        column_missing,   // likewise, what replaces NaN; omitted if it is kept
        features,
        thresholds,
        children,
        roots,
        depths,
        upwards,  // this and the counts: read only if trees are evaluated from the leaves up
        leaf_counts,
        low_counts,
        test_counts,
        weights,
        score_rows,  // omitted if a node has one score
        targets,     // omitted if they follow from the position in a row of scores
        base_values,
        input_count,
    };

    explicit WalkTrees(const Node& node);
    std::vector<TensorType> infer() const override;
    void algorithm(KernelSource& source) const override;
    void schedule(KernelSource& source) const override;
    Dim flops() const override;
    std::vector<Check> checks() const override;

private:
    using Targets = TreeTables::Targets;

    ElementType element() const { return in(thresholds).element; }
    const Dim& row_count() const { return in(rows).shape.at(0); }
    const Dim& column_count() const;
    /// Whether a leaf refers to its scores instead of having a single one.
    bool names_scores() const { return has_input(score_rows) || targets_of_ == Targets::of_score; }
    /// Whether a node has several scores, each with a target of its own.
    bool walks_scores() const { return has_input(score_rows) && targets_of_ == Targets::of_score; }

    /// Whether rows walk down the trees, trees are evaluated from the leaves up, or the number of rows decides at run
    /// time.
    enum class Way { down, up, by_count };
    Way way(const Target& target) const;
    int64_t least_evaluated() const;

    /// An update of the values: its RDom, and the input that counts its iterations in each tree.
    struct Stage {
        const char* role;
        Inputs counts;
        int64_t most;
    };
    std::vector<Stage> stages() const;

    std::string column(KernelSource& source, const std::string& column, const std::string& row) const;
    std::string passes(KernelSource& source, const std::string& row, const std::string& place) const;
    std::string score_of(KernelSource& source, const std::string& place) const;
    void define_leaf(KernelSource& source) const;
    void define_values(KernelSource& source) const;
    std::string ended(KernelSource& source, const std::string& row, const std::string& tree) const;
    void define_total(KernelSource& source) const;
    std::string total_at(const std::string& total, const std::string& row, const std::string& target) const;
    std::string result(KernelSource& source) const;
    int side_by_side(const Target& target, const Dim& count, int vectors) const;
    int walks(const Target& target) const;
    int64_t many_rows(const Target& target) const;
    int evaluated_at_once(const Target& target) const;
    std::string few_rows(KernelSource& source) const;
    void schedule_scores(KernelSource& source, const std::string& stage, std::vector<std::string> directives,
                         std::vector<std::string> order) const;
    void schedule_strips(KernelSource& source, const std::string& width) const;
    void schedule_leaves(KernelSource& source, const std::string& version, const std::string& walk,
                         const std::string& vector) const;
    void schedule_trees_at_once(KernelSource& source, const std::string& version) const;
    void schedule_rows_at_once(KernelSource& source) const;
    void schedule_values(KernelSource& source) const;
    void schedule_total(KernelSource& source, const std::string& place) const;

    const int64_t target_count_, depth_;
    const int64_t leaves_, low_tests_, tests_;  // the most of any tree, as TreeTables counts them
    const TreeEnsemble::Aggregate aggregate_;
    const Targets targets_of_;
};

}  // namespace onnx2halide
