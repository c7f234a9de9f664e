#include <algorithm>
#include <cmath>
#include <optional>

#include "compiler/infer/add_node.h"
#include "compiler/infer/infer.h"
#include "compiler/passes/constants.h"
#include "compiler/passes/match.h"
#include "compiler/passes/passes.h"
#include "ops/quantised/quantise.h"

namespace onnx2halide {

namespace {

/// Whether the fold program can divide a value's elements, none of which overflows.
bool is_divisible(const Value* value) {
    constexpr double most = 0x1p80;
    if (value->checked_type().element != ElementType::float32 || !is_compile_time_constant(value)) return false;
    if (!value->constant) return true;
    return std::ranges::all_of(value->constant->reals(), [](double number) { return std::abs(number) <= most; });
}

/// Whether a value is a sum of integers as floats.
bool is_real_sum(const Value* value) {
    const Node* node = value->producer;
    return node && is_operator(*node, "Cast") && node->inputs[0]->checked_type().element == ElementType::int32;
}

/// Moves the division by the scale of one QuantizeLinear.
class ScaleMover {
public:
    ScaleMover(Graph& graph, Node& quantise) : graph_(graph), quantise_(quantise) {}

    void move() {
        if (!has_usual_scale() || !can_divide(quantise_.inputs[0])) return;
        // A number without axes leaves the ranks of what it divides.
        scale_ = scalar(static_cast<float>(quantise_.inputs[1]->constant->reals()[0]), "_scale");
        graph_.set_input(&quantise_, 0, divided(quantise_.inputs[0]));
        graph_.set_input(&quantise_, 1, scalar(1, "_one"));
        infer_node(quantise_);  // so that the number is known
    }

private:
    Graph& graph_;
    Node& quantise_;
    Value* scale_ = nullptr;

    Value* scalar(float number, const std::string& role) {
        const Constant constant = make_constant(ElementType::float32, {}, std::vector<float>{number});
        return add_constant(graph_, constant, quantise_.name + role);
    }

    /// Whether integers have a single known scale, other than 1, that is neither very small nor very large.
    bool has_usual_scale() const {
        constexpr double least = 0x1p-40, most = 0x1p40;
        const auto& scale = quantise_.inputs[1]->constant;
        if (!scale || scale->element != ElementType::float32 || scale->elements() != 1) return false;
        const double number = scale->reals()[0];
        return number != 1 && number >= least && number <= most && quantise_.integer("precision", 0) == 0 &&
               quantised_range(quantise_.outputs[0]->checked_type().element);
    }

    /// The inputs of a node to divide so that its result becomes the quotient; nullopt if there are none.
    std::optional<std::vector<size_t>> inputs_to_divide(const Node& node) const {
        const std::vector<Value*>& inputs = node.inputs;
        const auto are_constant = [&](size_t first) {
            return std::all_of(inputs.begin() + first, inputs.end(), [](auto* x) { return !x || is_divisible(x); });
        };
        if (is_operator(node, "Mul")) {
            for (const size_t i : {0, 1}) {
                if (is_real_sum(inputs[i]) && is_divisible(inputs[1 - i])) return {{1 - i}};
            }
        }
        // Weights that several nodes share remain shared.
        if (is_operator(node, "Conv") && inputs[1]->consumers.size() == 1 && are_constant(1)) return {{1, 2}};
        if (is_operator(node, "Relu") && can_divide(inputs[0])) return {{0}};
        const bool has_bounds = is_operator(node, "Clip") && node.attributes.empty();
        if (has_bounds && can_divide(inputs[0]) && are_constant(1)) return {{0, 1, 2}};
        if (!is_operator(node, "Add")) return {};
        const bool first = can_divide(inputs[0]), second = can_divide(inputs[1]);
        const bool are_terms = (first && (second || is_term(inputs[1]))) || (second && is_term(inputs[0]));
        return are_terms ? std::optional<std::vector<size_t>>{{0, 1}} : std::nullopt;
    }

    /// Whether a value that nothing else reads becomes its quotient if constants are divided.
    bool can_divide(const Value* value) const {
        const Node* node = sole_producer(graph_, value);
        return node && value->checked_type().element == ElementType::float32 && inputs_to_divide(*node);
    }

    /// Whether a value that nothing else reads is dequantised with a constant scale.
    bool is_dequantised(const Value* value) const {
        const Node* node = sole_producer(graph_, value);
        return node && is_operator(*node, "DequantizeLinear") && is_divisible(node->inputs[1]) &&
               value->checked_type().element == ElementType::float32;
    }

    /// Whether a value can be added to such a one: a constant or a dequantised number. A sum of these alone stays:
    /// quantised with twice their scale, say, every second one would be a tie.
    bool is_term(const Value* value) const { return is_dequantised(value) || is_divisible(value); }

    /// The quotient of a value that can be divided, or of a term.
    Value* divided(Value* value) {
        const std::string name = value->name + "_in_steps";
        const bool has_scale = is_dequantised(value);
        if (!has_scale && is_divisible(value)) return add_node(graph_, {"Div", 14, {value, scale_}}, name, &quantise_);
        const Node& node = *value->producer;
        NewNode quotient{node.op_type, node.version, node.inputs, node.attributes};
        for (const size_t i : has_scale ? std::vector<size_t>{1} : *inputs_to_divide(node)) {
            if (node.has_input(i)) quotient.inputs[i] = divided(node.inputs[i]);
        }
        Value* result = add_node(graph_, quotient, name, &quantise_);
        result->producer->origin = node.label();
        return result;
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
