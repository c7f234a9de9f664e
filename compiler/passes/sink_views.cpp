#include <optional>
#include <set>

#include "compiler/infer/add_node.h"
#include "compiler/passes/match.h"
#include "compiler/passes/passes.h"
#include "ops/movement/reshape_node.h"
#include "ops/product/matrix_product.h"

namespace onnx2halide {

namespace {

class ViewSinker {
public:
    explicit ViewSinker(Graph& graph) : graph_(graph) {}

    void sink() {
        for (Node* node : graph_.snapshot()) visit(*node);
    }

private:
    void visit(Node& node) {
        const auto generator = make_generator(node);
        if (node.outputs.size() != 1 || !node.outputs[0]) return;
        if (dynamic_cast<const MatrixProduct*>(generator.get())) products_.insert(node.outputs[0]);
        if (dynamic_cast<const ReshapeNode*>(generator.get())) return undo_view(node);
        if (!generator->is_pointwise() || generator->has_own_axis()) return;
        for (size_t i = 0; i < node.inputs.size(); ++i) {
            Value* input = node.inputs[i];
            if (!input || input->checked_type().shape != node.outputs[0]->checked_type().shape) continue;
            if (products_.contains(input) && sole_producer(graph_, input)) products_.insert(node.outputs[0]);
            Value* product = viewed_product(*input);
            if (product && take_over(node, *generator, i, *product)) return;
        }
    }

    /// The product's result that a value is a view of, if both have the same columns and no other readers; else null.
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

    /// Makes readers of a view of a view read the product itself, if they see it in its own shape.
    void undo_view(const Node& node) {
        const Value* input = node.inputs[0];
        const Node* first = input->producer;
        if (!first || first->op_type != "View" || first->domain.empty() || !products_.contains(first->inputs[0]))
            return;
        Value* product = first->inputs[0];
        if (product->checked_type() == node.outputs[0]->checked_type() && !graph_.is_output(node.outputs[0]))
            graph_.replace_uses(node.outputs[0], product);
    }

    /// Makes a node compute in the product's shape and its readers read a view of the result. Returns false if an
    /// operand has no corresponding shape.
    bool take_over(Node& node, const NodeGenerator& generator, size_t taken, Value& product) {
        Value* result = node.outputs[0];
        const TensorType before = result->checked_type();
        const std::vector<Dim>& shape = product.checked_type().shape;
        std::vector<std::vector<Dim>> shapes(node.inputs.size());
        for (size_t i = 0; i < node.inputs.size(); ++i) {
            if (!node.inputs[i]) continue;
            const auto own = shape_along(node.inputs[i]->checked_type(), generator.first_axis(i), before, shape);
            if (!own) return false;
            shapes[i] = *own;
        }
        for (size_t i = 0; i < node.inputs.size(); ++i) {
            if (Value* input = node.inputs[i])
                graph_.set_input(&node, i, i == taken ? &product : in_shape(input, shapes[i]));
        }
        result->type = TensorType(before.element, shape);
        products_.insert(result);
        add_after(graph_, node, view(nullptr, before), result->name + "_viewed");
        return true;
    }

    /// The shape that an operand needs for its node's result to get the shape `shape`. There is one if the operand has
    /// the result's shape, if it has one element per column, or if the two shapes differ in axes of extent 1 only.
    static std::optional<std::vector<Dim>> shape_along(const TensorType& operand, size_t first_axis,
                                                       const TensorType& result, const std::vector<Dim>& shape) {
        if (!operand.is_row_major()) return std::nullopt;
        if (operand.shape == result.shape) return shape;
        const std::vector<Dim>& own = operand.shape;
        if (first_axis + own.size() != result.rank()) return std::nullopt;
        if (is_of_columns(own)) return own.size() <= shape.size() ? own : std::vector<Dim>{own.back()};

        std::vector<Dim> along;
        size_t axis = 0;  // of the result
        const auto skip_ones = [&] {
            while (axis < result.rank() && result.shape[axis].is(1)) ++axis;
        };
        for (const Dim& extent : shape) {
            if (extent.is(1)) {
                along.push_back(1);
                continue;
            }
            skip_ones();
            if (axis == result.rank() || result.shape[axis] != extent) return std::nullopt;
            along.push_back(axis < first_axis ? Dim(1) : own[axis - first_axis]);
            ++axis;
        }
        skip_ones();
        return axis == result.rank() ? std::optional(along) : std::nullopt;
    }

    Value* in_shape(Value* operand, const std::vector<Dim>& shape) {
        const TensorType& type = operand->checked_type();
        if (type.shape == shape) return operand;
        return add_node(graph_, view(operand, TensorType(type.element, shape)), operand->name + "_viewed",
                        graph_.after(operand->producer));
    }

    Graph& graph_;
    std::set<const Value*> products_;  // results of products, and of pointwise nodes after them
};

}  // namespace

void sink_views(Graph& graph) {
    ViewSinker(graph).sink();
    prune(graph);
}

}  // namespace onnx2halide
