#include "compiler/plan/extents.h"

#include <algorithm>

#include <fmt/format.h>

namespace onnx2halide {

namespace {

/// Calls `visit` for the dims of a value's shape and its known elements.
template <typename AnyValue, typename Visit>
void for_each_dim(AnyValue& value, const Visit& visit) {
    for (auto& dim : value.type->shape) visit(dim);
    if (!value.known) return;
    for (auto& element : value.known->integers) visit(element);
}

}  // namespace

SymbolicCopy::SymbolicCopy(const Group& group, const std::vector<const Value*>& escaping, Extents extents)
    : kind_(extents) {
    for (const Node* node : group.nodes) {
        auto own = std::make_unique<Node>(*node);
        for (Value*& input : own->inputs) input = copy(input);
        for (Value*& output : own->outputs) output = copy(output);
        for (Value* input : own->inputs) {
            if (input) input->consumers.push_back(own.get());
        }
        for (Value* output : own->outputs) {
            if (output) output->producer = own.get();
        }
        if (node == group.anchor) group_.anchor = own.get();
        group_.nodes.push_back(own.get());
        nodes_.push_back(std::move(own));
    }
    for (const Value* value : escaping) escaping_.push_back(copy(value));
}

Value* SymbolicCopy::copy(const Value* value) {
    if (!value) return nullptr;
    std::unique_ptr<Value>& own = copies_[value];
    if (own) return own.get();
    own = std::make_unique<Value>();
    own->name = value->name;
    own->type = value->type;
    own->known = value->known;
    own->constant = value->constant;
    own->bindings = value->bindings;
    kind_ == Extents::all ? name_all(*own, copies_.size()) : name_compound(*own);
    originals_[own.get()] = value;
    return own.get();
}

/// Numbered, not named, so that the same operator on other values has the same text.
void SymbolicCopy::name_all(Value& value, size_t number) {
    for (size_t axis = 0; axis < value.type->rank(); ++axis) {
        Dim& extent = value.type->shape[axis];
        if (!extent.constant() || *extent.constant() <= 1) continue;
        const std::string symbol = fmt::format("extent_{}_{}", number, axis);
        extents_[symbol] = extent;
        extent = Dim::symbol(symbol, 2);
    }
}

void SymbolicCopy::name_compound(Value& value) {
    for_each_dim(value, [&](Dim& dim) { dim = name_compound(dim); });
}

Dim SymbolicCopy::name_compound(const Dim& dim) {
    return dim.with_named_atoms([&](const Dim& atom) {
        const auto [known, is_new] = named_.try_emplace(atom.text());
        if (is_new) {
            const std::string symbol = fmt::format("extent_{}", named_.size());
            const auto [low, high] = atom.bounds();
            known->second = Dim::symbol(symbol, low.value_or(-Dim::unbounded), high.value_or(Dim::unbounded));
            extents_[symbol] = atom;
        }
        return known->second;
    });
}

bool has_compound_extents(const Group& group) {
    bool found = false;
    const auto look = [&](const Dim& dim) {
        dim.with_named_atoms([&](const Dim& atom) {
            found = true;
            return atom;
        });
    };
    for (const Node* node : group.nodes) {
        for (const auto* values : {&node->inputs, &node->outputs}) {
            for (const Value* value : *values) {
                if (value) for_each_dim(*value, look);
            }
        }
    }
    return found;
}

}  // namespace onnx2halide
