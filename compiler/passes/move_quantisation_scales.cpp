#include <algorithm>

#include "compiler/infer/add_node.h"
#include "compiler/infer/infer.h"
#include "compiler/passes/constants.h"
#include "compiler/passes/match.h"
#include "compiler/passes/passes.h"
#include "ops/quantised/quantise.h"

namespace onnx2halide {

namespace {

/// Whether the fold program can divide a value's elements.
bool is_divisible(const Value* value) {
    return is_compile_time_constant(value) && value->checked_type().element == ElementType::float32;
}

/// Moves the division by the scale of one QuantizeLinear.
class ScaleMover {
public:
    ScaleMover(Graph& graph, Node& quantise) : graph_(graph), quantise_(quantise), scale_(quantise.inputs[1]) {}

    void move() {
        if (!has_usual_scale() || !can_divide(quantise_.inputs[0])) return;
        Value* x = divided(quantise_.inputs[0]);
        const Constant one = make_constant(ElementType::float32, {}, std::vector<float>{1});
        graph_.set_input(&quantise_, 0, x);
        graph_.set_input(&quantise_, 1, add_constant(graph_, one, quantise_.name + "_scale"));
        infer_node(quantise_);  // so that the number is known
    }

private:
    Graph& graph_;
    Node& quantise_;
    Value* scale_;

    /// Whether integers have a single known scale, other than 1, by which no usual number overflows or underflows.
    bool has_usual_scale() const {
        constexpr double least = 0x1p-40, most = 0x1p40;
        const auto& scale = scale_->constant;
        if (!scale || scale->element != ElementType::float32 || scale->elements() != 1) return false;
        const double number = scale->reals()[0];
        return number != 1 && number >= least && number <= most && quantise_.integer("precision", 0) == 0 &&
               quantised_range(quantise_.outputs[0]->checked_type().element);
    }

    /// Whether a value that nothing else reads becomes its quotient if constants are divided.
    bool can_divide(const Value* value) const {
        const Node* node = sole_producer(graph_, value);
        if (!node || value->checked_type().element != ElementType::float32) return false;
        const std::vector<Value*>& inputs = node->inputs;
        if (is_operator(*node, "Mul")) return is_divisible(inputs[0]) || is_divisible(inputs[1]);
        if (is_operator(*node, "Relu")) return can_divide(inputs[0]);
        if (is_operator(*node, "Conv"))
            return is_divisible(inputs[1]) && (!node->has_input(2) || is_divisible(inputs[2]));
        if (is_operator(*node, "Add"))
            return std::ranges::all_of(inputs, [&](const Value* input) { return can_divide_term(input); });
        const bool has_bounds = is_operator(*node, "Clip") && node->attributes.empty();
        return has_bounds && can_divide(inputs[0]) &&
               std::all_of(inputs.begin() + 1, inputs.end(), [](const Value* x) { return !x || is_divisible(x); });
    }

    /// The same for a term of a sum. A dequantised number by itself stays: quantised with twice its scale, say, every
    /// second one would be a tie.
    bool can_divide_term(const Value* value) const {
        if (is_divisible(value) || can_divide(value)) return true;
        const Node* node = sole_producer(graph_, value);
        return node && is_operator(*node, "DequantizeLinear") &&
               value->checked_type().element == ElementType::float32 && is_divisible(node->inputs[1]);
    }

    /// The quotient of such a value, or of a constant.
    Value* divided(Value* value) {
        if (is_divisible(value))
            return add_node(graph_, {"Div", 14, {value, scale_}}, value->name + "_in_steps", &quantise_);
        const Node& node = *value->producer;
        NewNode quotient{node.op_type, node.version, node.inputs, node.attributes};
        for (const size_t i : divided_inputs(node)) {
            if (node.has_input(i)) quotient.inputs[i] = divided(node.inputs[i]);
        }
        Value* result = add_node(graph_, quotient, value->name + "_in_steps", &quantise_);
        result->producer->origin = node.label();
        return result;
    }

    static std::vector<size_t> divided_inputs(const Node& node) {
        if (node.op_type == "Mul") return {is_divisible(node.inputs[0]) ? size_t{0} : size_t{1}};
        if (node.op_type == "DequantizeLinear") return {1};
        if (node.op_type == "Conv") return {1, 2};
        if (node.op_type == "Relu") return {0};
        return node.op_type == "Add" ? std::vector<size_t>{0, 1} : std::vector<size_t>{0, 1, 2};
    }
};

}  // namespace

void move_quantisation_scales(Graph& graph) {
    std::vector<Node*> found;
    for (const auto& node : graph.nodes()) {
        if (is_operator(*node, "QuantizeLinear")) found.push_back(node.get());
    }
    for (Node* quantise : found) ScaleMover(graph, *quantise).move();
    prune(graph);
}

}  // namespace onnx2halide
