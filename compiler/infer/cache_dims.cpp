#include "compiler/infer/cache_dims.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

namespace onnx2halide {

namespace {

bool is_one_of(const Node& node, std::initializer_list<std::string_view> operators) {
    return std::find(operators.begin(), operators.end(), node.qualified_op()) != operators.end();
}

/// Follows the values that have a symbol as an extent from the inputs on.
class Cache {
public:
    explicit Cache(std::string symbol) : symbol_(std::move(symbol)) {}

    /// Whether all readers of a value concatenate it, branch on it, or move or convert its elements for such readers.
    bool is_kept(const Value& value) {
        if (!has_as_axis(value)) return false;
        return std::all_of(value.consumers.begin(), value.consumers.end(),
                           [&](const Node* node) { return keeps(*node); });
    }
    bool may_be_empty() const { return may_be_empty_; }

private:
    /// Whether the symbol is the extent of one axis and no other extent depends on it.
    bool has_as_axis(const Value& value) const {
        const TensorType& type = value.checked_type();
        const auto depends = [&](const Dim& dim) { return dim.symbols().contains(symbol_); };
        const auto is_symbol = [&](const Dim& dim) { return dim.text() == symbol_; };
        return !type.box && std::count_if(type.shape.begin(), type.shape.end(), depends) == 1 &&
               std::any_of(type.shape.begin(), type.shape.end(), is_symbol);
    }

    bool keeps(const Node& node) {
        if (is_one_of(node, {"Shape", "Size"})) return true;
        if (is_one_of(node, {"If"})) return may_be_empty_ = true;  // when the other branch is taken
        if (is_one_of(node, {"Concat", "onnx2halide.AppendStates"}) && !is_maybe_empty(*node.outputs[0]))
            return may_be_empty_ = true;
        const bool moves =
            is_one_of(node, {"Cast", "Concat", "DequantizeLinear", "Gather", "Identity", "QuantizeLinear", "Reshape",
                             "Slice", "Split", "Squeeze", "Transpose", "Unsqueeze"});
        return moves && std::all_of(node.outputs.begin(), node.outputs.end(),
                                    [&](const Value* output) { return !output || is_kept(*output); });
    }

    bool is_maybe_empty(const Value& value) const {
        const std::vector<Dim>& shape = value.checked_type().shape;
        return std::any_of(shape.begin(), shape.end(), [&](const Dim& dim) {
            return dim.substitute({{symbol_, Dim(0)}}).lower_bound().value_or(0) < 1;
        });
    }

    std::string symbol_;
    bool may_be_empty_ = false;
};

bool is_cache(const Graph& graph, const std::string& symbol) {
    Cache cache(symbol);
    for (const Value* input : graph.inputs) {
        const std::vector<Dim>& shape = input->checked_type().shape;
        const bool has_symbol =
            std::any_of(shape.begin(), shape.end(), [&](const Dim& dim) { return dim.symbols().contains(symbol); });
        if (has_symbol && !cache.is_kept(*input)) return false;
    }
    return cache.may_be_empty();
}

}  // namespace

std::set<std::string> cache_dims(const Graph& graph) {
    std::set<std::string> dims;
    for (const OpenDim& open : open_dims(graph)) {
        const auto bounds = open.dim.bounds();
        if (bounds.first != 1 || bounds.second != Dim::unbounded || !is_cache(graph, open.symbol)) continue;
        dims.insert(fmt::format("{}:{}", graph.inputs[open.input]->name, open.axis));
    }
    return dims;
}

}  // namespace onnx2halide
