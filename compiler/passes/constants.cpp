#include "compiler/passes/constants.h"

#include <algorithm>
#include <set>

#include "compiler/graph/new_node.h"
#include "compiler/graph/node_key.h"
#include "ops/node_generator.h"

namespace onnx2halide {

namespace {

/// Whether a node has a subgraph.
bool has_body(const Node& node) {
    return std::any_of(node.attributes.begin(), node.attributes.end(), [](const auto& attribute) {
        return std::holds_alternative<std::shared_ptr<Graph>>(attribute.second);
    });
}

bool is_constant(const Value* value, std::set<const Value*>& proved) {
    if (value->is_constant() || proved.contains(value)) return true;
    const Node* producer = value->producer;
    if (!producer || !value->bindings.empty() || draws_random_numbers(*producer) || has_body(*producer)) return false;
    if (!make_generator(*producer)->is_kernel()) return false;  // the fold program calls no functions of the runtime
    const bool all = std::all_of(producer->inputs.begin(), producer->inputs.end(),
                                 [&](const Value* input) { return !input || is_constant(input, proved); });
    if (all) proved.insert(value);
    return all;
}

template <typename T>
Constant numbers(const TensorType& type, const KnownElements& known) {
    std::vector<int64_t> shape;
    for (const Dim& dim : type.shape) shape.push_back(*dim.constant());
    std::vector<T> elements;
    for (const Dim& element : known.integers) elements.push_back(static_cast<T>(*element.constant()));
    for (const double element : known.reals) elements.push_back(static_cast<T>(element));
    return make_constant(type.element, std::move(shape), elements);
}

}  // namespace

std::optional<Constant> constant_of_known(const Value& value) {
    const TensorType& type = value.checked_type();
    if (!type.is_row_major()) return std::nullopt;
    for (const Dim& element : value.known->integers) {
        if (!element.constant()) return std::nullopt;
    }
    for (const Dim& dim : type.shape) {
        if (!dim.constant()) return std::nullopt;
    }
    using enum ElementType;
    switch (type.element) {
    case int64: return numbers<int64_t>(type, *value.known);
    case int32: return numbers<int32_t>(type, *value.known);
    case uint32: return numbers<uint32_t>(type, *value.known);
    case int16: return numbers<int16_t>(type, *value.known);
    case uint16: return numbers<uint16_t>(type, *value.known);
    case boolean:
    case uint8: return numbers<uint8_t>(type, *value.known);
    case int8: return numbers<int8_t>(type, *value.known);
    case float32: return numbers<float>(type, *value.known);
    case float64: return numbers<double>(type, *value.known);
    default: return std::nullopt;
    }
}

Value* add_numbers(Graph& graph, const std::vector<int64_t>& numbers, const std::string& hint) {
    return add_constant(graph, make_constant(ElementType::int64, {static_cast<int64_t>(numbers.size())}, numbers),
                        hint);
}

bool is_compile_time_constant(const Value* value) {
    std::set<const Value*> proved;
    return is_constant(value, proved);
}

}  // namespace onnx2halide
