#include "compiler/passes/match.h"

namespace onnx2halide {

bool is_operator(const Node& node, std::string_view type) { return node.domain.empty() && node.op_type == type; }

const Node* sole_producer(const Graph& graph, const Value* value) {
    return value->consumers.size() == 1 && !graph.is_output(value) ? value->producer : nullptr;
}

}  // namespace onnx2halide
