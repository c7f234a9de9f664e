#include <algorithm>
#include <array>

#include "compiler/infer/add_node.h"
#include "compiler/passes/match.h"
#include "compiler/passes/passes.h"

namespace onnx2halide {

namespace {

bool are_equal(const Value* a, const Value* b) {
    if (a == b) return true;
    if (!a || !b || !a->constant || !b->constant) return false;
    const Constant &first = *a->constant, &second = *b->constant;
    return first.element == second.element && first.shape == second.shape && *first.data == *second.data;
}

/// Whether a node quantises to or dequantises from 8-bit integers with a single, known, positive scale, which preserves
/// the order of numbers, and a known zero point, so that it can move to where its input is made. Not all nodes that
/// move or compare elements support narrower types.
bool keeps_order(const Node* node, std::string_view type) {
    if (!node || !is_operator(*node, type)) return false;
    const Value* integers = type == "QuantizeLinear" ? node->outputs[0] : node->inputs[0];
    const ElementType element = integers->checked_type().element;
    if (element != ElementType::uint8 && element != ElementType::int8) return false;
    const auto& scale = node->inputs[1]->constant;
    if (!scale || scale->elements() != 1 || !(scale->reals()[0] > 0)) return false;
    return !node->has_input(2) || (node->inputs[2]->is_constant() && node->inputs[2]->constant->elements() == 1);
}

/// Whether two of these nodes have the same integers, scale and zero point.
bool are_alike(const Node& a, const Value* integers_of_a, const Node& b, const Value* integers_of_b) {
    const Value *zero_of_a = a.has_input(2) ? a.inputs[2] : nullptr,
                *zero_of_b = b.has_input(2) ? b.inputs[2] : nullptr;
    return are_equal(a.inputs[1], b.inputs[1]) && are_equal(zero_of_a, zero_of_b) &&
           integers_of_a->checked_type().element == integers_of_b->checked_type().element;
}

/// The number of leading inputs whose elements a node only moves or picks the largest of, so that their scale is also
/// that of its result; 0 for any other node.
size_t moved_inputs(const Node& node) {
    constexpr std::array<std::string_view, 9> movements = {
        "Transpose", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Slice", "Identity", "DepthToSpace", "SpaceToDepth"};
    if (is_operator(node, "Concat")) return node.inputs.size();
    if (is_operator(node, "MaxPool")) return node.has_output(1) ? 0 : 1;
    return std::any_of(movements.begin(), movements.end(), [&](auto type) { return is_operator(node, type); }) ? 1 : 0;
}

class Mover {
public:
    explicit Mover(Graph& graph) : graph_(graph) {}

    void move() {
        for (Node* node : nodes("QuantizeLinear")) quantise_earlier(node);
        for (Node* node : nodes("")) dequantise_later(*node);
        for (Node* node : nodes("QuantizeLinear")) cancel(*node);
    }

private:
    Graph& graph_;

    /// The nodes of an operator, or all if `type` is empty, at this moment.
    std::vector<Node*> nodes(std::string_view type) const {
        std::vector<Node*> found;
        for (const auto& node : graph_.nodes()) {
            if (type.empty() || is_operator(*node, type)) found.push_back(node.get());
        }
        return found;
    }

    /// Swaps a QuantizeLinear with the node before it, if that only moves elements and has no other readers.
    void quantise_earlier(Node* quantise) {
        if (!keeps_order(quantise, "QuantizeLinear")) return;
        if (!sole_producer(graph_, quantise->inputs[0])) return;
        Node* movement = quantise->inputs[0]->producer;
        const size_t count = moved_inputs(*movement);
        if (count == 0) return;
        std::vector<Node*> earlier;
        for (size_t i = 0; i < count; ++i) {
            NewNode node{quantise->op_type, quantise->version, quantise->inputs, quantise->attributes};
            node.inputs[0] = movement->inputs[i];
            Value* integers = add_node(graph_, node, movement->inputs[i]->name + "_quantised", movement);
            earlier.push_back(integers->producer);
        }
        Node moved = *movement;
        for (size_t i = 0; i < count; ++i) moved.inputs[i] = earlier[i]->outputs[0];
        moved.origin = movement->label();
        moved.outputs = quantise->outputs;
        graph_.add(std::move(moved), quantise);
        graph_.remove(quantise);
        graph_.remove(movement);
        for (Node* node : earlier) quantise_earlier(node);
    }

    /// Swaps a node that only moves elements with the DequantizeLinear nodes before it, which become one after it.
    void dequantise_later(Node& movement) {
        const size_t count = moved_inputs(movement);
        if (count == 0) return;
        const Node* first = movement.inputs[0]->producer;
        NewNode integers{movement.op_type, movement.version, movement.inputs, movement.attributes};
        for (size_t i = 0; i < count; ++i) {
            const Node* dequantise = movement.inputs[i] ? movement.inputs[i]->producer : nullptr;
            if (!keeps_order(dequantise, "DequantizeLinear") ||
                !are_alike(*dequantise, dequantise->inputs[0], *first, first->inputs[0]))
                return;
            integers.inputs[i] = dequantise->inputs[0];
        }
        Node later = *first;
        later.origin = first->label();
        later.inputs[0] = add_node(graph_, integers, movement.outputs[0]->name + "_integers", &movement);
        later.outputs = movement.outputs;
        graph_.add(std::move(later), &movement);
        graph_.remove(&movement);
    }

    /// Replaces the result of a QuantizeLinear of dequantised integers by these integers.
    void cancel(Node& quantise) {
        const Node* dequantise = quantise.inputs[0]->producer;
        if (!keeps_order(&quantise, "QuantizeLinear") || !keeps_order(dequantise, "DequantizeLinear")) return;
        if (!are_alike(quantise, quantise.outputs[0], *dequantise, dequantise->inputs[0])) return;
        if (quantise.inputs[0]->checked_type().element != ElementType::float32) return;
        graph_.replace_uses(quantise.outputs[0], dequantise->inputs[0]);
    }
};

}  // namespace

void move_quantisation(Graph& graph) {
    Mover(graph).move();
    prune(graph);
}

}  // namespace onnx2halide
