#include <vector>

#include "compiler/passes/passes.h"
#include "ops/node_generator.h"

namespace onnx2halide {

namespace {

bool is_operator(const Node& node, const char* type) { return node.domain.empty() && node.op_type == type; }

/// Whether a Softmax makes one number of each row along the last axis.
bool is_over_last_axis(const Node& softmax) {
    const auto rank = static_cast<int64_t>(softmax.inputs[0]->checked_type().rank());
    const int64_t axis = softmax.integer("axis", softmax.version < 13 ? 1 : -1);
    return axis == -1 || axis == rank - 1;
}

/// The Softmax that makes the rows of a product, for that alone.
const Node* softmax_of(const Graph& graph, const Node& product) {
    const Value* rows = product.inputs[0];
    const Node* softmax = rows->producer;
    const bool is_alone = rows->consumers.size() == 1 && !graph.is_output(rows);
    return softmax && is_alone && is_operator(*softmax, "Softmax") && is_over_last_axis(*softmax) ? softmax : nullptr;
}

/// Whether it is a batch of products of matrices, each with its own right one, of several rows, keys and columns.
bool is_attention(const Node& product) {
    constexpr int64_t few_rows = 4;
    const TensorType &scores = product.inputs[0]->checked_type(), &values = product.inputs[1]->checked_type();
    const size_t rank = scores.rank();
    if (rank < 2 || values.rank() != rank) return false;
    const auto columns = values.shape[rank - 1].constant();
    if (!columns || *columns < 2 || scores.shape[rank - 1].is(1)) return false;
    if (scores.element != ElementType::float32 && scores.element != ElementType::float64) return false;
    for (size_t axis = 0; axis + 2 < rank; ++axis) {
        if (prove_equal(scores.shape[axis], values.shape[axis]) != Proof::yes) return false;
    }
    return prove_less_equal(scores.shape[rank - 2], few_rows) != Proof::yes;
}

}  // namespace

void fuse_attention(Graph& graph) {
    for (const auto& node : graph.nodes()) {
        if (!is_operator(*node, "MatMul")) continue;
        const Node* softmax = softmax_of(graph, *node);
        if (!softmax || !is_attention(*node)) continue;
        graph.set_input(node.get(), 0, softmax->inputs[0]);
        node->domain = "onnx2halide";
        node->op_type = "SoftmaxMatMul";
        node->version = 1;
    }
}

}  // namespace onnx2halide
