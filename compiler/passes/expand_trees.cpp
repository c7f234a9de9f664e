#include <algorithm>
#include <limits>
#include <set>

#include "compiler/passes/node_replacement.h"
#include "compiler/passes/passes.h"
#include "ops/ml/tree_ensemble.h"
#include "ops/ml/tree_tables.h"
#include "ops/ml/tree_walk.h"

namespace onnx2halide {

namespace {

using PostTransform = TreeEnsemble::PostTransform;

using Attributes = NodeReplacement::Attributes;

/// The shape of a table of `count` numbers in rows of `width`.
std::vector<int64_t> table_shape(size_t count, int64_t width) {
    if (width == 1) return {static_cast<int64_t>(count)};
    return {static_cast<int64_t>(count) / width, width};
}
Value* add_reals(NodeReplacement& replacement, const std::string& role, ElementType type,
                 const std::vector<double>& numbers, int64_t width = 1) {
    const std::vector<int64_t> shape = table_shape(numbers.size(), width);
    if (type == ElementType::float64) return replacement.add(role, type, shape, numbers);
    return replacement.add(role, type, shape, std::vector<float>(numbers.begin(), numbers.end()));
}
Value* add_integers(NodeReplacement& replacement, const std::string& role, std::vector<int64_t> shape,
                    const std::vector<int64_t>& numbers) {
    return replacement.add(role, ElementType::int64, std::move(shape), numbers);
}

/// The feature, factor and substitute for missing values of each column. A table that has no effect is empty, and one
/// whose elements are all the same has one element.
struct ColumnTables {
    std::vector<int32_t> features;
    std::vector<double> factors, missing;
};

ColumnTables column_tables(const std::vector<TreeTables::Column>& columns, int64_t feature_count) {
    ColumnTables tables;
    bool is_whole = static_cast<int64_t>(columns.size()) == feature_count;
    for (size_t i = 0; i < columns.size(); ++i) {
        const TreeTables::Column& column = columns[i];
        is_whole &= column.feature == static_cast<int64_t>(i);
        tables.features.push_back(static_cast<int32_t>(column.feature));
        tables.factors.push_back(column.is_negated ? -1 : 1);
        tables.missing.push_back(column.missing_passes ? -std::numeric_limits<double>::infinity()
                                                       : std::numeric_limits<double>::quiet_NaN());
    }
    const auto is_of_all = [&](bool TreeTables::Column::*property) {
        return std::all_of(columns.begin(), columns.end(), [&](const auto& column) { return column.*property; });
    };
    const auto is_of_none = [&](bool TreeTables::Column::*property) {
        return std::none_of(columns.begin(), columns.end(), [&](const auto& column) { return column.*property; });
    };
    if (is_whole) tables.features.clear();
    if (is_of_none(&TreeTables::Column::is_negated)) tables.factors.clear();
    if (is_of_none(&TreeTables::Column::missing_passes)) tables.missing.clear();
    if (is_of_all(&TreeTables::Column::is_negated)) tables.factors.resize(1);
    if (is_of_all(&TreeTables::Column::missing_passes)) tables.missing.resize(1);
    return tables;
}

/// Adds the WalkTrees that computes the ensemble's sums, before the post-transform.
Value* walk(NodeReplacement& replacement, Value* rows, const TreeEnsemble& ensemble) {
    const ElementType element = rows->checked_type().element;
    const bool is_double = element == ElementType::float64;
    const ElementType type = is_double ? ElementType::float64 : ElementType::float32;
    const TreeTables tables = make_tree_tables(ensemble, is_double, is_float(element));
    const ColumnTables columns = column_tables(tables.columns, rows->checked_type().shape[1].constant().value_or(-1));
    int64_t least_features = 1;
    for (const TreeTables::Column& column : tables.columns)
        least_features = std::max<int64_t>(least_features, column.feature + 1);

    std::vector<Value*> inputs(WalkTrees::input_count, nullptr);
    inputs[WalkTrees::rows] = rows;
    const auto integers = [&](WalkTrees::Inputs input, const std::vector<int32_t>& elements, const std::string& role,
                              int64_t width = 1) {
        if (!elements.empty())
            inputs[input] = replacement.add(role, ElementType::int32, table_shape(elements.size(), width), elements);
    };
    const auto reals = [&](WalkTrees::Inputs input, const std::vector<double>& elements, const std::string& role,
                           int64_t width = 1) {
        if (!elements.empty()) inputs[input] = add_reals(replacement, role, type, elements, width);
    };
    integers(WalkTrees::column_features, columns.features, "column_features");
    reals(WalkTrees::column_factors, columns.factors, "column_factors");
    reals(WalkTrees::column_missing, columns.missing, "column_missing");
    integers(WalkTrees::features, tables.features, "features");
    reals(WalkTrees::thresholds, tables.thresholds, "thresholds");
    integers(WalkTrees::children, tables.children, "children");
    integers(WalkTrees::roots, tables.roots, "roots");
    integers(WalkTrees::depths, tables.depths, "depths");
    integers(WalkTrees::upwards, tables.upwards, "upwards");
    integers(WalkTrees::leaf_counts, tables.leaf_counts, "leaf_counts");
    integers(WalkTrees::low_counts, tables.low_counts, "low_counts");
    integers(WalkTrees::test_counts, tables.test_counts, "test_counts");
    reals(WalkTrees::weights, tables.weights, "weights", tables.width);
    integers(WalkTrees::score_rows, tables.rows, "score_rows");
    integers(WalkTrees::targets, tables.targets, "targets",
             tables.targets_of == TreeTables::Targets::of_score ? tables.width : 1);
    reals(WalkTrees::base_values, ensemble.base_values, "base_values");
    const auto most = [](const std::vector<int32_t>& of_trees) {
        return int64_t{*std::max_element(of_trees.begin(), of_trees.end())};
    };
    return replacement.add("WalkTrees", 1, inputs,
                           {{"targets", ensemble.targets},
                            {"least_features", least_features},
                            {"depth", most(tables.depths)},
                            {"leaves", most(tables.leaf_counts)},
                            {"low_tests", most(tables.low_counts)},
                            {"tests", most(tables.test_counts)},
                            {"aggregate_function", name(ensemble.aggregate)},
                            {"targets_of", name(tables.targets_of)}},
                           own_domain);
}

/// SOFTMAX_ZERO: a softmax over the scores that are not 0; those that are stay 0.
Value* softmax_of_nonzero(NodeReplacement& replacement, Value* scores) {
    const ElementType type = scores->checked_type().element;
    const Attributes row = {{"axes", std::vector<int64_t>{1}}, {"keepdims", int64_t{1}}};
    Value* largest = replacement.add("ReduceMax", 13, {scores}, row);
    Value* power = replacement.add("Exp", 13, {replacement.add("Sub", 14, {scores, largest})});
    Value* is_zero = replacement.add(
        "LessOrEqual", 16, {replacement.add("Abs", 13, {scores}), add_reals(replacement, "zero", type, {1e-7})});
    Value* nonzero = replacement.add("Where", 16, {is_zero, add_reals(replacement, "nothing", type, {0}), power});
    Value* sum = replacement.add("ReduceSum", 11, {nonzero}, row);
    Value* scale = replacement.add("Exp", 13, {replacement.add("Neg", 13, {largest})});
    Value* numerator = replacement.add("Where", 16, {is_zero, replacement.add("Mul", 14, {scores, scale}), power});
    return replacement.add("Div", 14, {numerator, sum});
}

Value* transformed(NodeReplacement& replacement, Value* scores, PostTransform transform) {
    switch (transform) {
    case PostTransform::softmax: return replacement.add("Softmax", 13, {scores}, {{"axis", int64_t{1}}});
    case PostTransform::logistic: return replacement.add("Sigmoid", 13, {scores});
    case PostTransform::softmax_zero: return softmax_of_nonzero(replacement, scores);
    case PostTransform::probit: return replacement.add("Probit", 1, {scores}, {}, own_domain);
    case PostTransform::none: break;
    }
    return scores;
}

/// The post-transform that applies. ONNX leaves it open for a single target; onnxruntime then applies PROBIT only.
PostTransform transform_of_targets(const TreeEnsemble& ensemble) {
    return ensemble.targets > 1 || ensemble.post_transform == PostTransform::probit ? ensemble.post_transform
                                                                                    : PostTransform::none;
}

/// Labels and scores of a classifier. ONNX leaves many cases open; these are onnxruntime's rules.
class Classification {
public:
    Classification(NodeReplacement& replacement, TreeEnsemble ensemble, Value* rows)
        : expansion_(replacement), ensemble_(std::move(ensemble)), labels_(ensemble_.labels->integers()), rows_(rows) {
        for (const TreeEnsemble::Node& node : ensemble_.nodes) {
            for (const TreeEnsemble::Score& score : node.scores) {
                scored_.insert(score.target);
                all_positive_ &= score.weight >= 0;
            }
        }
    }

