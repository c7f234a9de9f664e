#pragma once

#include "ops/node_generator.h"
#include "ops/tree_tables.h"

namespace onnx2halide {

/// Adds up what the leaves score at which rows end in trees: the compiler's own operator (domain onnx2halide), which
/// ai.onnx.ml's tree ensembles become. Its inputs behind the rows are the constants of TreeTables.
///
/// A row walks down a tree, from test to test, each of which tells what is read next. Where trees have few tests, the
/// rows of a vector take all of them instead: from the leaves up, each test has the score of one of its two children,
/// and every read but that of a feature is one for all rows.
class WalkTrees : public NodeGenerator {
public:
    /// The places of its inputs.
    enum Inputs : size_t {
        rows,
        column_features,  // omitted where columns are features
        column_factors,   // of each column, or of all: 1 or -1; omitted where all are 1
        column_missing,   // likewise: what NaN becomes; omitted where it stays
        features,
        thresholds,
        children,
        roots,
        depths,
        upwards,  // this and the counts: read where trees are evaluated from the leaves up
        leaf_counts,
        low_counts,
        test_counts,
        weights,
        score_rows,  // omitted where a place has one score
        targets,     // omitted where they follow from the place in a row of scores
        base_values,
        input_count,
    };

    explicit WalkTrees(const Node& node);
    std::vector<TensorType> infer() const override;
    void algorithm(KernelSource& source) const override;
    void schedule(KernelSource& source) const override;
    Dim flops() const override;

private:
    using Targets = TreeTables::Targets;

    ElementType element() const { return in(thresholds).element; }
    const Dim& row_count() const { return in(rows).shape.at(0); }
    const Dim& column_count() const;
    /// Whether a leaf says where its scores are, and not its one score.
    bool names_scores() const { return has_input(score_rows) || targets_of_ == Targets::of_score; }
    /// Whether a place has several scores, each with a target of its own.
    bool walks_scores() const { return has_input(score_rows) && targets_of_ == Targets::of_score; }

    /// Whether rows walk down trees, or these are evaluated from the leaves up, or a run tells by its number of rows.
    enum class Way { down, up, by_count };
    Way way(const Target& target) const;
    int64_t least_evaluated() const;

    /// An update of the values: its RDom, of whose turns there are so many in each tree.
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
    const int64_t leaves_, low_tests_, tests_;  // the most that a tree has, as TreeTables counts them
    const TreeEnsemble::Aggregate aggregate_;
    const Targets targets_of_;
};

}  // namespace onnx2halide
