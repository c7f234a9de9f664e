#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "compiler/infer/add_node.h"
#include "compiler/passes/constants.h"
#include "compiler/passes/match.h"
#include "compiler/passes/passes.h"

namespace onnx2halide {

namespace {

/// Whether this is an inference-mode BatchNormalization whose parameters are constant and of the images' type.
bool is_fixed(const Node& node) {
    if (!is_operator(node, "BatchNormalization") || node.integer("training_mode", 0) != 0 || node.outputs.size() != 1)
        return false;
    const TensorType& images = node.inputs[0]->checked_type();
    return images.rank() > 1 && std::all_of(node.inputs.begin() + 1, node.inputs.end(), [&](const Value* parameter) {
               const TensorType& type = parameter->checked_type();
               return type.rank() == 1 && type.element == images.element && is_compile_time_constant(parameter);
           });
}

/// The axis of a convolution's weights that counts output channels. Returns nullopt if weights or bias are not
/// constant, or if there is no such axis, as in a ConvTranspose with several groups.
std::optional<size_t> weights_channels(const Node& node) {
    const bool is_transposed = is_operator(node, "ConvTranspose") && node.integer("group", 1) == 1;
    if (!is_operator(node, "Conv") && !is_transposed) return {};
    if (!has_constant_weights(node)) return {};
    return is_transposed ? 1 : 0;
}

/// Whether the reciprocals of a divisor's elements are known to be finite.
bool has_reciprocals(const Value* divisor) {
    constexpr double least = 1e-30;
    if (!divisor->constant) return false;
    const std::vector<double> numbers = divisor->constant->reals();
    return std::ranges::all_of(numbers, [](double number) { return std::abs(number) >= least; });
}

/// Combines a chain of nodes that scale and shift the channels of a value x by constants into x · factor + offset. The
/// fold program computes factor and offset.
class ChannelScale {
public:
    ChannelScale(Graph& graph, Value* x, Value* offset) : graph_(graph), x_(x), result_(x), offset_(offset) {}

    /// Absorbs readers of the result as long as there is a single one that scales or shifts channels. Returns whether
    /// there was any.
    bool take_readers() {
        while (result_->consumers.size() == 1 && !graph_.is_output(result_) && take(*result_->consumers[0])) {
        }
        return !nodes_.empty();
    }

    /// Absorbs a reader of the result, if it scales or shifts channels. Returns whether it does.
    bool take(Node& next) {
        if (is_fixed(next)) {
            take_normalization(next);
            return true;
        }
        const bool is_sum = is_operator(next, "Add") || is_operator(next, "Sub"),
                   is_inverse = is_operator(next, "Sub") || is_operator(next, "Div");
        if (!is_sum && !is_inverse && !is_operator(next, "Mul")) return false;
        Value* operand = next.inputs[next.inputs[0] == result_ ? 1 : 0];
        if (!is_per_channel(operand, x_->checked_type()) || (is_inverse && operand == next.inputs[0])) return false;
        // Scaled weights may overflow or underflow narrow floats although the scaled sums do not.
        if (!is_sum && is_narrow_float(x_->checked_type().element)) return false;
        if (is_operator(next, "Div") && !has_reciprocals(operand)) return false;
        start(next);
        Value* number = add("Reshape", 5, {operand, shape({-1})}, "number");
        if (is_sum) {
            shift(is_inverse ? add("Neg", 13, {number}, "number") : number);
        } else {
            scale(next.op_type, number);
        }
        return true;
    }

    /// Makes the convolution that computes x compute the result. `channels` is the axis of its weights that counts
    /// output channels.
    void multiply_into(Node& conv, size_t channels) {
        Node fused = conv;
        if (factor_) {
            std::vector<int64_t> along(conv.inputs[1]->checked_type().rank(), 1);
            along[channels] = -1;
            Value* factors = add("Reshape", 5, {factor_, shape(along)}, "factors");
            fused.inputs[1] = add("Mul", 14, {conv.inputs[1], factors}, "weights");
        }
        if (offset_) {
            const Dim& count = conv.inputs[1]->checked_type().shape[channels];
            const bool is_one_for_all = offset_->checked_type().shape[0] != count;
            fused.inputs.resize(2);
            fused.inputs.push_back(is_one_for_all ? add("Expand", 13, {offset_, shape({*count.constant()})}, "offsets")
                                                  : offset_);
        }
        replace(std::move(fused));
        graph_.remove(&conv);
    }

