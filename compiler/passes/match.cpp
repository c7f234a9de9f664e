#include "compiler/passes/match.h"

#include <span>

#include "compiler/passes/constants.h"
#include "ops/kernel_source.h"

namespace onnx2halide {

bool is_operator(const Node& node, std::string_view type) { return node.domain.empty() && node.op_type == type; }

std::optional<double> number_of(const Value* value) {
    if (!value || !is_literal(value)) return std::nullopt;
    if (!value->known->reals.empty()) return value->known->reals[0];
    const auto integer = value->known->integers[0].constant();
    return integer ? std::optional(static_cast<double>(*integer)) : std::nullopt;
}

bool is_of_columns(const std::vector<Dim>& shape) {
    return shape.empty() || count_nontrivial(std::span(shape).first(shape.size() - 1)) == 0;
}

bool is_per_channel(const Value* operand, const TensorType& images) {
    const TensorType& type = operand->checked_type();
    if (type.rank() > images.rank()) return false;
    for (size_t i = 0; i < type.rank(); ++i) {
        const size_t axis = images.rank() - type.rank() + i;
        if (!type.shape[i].is(1) && (axis != 1 || type.shape[i] != images.shape[1])) return false;
    }
    return is_compile_time_constant(operand);
}

bool has_constant_weights(const Node& conv) {
    return is_compile_time_constant(conv.inputs[1]) && (!conv.has_input(2) || is_compile_time_constant(conv.inputs[2]));
}

std::optional<RightAxes> right_axes(const Node& node) {
    if (!is_operator(node, "Conv") && !is_operator(node, "MatMul") && !is_operator(node, "Gemm")) return {};
    const auto rank = static_cast<int64_t>(node.inputs[1]->checked_type().rank());
    if (node.op_type == "Conv") {
        RightAxes axes{.summed = {}, .inner = 1, .columns = 0};
        for (int64_t axis = 1; axis < rank; ++axis) axes.summed.push_back(axis);
        return axes;
    }
    if (rank != 2) return {};
    const int64_t depth = node.integer("transB", 0) != 0 ? 1 : 0;
    return RightAxes{.summed = {depth}, .inner = depth, .columns = 1 - depth};
}

Dim terms_of_sum(const Node& node, const RightAxes& axes) {
    Dim terms = 1;
    for (const int64_t axis : axes.summed) terms *= node.inputs[1]->checked_type().shape[axis];
    return terms;
}

const Node* sole_producer(const Graph& graph, const Value* value) {
    return value->consumers.size() == 1 && !graph.is_output(value) ? value->producer : nullptr;
}

}  // namespace onnx2halide
