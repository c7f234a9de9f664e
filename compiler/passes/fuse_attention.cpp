#include <vector>

#include "compiler/infer/add_node.h"
#include "compiler/passes/match.h"
#include "compiler/passes/passes.h"
#include "ops/product/matmul.h"

namespace onnx2halide {

namespace {

/// Whether a node only copies its input 0.
bool is_copy(const Node& node) {
    const bool has_same_type = is_operator(node, "Cast") && *node.inputs[0]->type == *node.outputs[0]->type;
    return has_same_type || is_operator(node, "Identity");
}

/// Whether a Softmax normalises rows along the last axis.
bool is_over_last_axis(const Node& softmax) {
    const auto rank = static_cast<int64_t>(softmax.inputs[0]->checked_type().rank());
    const int64_t axis = softmax.integer("axis", softmax.version < 13 ? 1 : -1);
    return axis == -1 || axis == rank - 1;
}

/// Whether a Where replaces some elements of its input 2 by 0.
bool puts_zeros(const Node& where) {
    if (!is_operator(where, "Where")) return false;
    const Value *zero = where.inputs[1], *rows = where.inputs[2];
    return is_literal(zero) && zero->known->reals == std::vector<double>{0} &&
           rows->checked_type().shape == where.outputs[0]->checked_type().shape;
}

/// Whether a Where sets whole rows to 0, as ONNX's Attention does for rows whose keys are all masked.
bool clears_rows(const Node& where) {
    if (!puts_zeros(where)) return false;
    const std::vector<Dim>& shape = where.inputs[0]->checked_type().shape;
    return shape.empty() || shape.back().is(1);
}

/// Whether a Where replaces NaN by 0 and its input 2 has no other readers, as PyTorch exports it. After a Softmax this
/// clears whole rows: those whose keys are all masked, or with a score that is NaN.
bool clears_nan(const Graph& graph, const Node& where) {
    if (!puts_zeros(where)) return false;
    const Value* rows = where.inputs[2];
    const Node* is_nan = sole_producer(graph, where.inputs[0]);
    return is_nan && is_operator(*is_nan, "IsNaN") && is_nan->inputs[0] == rows && rows->consumers.size() == 2 &&
           !graph.is_output(rows);
}

/// The nodes that make the left operand of a product.
struct Rows {
    const Node* softmax = nullptr;
    const Node* where = nullptr;  // after the Softmax, if it clears rows
    bool clears_nan = false;      // whether rows that are NaN are cleared
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

/// Whether a product is a batch of matrix products that are computed in tiles. The batch are the heads, each with its
/// own values or all with the same. There must be keys: without any, ONNX's products are zeros.
bool is_attention(const Node& product) {
    const TensorType &scores = product.inputs[0]->checked_type(), &values = product.inputs[1]->checked_type();
    const size_t rank = scores.rank();
    if (rank < 2 || values.rank() != rank) return false;
    if (!values.shape[rank - 1].constant() || scores.elements().is(0)) return false;
    if (prove_less_equal(1, scores.shape[rank - 1]) != Proof::yes) return false;
    if (!is_float(scores.element)) return false;
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
    product.become("SoftmaxMatMul");
    product.attributes["clears_nan"] = int64_t{rows.clears_nan};
    if (!rows.where) return;
    // A row of zeros makes a row of zeros in the product, so the rows can be cleared there.
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
