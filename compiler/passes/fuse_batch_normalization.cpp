#include <algorithm>
#include <string>
#include <vector>

#include "compiler/passes/constants.h"
#include "compiler/passes/match.h"
#include "compiler/passes/new_node.h"
#include "compiler/passes/passes.h"

namespace onnx2halide {

namespace {

/// Whether this is an inference-mode BatchNormalization with a constant of each kind per channel, in the images' type.
bool is_fixed(const Node& node) {
    if (!is_operator(node, "BatchNormalization") || node.integer("training_mode", 0) != 0 || node.outputs.size() != 1)
        return false;
    const TensorType& images = node.inputs[0]->checked_type();
    return images.rank() > 1 && std::all_of(node.inputs.begin() + 1, node.inputs.end(), [&](const Value* parameter) {
               const TensorType& type = parameter->checked_type();
               return type.rank() == 1 && type.element == images.element && is_compile_time_constant(parameter);
           });
}

/// The Conv with constant weights that makes a value for one reader alone; null where there is none.
Node* conv_before(const Graph& graph, const Value* value) {
    if (!sole_producer(graph, value)) return nullptr;
    Node* conv = value->producer;
    if (!is_operator(*conv, "Conv") || !is_compile_time_constant(conv->inputs[1])) return nullptr;
    return conv->has_input(2) && !is_compile_time_constant(conv->inputs[2]) ? nullptr : conv;
}

/// Whether an operand is a constant for each channel of images, or one for all.
bool is_per_channel(const Value* operand, const TensorType& images) {
    const TensorType& type = operand->checked_type();
    if (!is_compile_time_constant(operand) || type.rank() > images.rank()) return false;
    for (size_t i = 0; i < type.rank(); ++i) {
        const size_t axis = images.rank() - type.rank() + i;
        if (!type.shape[i].is(1) && (axis != 1 || type.shape[i] != images.shape[1])) return false;
    }
    return true;
}

/// What a BatchNormalization does to each channel, and the nodes behind it that scale and shift channels by constants:
/// x · factor + offset. The fold program runs the nodes that make these two.
class ChannelScale {
public:
    /// `conv`: whose bias x has, too; null where there is none.
    ChannelScale(Graph& graph, Node& norm, Node* conv) : graph_(graph), name_(norm.name), conv_(conv), nodes_{&norm} {
        Value *scale = norm.inputs[1], *bias = norm.inputs[2], *mean = norm.inputs[3], *variance = norm.inputs[4];
        Value* deviation = add("Sqrt", 13, {add("Add", 14, {variance, epsilon(norm)}, "variance")}, "deviation");
        factor_ = add("Div", 14, {scale, deviation}, "factor");
        Value* centred = conv && conv->has_input(2) ? add("Sub", 14, {conv->inputs[2], mean}, "centred")
                                                    : add("Neg", 13, {mean}, "centred");
        offset_ = add("Add", 14, {add("Mul", 14, {centred, factor_}, "scaled"), bias}, "offset");
        while (take_next()) {
        }
    }

    void multiply_into_weights() {
        Node fused = *conv_;
        Value* factors = add("Reshape", 5, {factor_, column(conv_->inputs[1]->checked_type().rank())}, "factors");
        fused.inputs = {conv_->inputs[0], add("Mul", 14, {conv_->inputs[1], factors}, "weights"), offset_};
        replace(std::move(fused));
        graph_.remove(conv_);
    }

    void write_out() {
        Value* x = nodes_[0]->inputs[0];
        Value* shape = column(x->checked_type().rank() - 1);
        Node sum;
        sum.index = nodes_.back()->index;
        sum.name = name_;
        sum.op_type = "Add";
        sum.version = 14;
        sum.inputs = {add("Mul", 14, {x, add("Reshape", 5, {factor_, shape}, "factors")}, "scaled"),
                      add("Reshape", 5, {offset_, shape}, "offsets")};
        replace(std::move(sum));
    }

private:
    /// Takes over the one reader of the result so far, if it scales or shifts channels.
    bool take_next() {
        const Value* result = nodes_.back()->outputs[0];
        if (result->consumers.size() != 1 || graph_.is_output(result)) return false;
        Node* next = result->consumers[0];
        const bool is_sum = is_operator(*next, "Add");
        if (!is_sum && !is_operator(*next, "Mul")) return false;
        Value* operand = next->inputs[next->inputs[0] == result ? 1 : 0];
        if (!is_per_channel(operand, result->checked_type())) return false;
        nodes_.push_back(next);
        Value* number = add("Reshape", 5, {operand, column(1)}, "number");
        if (!is_sum) factor_ = add("Mul", 14, {factor_, number}, "factor");
        offset_ = add(is_sum ? "Add" : "Mul", 14, {offset_, number}, "offset");
        return true;
    }

    /// Behind what makes the operands of all that were taken.
    Value* add(const char* type, int version, std::vector<Value*> inputs, const char* role) {
        return add_node(graph_, {type, version, std::move(inputs)}, name_ + "_" + role, nodes_.back());
    }

    Value* epsilon(const Node& norm) {
        const ElementType element = norm.inputs[0]->checked_type().element;
        Value* number = add_constant(
            graph_, make_constant(ElementType::float32, {}, std::vector<float>{norm.real("epsilon", 1e-5f)}),
            name_ + "_epsilon");
        if (element == ElementType::float32) return number;
        return add_node(graph_, {"Cast", 13, {number}, {{"to", static_cast<int64_t>(element)}}}, name_ + "_epsilon",
                        nodes_.back());
    }

    /// The shape of numbers along the first of so many axes.
    Value* column(size_t rank) {
        std::vector<int64_t> shape(rank, 1);
        shape[0] = -1;
        return add_constant(graph_, make_constant(ElementType::int64, {static_cast<int64_t>(rank)}, shape),
                            name_ + "_shape");
    }

    /// Puts a node in the place of all that were taken.
    void replace(Node node) {
        node.outputs = nodes_.back()->outputs;
        graph_.add(std::move(node), nodes_.back());
        for (auto taken = nodes_.rbegin(); taken != nodes_.rend(); ++taken) graph_.remove(*taken);
    }

    Graph& graph_;
    std::string name_;
    Node* conv_;
    std::vector<Node*> nodes_;  // the BatchNormalization and those behind it
    Value *factor_, *offset_;   // per channel
};

void fuse(Graph& graph, Node& norm) {
    if (Node* conv = conv_before(graph, norm.inputs[0])) return ChannelScale(graph, norm, conv).multiply_into_weights();
    // Narrower factors and offsets would lose what the node itself computes in float32.
    if (!is_narrow_float(norm.inputs[0]->checked_type().element)) ChannelScale(graph, norm, nullptr).write_out();
}

}  // namespace

void fuse_batch_normalization(Graph& graph) {
    std::vector<Node*> norms;
    for (const auto& node : graph.nodes()) {
        if (is_fixed(*node)) norms.push_back(node.get());
    }
    for (Node* norm : norms) fuse(graph, *norm);
}

}  // namespace onnx2halide
