#include <algorithm>
#include <optional>
#include <vector>

#include "compiler/graph/error.h"
#include "compiler/passes/match.h"
#include "compiler/passes/node_replacement.h"
#include "compiler/passes/passes.h"
#include "ops/node_generator.h"

namespace onnx2halide {

namespace {

constexpr size_t rank_of_batches = 3;  // of a batch of matrices

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
    return Repeated{tile->inputs[0], floor_div(whole[0], own[0]), {}};
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

/// Whether a product belongs to attention, whose kernel goes from scores to results: views in between would divide it.
bool is_in_attention(const Node& product) {
    const Node* probabilities = product.inputs[0]->producer;
    if (probabilities && is_operator(*probabilities, "Softmax")) return true;
    const Node* reader = &product;
    do {
        const std::vector<Node*>& readers = reader->outputs[0]->consumers;
        if (readers.size() != 1) return false;
        reader = readers[0];
    } while (reader->outputs.size() == 1 && make_generator(*reader)->is_pointwise());
    return is_operator(*reader, "Softmax");
}

/// Multiplies operand `i` of a MatMul in its own shape, if it is repeated and the other operand has as many matrices.
bool broadcast(Graph& graph, Node& product, size_t i) {
    const auto repeated = repeated_matrices(*product.inputs[i]);
    Value* other = product.inputs[1 - i];
    std::vector<Dim> shape = other->checked_type().shape;
    if (!repeated || shape.size() != rank_of_batches ||
        prove_equal(shape[0], product.inputs[i]->checked_type().shape[0]) != Proof::yes)
        return false;
    shape.insert(shape.begin() + 1, repeated->batch->checked_type().shape[0]);
    shape[0] = repeated->copies;
    NodeReplacement replacement(graph, product);
    Value* apart = replacement.add(view(other, TensorType(other->checked_type().element, shape)));
    Value* matrices = repeated->batch;
    if (repeated->permutation)
        matrices = replacement.add("Transpose", 1, {matrices}, {{"perm", *repeated->permutation}});
    Value* result = replacement.add("MatMul", 13, i == 0 ? std::vector{matrices, apart} : std::vector{apart, matrices});
    Value* output = product.outputs[0];
    replacement.replace(output, replacement.add(view(result, output->checked_type())));
    return true;
}

}  // namespace

void broadcast_repeats(Graph& graph) {
    for (Node* node : graph.snapshot()) {
        if (!is_operator(*node, "MatMul") || is_in_attention(*node)) continue;
        if (!broadcast(graph, *node, 1)) broadcast(graph, *node, 0);
    }
}

}  // namespace onnx2halide