    /// Replaces the chain by one Mul and one Add.
    void write_out() {
        std::vector<int64_t> along(x_->checked_type().rank() - 1, 1);
        along[0] = -1;
        Value* column = shape(along);
        Node sum;
        sum.index = nodes_.back()->index;
        sum.name = name_;
        sum.op_type = "Add";
        sum.version = 14;
        sum.inputs = {add("Mul", 14, {x_, add("Reshape", 5, {factor_, column}, "factors")}, "scaled"),
                      add("Reshape", 5, {offset_, column}, "offsets")};
        replace(std::move(sum));
    }

private:
    void start(Node& next) {
        if (nodes_.empty()) name_ = next.name;
        nodes_.push_back(&next);
        result_ = next.outputs[0];
    }

    void take_normalization(Node& norm) {
        start(norm);
        Value *gain = norm.inputs[1], *bias = norm.inputs[2], *mean = norm.inputs[3], *variance = norm.inputs[4];
        Value* deviation = add("Sqrt", 13, {add("Add", 14, {variance, epsilon(norm)}, "variance")}, "deviation");
        Value* factor = add("Div", 14, {gain, deviation}, "factor");
        offset_ = offset_ ? add("Sub", 14, {offset_, mean}, "centred") : add("Neg", 13, {mean}, "centred");
        scale("Mul", factor);
        shift(bias);
    }

    /// Multiplies by `number` or divides by it, as the operator `type` does.
    void scale(const std::string& type, Value* number) {
        const bool is_first = !factor_ && type == "Mul";
        factor_ = is_first ? number : add(type, 14, {factor_ ? factor_ : one(), number}, "factor");
        if (offset_) offset_ = add(type, 14, {offset_, number}, "scaled");
    }

    void shift(Value* number) { offset_ = offset_ ? add("Add", 14, {offset_, number}, "offset") : number; }

    /// Adds a node after those that make the operands of all absorbed nodes.
    Value* add(const std::string& type, int version, std::vector<Value*> inputs, const char* role) {
        return add_node(graph_, {type, version, std::move(inputs)}, name_ + "_" + role, nodes_.back());
    }

    Value* epsilon(const Node& norm) { return number(norm.real("epsilon", 1e-5f), "epsilon"); }
    Value* one() { return number(1, "one"); }

    /// A constant in the element type of x.
    Value* number(float value, const char* role) {
        const ElementType element = x_->checked_type().element;
        Value* number = add_constant(graph_, make_constant(ElementType::float32, {}, std::vector<float>{value}),
                                     name_ + "_" + role);
        if (element == ElementType::float32) return number;
        return add_node(graph_, cast(number, element), name_ + "_" + role, nodes_.back());
    }

    Value* shape(const std::vector<int64_t>& extents) { return add_numbers(graph_, extents, name_ + "_shape"); }

    /// Replaces all absorbed nodes by one.
    void replace(Node node) {
        node.outputs = nodes_.back()->outputs;
        graph_.add(std::move(node), nodes_.back());
        for (auto taken = nodes_.rbegin(); taken != nodes_.rend(); ++taken) graph_.remove(*taken);
    }

    Graph& graph_;
    Value *x_, *result_;
    std::string name_;                   // of the first node absorbed
    std::vector<Node*> nodes_;           // those absorbed
    Value *factor_ = nullptr, *offset_;  // per channel, or one for all; null for 1 and 0
};

void fuse_into_weights(Graph& graph, Node& conv) {
    ChannelScale scale(graph, conv.outputs[0], conv.has_input(2) ? conv.inputs[2] : nullptr);
    if (scale.take_readers()) scale.multiply_into(conv, *weights_channels(conv));
}

void fuse_normalization(Graph& graph, Node& norm) {
    ChannelScale scale(graph, norm.inputs[0], nullptr);
    scale.take(norm);
    scale.take_readers();
    scale.write_out();
}

/// Whether a BatchNormalization can become a Mul and an Add. With narrow floats these would lose precision, as the node
/// itself computes in float32.
bool can_write_out(const std::unique_ptr<Node>& node) {
    return is_fixed(*node) && !is_narrow_float(node->inputs[0]->checked_type().element);
}

}  // namespace

void fuse_channel_scales(Graph& graph) {
    std::vector<Node*> convs;
    for (const auto& node : graph.nodes()) {
        if (weights_channels(*node)) convs.push_back(node.get());
    }
    for (Node* conv : convs) fuse_into_weights(graph, *conv);
    // One may absorb those that follow it.
    const auto find_normalization = [&] { return std::ranges::find_if(graph.nodes(), can_write_out); };
    for (auto found = find_normalization(); found != graph.nodes().end(); found = find_normalization())
        fuse_normalization(graph, **found);
}

}  // namespace onnx2halide
