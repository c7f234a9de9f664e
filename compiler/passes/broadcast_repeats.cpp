#include <algorithm>
#include <optional>
#include <vector>

#include "compiler/passes/match.h"
#include "compiler/passes/node_replacement.h"
#include "compiler/passes/passes.h"
#include "ops/node_generator.h"

namespace onnx2halide {

namespace {

/// Of operands whose batch is repeated: exporters make one axis of sentences and heads.
constexpr size_t rank_of_batches = 3;

/// A batch of matrices that a Tile repeats as a whole, so many times, and the permutation that transposes each.
struct Repeated {
    Value* batch;
    Dim copies;
    std::optional<std::vector<int64_t>> permutation;
};

/// What a Tile repeats along the batch alone; nullopt if the value is something else.
std::optional<Repeated> repeated_along_batch(const Value& value) {
    const Node* tile = value.producer;
    if (!tile || !is_operator(*tile, "Tile")) return {};
    const std::vector<Dim>&own = tile->inputs[0]->checked_type().shape, &whole = value.checked_type().shape;
    if (own.size() != rank_of_batches || own[0] == whole[0]) return {};
    if (!std::equal(own.begin() + 1, own.end(), whole.begin() + 1)) return {};
    // The model may have declared the shape of a Tile whose repeats are known at run time only.
    const Dim copies = floor_div(whole[0], own[0]);
    return copies * own[0] == whole[0] ? std::optional(Repeated{tile->inputs[0], copies, {}}) : std::nullopt;
}

/// The same for an operand of a product, whose matrices may be transposed after they are repeated.
std::optional<Repeated> repeated_matrices(const Value& operand) {
    const Node* transpose = operand.producer;
    if (!transpose || !is_operator(*transpose, "Transpose")) return repeated_along_batch(operand);
    const std::vector<int64_t> order = transpose->integers("perm", {});
    if (order.size() != rank_of_batches || order[0] != 0) return {};
    auto repeated = repeated_along_batch(*transpose->inputs[0]);
    if (repeated) repeated->permutation = order;
    return repeated;
}

/// Whether an operand of a node with this result still fits if the result's batch is two axes: it has the result's
/// shape or one element per column.
bool fits_views(const Value& operand, const std::vector<Dim>& result) {
    const std::vector<Dim>& own = operand.checked_type().shape;
    return own == result || is_of_columns(own);
}

/// Whether views around a product would divide its kernel: that of attention, which goes from scores to results, or one
/// with pointwise nodes that have operands of other shapes.
bool would_be_divided(const Node& product) {
    const Node* probabilities = product.inputs[0]->producer;
    if (probabilities && is_operator(*probabilities, "Softmax")) return true;
    const std::vector<Dim>& shape = product.outputs[0]->checked_type().shape;
    const Node* node = &product;
    while (node->outputs.size() == 1 && node->outputs[0]->consumers.size() == 1) {
        node = node->outputs[0]->consumers[0];
        const auto generator = make_generator(*node);
        if (!generator->is_pointwise()) break;
        const bool fits = std::all_of(node->inputs.begin(), node->inputs.end(),
                                      [&](const Value* input) { return !input || fits_views(*input, shape); });
        if (!fits || generator->has_own_axis()) return true;
    }
    return node != &product && is_operator(*node, "Softmax");
}

/// Makes a MatMul read operand `i` without its repetitions: as it is, if it is a single matrix, and else by a product
/// of views, in which the batch of `copies` * `batch` is two axes. Returns false if nothing is repeated, the other
/// operand has another batch, or it would not pay off.
bool broadcast(Graph& graph, Node& product, size_t i) {
    const auto repeated = repeated_matrices(*product.inputs[i]);
    Value* other = product.inputs[1 - i];
    std::vector<Dim> shape = other->checked_type().shape;
    if (!repeated || shape.size() != rank_of_batches ||
        prove_equal(shape[0], product.inputs[i]->checked_type().shape[0]) != Proof::yes)
        return false;
    const Dim batch = repeated->batch->checked_type().shape[0];
    if (!batch.is(1) && would_be_divided(product)) return false;
    NodeReplacement replacement(graph, product);
    Value* matrices = repeated->batch;
    if (repeated->permutation)
        matrices = replacement.add("Transpose", 1, {matrices}, {{"perm", *repeated->permutation}});
    if (batch.is(1)) {
        graph.set_input(&product, i, matrices);
        return true;
    }
    shape.insert(shape.begin() + 1, batch);
    shape[0] = repeated->copies;
    Value* apart = replacement.add(view(other, TensorType(other->checked_type().element, shape)));
    Value* result = replacement.add("MatMul", 13, i == 0 ? std::vector{matrices, apart} : std::vector{apart, matrices});
    Value* output = product.outputs[0];
    replacement.replace(output, replacement.add(view(result, output->checked_type())));
    return true;
}

}  // namespace

void broadcast_repeats(Graph& graph) {
    for (Node* node : graph.snapshot()) {
        if (!is_operator(*node, "MatMul")) continue;
        for (const size_t i : {1, 0}) {
            if (broadcast(graph, *node, i)) break;
        }
    }
}

}  // namespace onnx2halide