    struct Results {
        Value *label, *scores;
    };

    Results add() {
        if (ensemble_.targets == 2) return add_two_classes();
        Value* sums = walk(expansion_, rows_, ensemble_);
        if (ensemble_.targets == 1) return {sign_label(sums), transformed(sums)};
        return {best_label(sums), transformed(sums)};
    }

private:
    Results add_two_classes() {
        std::vector<double>& base = ensemble_.base_values;
        const bool has_first = scored_.contains(0), has_second = scored_.contains(1);
        if (has_first && has_second && base.size() == 2) {
            // The sum for the first class becomes the second's score, and its negative the first's.
            Value* sum = walk_first(base[1]);
            return {two_labels(sum), transformed(pair(sum, false))};
        }
        if (!has_second && base.size() < 2) {
            Value* sum = walk_first(base.empty() ? 0 : base[0]);
            return {two_labels(sum), single_scores(sum)};
        }
        if (!has_first && base.size() == 2) drop_scores();
        const bool adds_second = !has_first && base.size() == 2;
        base = {has_first && !base.empty() ? base[0] : 0, adds_second ? base[1] : 0};
        Value* sums = walk(expansion_, rows_, ensemble_);
        Value* decisive = add_integers(expansion_, "decisive", {}, {has_second ? 1 : 0});
        return {two_labels(expansion_.add("Gather", 13, {sums, decisive}, {{"axis", int64_t{1}}})), transformed(sums)};
    }

