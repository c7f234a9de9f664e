#pragma once

#include "ops/node_generator.h"
#include "ops/tree_tables.h"

namespace onnx2halide {

/// Walks rows down trees and adds up what their leaves score: the compiler's own operator (domain onnx2halide), which
/// ai.onnx.ml's tree ensembles become. Its inputs behind the rows are the constants of TreeTables.
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
    /// Whether a place has several scores, each with a target of its own.
    bool walks_scores() const { return has_input(score_rows) && targets_of_ == Targets::of_score; }

    std::string column(KernelSource& source, const std::string& column, const std::string& row) const;
    void define_leaf(KernelSource& source, const std::string& columns) const;
    void define_total(KernelSource& source) const;
    std::string total_at(const std::string& total, const std::string& row, const std::string& target) const;
    std::string result(KernelSource& source) const;
    int walks(const Target& target, const Dim& count) const;
    void schedule_scores(KernelSource& source, const std::string& stage, std::vector<std::string> directives,
                         std::vector<std::string> order) const;
    void schedule_leaves(KernelSource& source, const std::string& version, const std::string& walk,
                         const std::string& vector) const;
    void schedule_one_row(KernelSource& source, const std::string& version) const;
    void schedule_rows(KernelSource& source) const;
    void schedule_total(KernelSource& source, const std::string& place) const;

    const int64_t target_count_, depth_;
    const TreeEnsemble::Aggregate aggregate_;
    const Targets targets_of_;
};

}  // namespace onnx2halide
