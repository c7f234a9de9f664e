#include <vector>

#include "compiler/infer/add_node.h"
#include "compiler/passes/match.h"
#include "compiler/passes/passes.h"
#include "ops/matmul.h"

namespace onnx2halide {

namespace {

/// Whether a node's result is its input 0.
bool is_copy(const Node& node) {
    const bool has_same_type = is_operator(node, "Cast") && *node.inputs[0]->type == *node.outputs[0]->type;
    return has_same_type || is_operator(node, "Identity");
}

/// Whether a Softmax makes one number of each row along the last axis.
bool is_over_last_axis(const Node& softmax) {
    const auto rank = static_cast<int64_t>(softmax.inputs[0]->checked_type().rank());
    const int64_t axis = softmax.integer("axis", softmax.version < 13 ? 1 : -1);
    return axis == -1 || axis == rank - 1;
}

/// Whether a Where puts 0 in the place of some elements of its input 2.
bool puts_zeros(const Node& where) {
    if (!is_operator(where, "Where")) return false;
    const Value *zero = where.inputs[1], *rows = where.inputs[2];
    return is_literal(zero) && zero->known->reals == std::vector<double>{0} &&
           rows->checked_type().shape == where.outputs[0]->checked_type().shape;
}

/// Whether a Where puts 0 into whole rows, as the standard Attention does where all keys are masked.
bool clears_rows(const Node& where) {
    if (!puts_zeros(where)) return false;
    const std::vector<Dim>& shape = where.inputs[0]->checked_type().shape;
    return shape.empty() || shape.back().is(1);
}

/// Whether a Where puts 0 in the place of NaN and nothing else reads its input 2, as in what PyTorch exports. Of a
/// Softmax this clears whole rows: those of which all keys are masked or any score is no number.
bool clears_nan(const Graph& graph, const Node& where) {
    if (!puts_zeros(where)) return false;
    const Value* rows = where.inputs[2];
    const Node* is_nan = sole_producer(graph, where.inputs[0]);
    return is_nan && is_operator(*is_nan, "IsNaN") && is_nan->inputs[0] == rows && rows->consumers.size() == 2 &&
           !graph.is_output(rows);
}

/// What makes the rows of a product.
struct Rows {
    const Node* softmax = nullptr;
    const Node* where = nullptr;  // behind it, where some rows are cleared
    bool clears_nan = false;      // of rows that are NaN
};

Rows find_rows(const Graph& graph, const Node& product) {
    Rows rows;
    const Node* node = sole_producer(graph, product.inputs[0]);
    while (node && !is_operator(*node, "Softmax")) {
        if (is_copy(*node)) {
            node = sole_producer(graph, node->inputs[0]);
        } else if (rows.where || rows.clears_nan) {
            return {};
        } else if (clears_nan(graph, *node)) {
            rows.clears_nan = true;
            node = node->inputs[2]->producer;
        } else if (clears_rows(*node)) {
            rows.where = node;
            node = sole_producer(graph, node->inputs[2]);
        } else {
            return {};
        }
    }
    if (node && is_over_last_axis(*node)) rows.softmax = node;
    return rows;
}

/// Whether it is a batch of products of matrices which are computed in tiles: of heads, each with its own values or all
/// with the same. Without keys there is nothing to compute.
bool is_attention(const Node& product) {
    const TensorType &scores = product.inputs[0]->checked_type(), &values = product.inputs[1]->checked_type();
    const size_t rank = scores.rank();
    if (rank < 2 || values.rank() != rank) return false;
    if (!values.shape[rank - 1].constant() || scores.elements().is(0)) return false;
    if (scores.element != ElementType::float32 && scores.element != ElementType::float64) return false;
    for (size_t axis = 0; axis + 2 < rank; ++axis) {
        const bool is_shared = values.shape[axis].is(1);
        if (!is_shared && prove_equal(scores.shape[axis], values.shape[axis]) != Proof::yes) return false;
    }
    return MatMul(product).has_tiles_of_rows();
}

void fuse(Graph& graph, Node& product) {
    if (!is_attention(product)) return;
    const Rows rows = find_rows(graph, product);
    if (!rows.softmax) return;
    graph.set_input(&product, 0, rows.softmax->inputs[0]);
    product.domain = "onnx2halide";
    product.op_type = "SoftmaxMatMul";
    product.version = 1;
    product.attributes["clears_nan"] = int64_t{rows.clears_nan};
    if (!rows.where) return;
    // A row of zeros makes one.
    const std::vector<Value*> choice = {rows.where->inputs[0], rows.where->inputs[1], nullptr};
    add_after(graph, product, {"Where", 16, choice}, rows.where->name);
}

}  // namespace

void fuse_attention(Graph& graph) {
    std::vector<Node*> products;
    for (const auto& node : graph.nodes()) {
        if (is_operator(*node, "MatMul")) products.push_back(node.get());
    }
    for (Node* product : products) fuse(graph, *product);
}

}  // namespace onnx2halide
