#include <algorithm>
#include <stdexcept>

#include "ops/elementwise/elementwise.h"
#include "ops/families.h"
#include "ops/ml/tree_ensemble.h"
#include "ops/ml/tree_walk.h"
#include "ops/replaced_node.h"

namespace onnx2halide {

namespace {

using enum ElementType;

/// A tree ensemble of the model. A pass turns it into WalkTrees and nodes after it (see expand_trees).
class TreeEnsembleNode : public ReplacedNode {
public:
    using ReplacedNode::ReplacedNode;

    /// A classifier's labels may be strings.
    bool takes_strings() const override { return true; }

    std::vector<TensorType> infer() const override {
        const TensorType& rows = in(0);
        const std::vector<ElementType> supported = {float16, float32, float64, int32, int64};
        if (std::find(supported.begin(), supported.end(), rows.element) == supported.end())
            throw CompileError("input 0 has type {}, expected float16, float32, float64, int32 or int64",
                               info(rows.element).name);
        if (rows.rank() != 2) throw CompileError("input 0 has rank {}, expected 2", rows.rank());
        StringTable strings;
        const TreeEnsemble ensemble = read_tree_ensemble(node_, strings);
        check_features(ensemble);
        const TensorType scores(node_.op_type == "TreeEnsemble" ? rows.element : float32,
                                {rows.shape[0], ensemble.targets});
        if (!ensemble.is_classifier()) return {scores};
        return {TensorType(ensemble.labels->element, {rows.shape[0]}), scores};
    }

private:
    void check_features(const TreeEnsemble& ensemble) const {
        const Dim& count = in(0).shape[1];
        for (const TreeEnsemble::Node& node : ensemble.nodes) {
            if (!node.branch ||
                (node.branch->feature >= 0 && prove_less_equal(count, node.branch->feature) != Proof::yes))
                continue;
            throw CompileError("a branch tests feature {}, expected one in [0, {})", node.branch->feature,
                               count.text());
        }
    }
};

/// The quantile of the standard normal distribution for a probability, a transform of scores.
class Probit : public Elementwise {
public:
    using Elementwise::Elementwise;

protected:
    Takes takes(size_t) const override { return Takes::floats; }
    bool is_expensive() const override { return true; }

    std::string expression(std::span<const std::string> operands) const override {
        return formula("onnx::probit({x})", operands, node_);
    }
};

}  // namespace

std::vector<Operator> tree_operators() {
    return {{"TreeEnsemble", 5, make<TreeEnsembleNode>, ml_domain},
            {"TreeEnsembleClassifier", 1, make<TreeEnsembleNode>, ml_domain},
            {"TreeEnsembleRegressor", 1, make<TreeEnsembleNode>, ml_domain},
            {"WalkTrees", 1, make<WalkTrees>, own_domain},
            {"Probit", 1, make<Probit>, own_domain}};
}

}  // namespace onnx2halide