    void drop_scores() {
        for (TreeEnsemble::Node& node : ensemble_.nodes) node.scores.clear();
    }

    /// Adds a WalkTrees that computes the sum of the first class only, with a base value.
    Value* walk_first(double base) {
        TreeEnsemble first = ensemble_;
        first.targets = 1;
        first.base_values = {base};
        for (TreeEnsemble::Node& node : first.nodes)
            std::erase_if(node.scores, [](const TreeEnsemble::Score& score) { return score.target != 0; });
        return walk(expansion_, rows_, first);
    }

    /// {-sum, sum} or, if the sum is a probability, {1 - sum, sum}.
    Value* pair(Value* sum, bool is_probability) {
        const ElementType type = sum->checked_type().element;
        Value* both = expansion_.add("Mul", 14, {sum, add_reals(expansion_, "signs", type, {-1, 1})});
        if (!is_probability) return both;
        return expansion_.add("Add", 14, {both, add_reals(expansion_, "complement", type, {1, 0})});
    }

    Value* single_scores(Value* sum) {
        switch (ensemble_.post_transform) {
        case PostTransform::logistic: return transformed(pair(sum, false));
        case PostTransform::probit: return transformed(pair(sum, true));
        default: return pair(sum, all_positive_);
        }
    }

    /// The first label with the largest sum. Classes without scores are left out if there are no base values.
    Value* best_label(Value* sums) {
        std::vector<int64_t> labels = labels_;
        if (ensemble_.base_values.empty() && !scored_.empty() && scored_.size() < labels.size()) {
            const std::vector<int64_t> places(scored_.begin(), scored_.end());
            Value* scored = add_integers(expansion_, "scored", {static_cast<int64_t>(places.size())}, places);
            sums = expansion_.add("Gather", 13, {sums, scored}, {{"axis", int64_t{1}}});
            labels.clear();
            for (const int64_t place : places) labels.push_back(labels_[place]);
        }
        Value* best = expansion_.add("ArgMax", 13, {sums}, {{"axis", int64_t{1}}, {"keepdims", int64_t{0}}});
        Value* table = add_labels("labels", labels);
        return expansion_.add("Gather", 13, {table, best}, {{"axis", int64_t{0}}});
    }

