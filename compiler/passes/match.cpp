#include "compiler/passes/match.h"

#include <span>

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

const Node* sole_producer(const Graph& graph, const Value* value) {
    return value->consumers.size() == 1 && !graph.is_output(value) ? value->producer : nullptr;
}

}  // namespace onnx2halide
