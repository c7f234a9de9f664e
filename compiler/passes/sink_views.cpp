#include <algorithm>
#include <set>

#include "compiler/passes/match.h"
#include "compiler/passes/new_node.h"
#include "compiler/passes/passes.h"
#include "ops/matrix_product.h"
#include "ops/reshape_node.h"

namespace onnx2halide {

namespace {

class ViewSinker {
public:
    explicit ViewSinker(Graph& graph) : graph_(graph) {}

    void sink() {
        std::vector<Node*> nodes;
        for (const auto& node : graph_.nodes()) nodes.push_back(node.get());
        for (Node* node : nodes) visit(*node);
    }

private:
    void visit(Node& node) {
        const auto generator = make_generator(node);
        if (node.outputs.size() != 1 || !node.outputs[0]) return;
        if (dynamic_cast<const MatrixProduct*>(generator.get())) products_.insert(node.outputs[0]);
        if (!generator->is_pointwise() || node.attributes.contains("axis")) return;
        for (size_t i = 0; i < node.inputs.size(); ++i) {
            Value* input = node.inputs[i];
            if (!input || input->checked_type().shape != node.outputs[0]->checked_type().shape) continue;
            if (products_.contains(input) && sole_producer(graph_, input)) products_.insert(node.outputs[0]);
            Value* product = viewed_product(*input);
            if (product && take_over(node, *generator, i, *product)) return;
        }
    }

    /// What a value is a view of, if that is a product's result, the two have the same columns and nobody else reads
    /// them.
    Value* viewed_product(const Value& value) const {
        const Node* reshape = sole_producer(graph_, &value);
        if (!reshape) return nullptr;
        const auto generator = make_generator(*reshape);
        if (!dynamic_cast<const ReshapeNode*>(generator.get()) || !generator->is_view()) return nullptr;
        Value* product = reshape->inputs[0];
        if (!products_.contains(product) || !sole_producer(graph_, product)) return nullptr;
        const TensorType &from = product->checked_type(), &to = value.checked_type();
        const bool has_same_columns = from.rank() > 0 && to.rank() > 0 && from.shape.back() == to.shape.back();
        return has_same_columns && from.is_row_major() && to.is_row_major() ? product : nullptr;
    }

    /// Lets a node compute in the product's shape, and its readers view the result. Returns false where an operand does
    /// not go along.
    bool take_over(Node& node, const NodeGenerator& generator, size_t taken, Value& product) {
        Value* result = node.outputs[0];
        const TensorType before = result->checked_type();
        for (size_t i = 0; i < node.inputs.size(); ++i) {
            if (node.inputs[i] && !goes_along(node.inputs[i]->checked_type(), generator.first_axis(i), before))
                return false;
        }
        const std::vector<Dim>& shape = product.checked_type().shape;
        for (size_t i = 0; i < node.inputs.size(); ++i) {
            if (Value* input = node.inputs[i])
                graph_.set_input(&node, i, i == taken ? &product : in_shape(input, before, shape));
        }
        result->type = TensorType(before.element, shape);
        products_.insert(result);
        add_behind(graph_, node, view(nullptr, before), result->name + "_viewed");
        return true;
    }

    /// Whether an operand has the result's elements, or one a column.
    static bool goes_along(const TensorType& operand, size_t first_axis, const TensorType& result) {
        if (!operand.is_row_major()) return false;
        if (operand.shape == result.shape) return true;
        const std::vector<Dim>& shape = operand.shape;
        return first_axis + shape.size() == result.rank() &&
               std::all_of(shape.begin(), shape.empty() ? shape.end() : shape.end() - 1,
                           [](const Dim& dim) { return dim.is(1); });
    }

    Value* in_shape(Value* operand, const TensorType& result, const std::vector<Dim>& shape) {
        const TensorType& type = operand->checked_type();
        const bool is_whole = type.shape == result.shape;
        if (!is_whole && type.rank() <= shape.size()) return operand;
        const TensorType wanted(type.element, is_whole ? shape : std::vector<Dim>{type.shape.back()});
        return add_node(graph_, view(operand, wanted), operand->name + "_viewed", graph_.after(operand->producer));
    }

    Graph& graph_;
    std::set<const Value*> products_;  // and what is computed of their elements one by one
};

}  // namespace

void sink_views(Graph& graph) {
    ViewSinker(graph).sink();
    prune(graph);
}

}  // namespace onnx2halide