    /// If leaves score one class only, a sum above 0 or, if it is a probability, above a half means the second label.
    Value* two_labels(Value* sum) {
        if (scored_.size() != 1) return sign_label(sum);
        return label(sum, all_positive_ ? 0.5 : 0, labels_[1], labels_[0]);
    }
    /// For integer labels the result is 1 or 0, whatever the labels are. For strings it is the last or the first label.
    /// If there is only one, onnxruntime reads out of bounds for a sum above 0; here all rows get that label.
    Value* sign_label(Value* sum) {
        if (ensemble_.labels->element == ElementType::int64) return label(sum, 0, 1, 0);
        return label(sum, 0, labels_.back(), labels_.front());
    }

    Value* label(Value* sum, double bound, int64_t above, int64_t otherwise) {
        const auto constant = [&](int64_t number) { return add_labels("label", {number}); };
        Value* column = sum;
        if (sum->checked_type().rank() == 2)
            column = expansion_.add("Reshape", 14, {sum, add_integers(expansion_, "column", {1}, {-1})});
        Value* is_above = expansion_.add(
            "Greater", 13, {column, add_reals(expansion_, "bound", sum->checked_type().element, {bound})});
        return expansion_.add("Where", 16, {is_above, constant(above), constant(otherwise)});
    }

    Value* add_labels(const std::string& role, const std::vector<int64_t>& labels) {
        return expansion_.add(role, ensemble_.labels->element, {static_cast<int64_t>(labels.size())}, labels);
    }

    Value* transformed(Value* scores) {
        return onnx2halide::transformed(expansion_, scores, transform_of_targets(ensemble_));
    }

    NodeReplacement& expansion_;
    TreeEnsemble ensemble_;
    const std::vector<int64_t> labels_;  // for strings, their numbers in the graph's table
    Value* const rows_;
    std::set<int64_t> scored_;
    bool all_positive_ = true;
};

void expand(Graph& graph, const Node& node) {
    const TreeEnsemble ensemble = read_tree_ensemble(node, *graph.strings);
    NodeReplacement replacement(graph, node);
    Value* rows = node.inputs.at(0);
    if (ensemble.is_classifier()) {
        const auto [label, scores] = Classification(replacement, ensemble, rows).add();
        if (node.has_output(0)) replacement.replace(node.outputs[0], label);
        if (node.has_output(1)) replacement.replace(node.outputs[1], scores);
    } else {
        Value* sums = walk(replacement, rows, ensemble);
        replacement.replace(node.outputs.at(0), transformed(replacement, sums, transform_of_targets(ensemble)));
    }
}

}  // namespace

void expand_trees(Graph& graph) {
    std::vector<Node*> ensembles;
    for (const auto& node : graph.nodes()) {
        if (is_tree_ensemble(*node)) ensembles.push_back(node.get());
    }
    for (Node* node : ensembles) {
        expand(graph, *node);
        graph.remove(node);
    }
}

}  // namespace onnx2halide
