#include "compiler/plan/extents.h"

#include <algorithm>

#include <fmt/format.h>

namespace onnx2halide {

SymbolicCopy::SymbolicCopy(const Group& group, const std::vector<const Value*>& escaping) {
    for (const Node* node : group.nodes) {
        auto own = std::make_unique<Node>(*node);
        for (Value*& input : own->inputs) input = copy(input);
        for (Value*& output : own->outputs) output = copy(output);
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
    // Numbered, not named, so that the same operator on other values has the same text.
    const size_t number = copies_.size();
    for (size_t axis = 0; axis < own->type->rank(); ++axis) {
        Dim& extent = own->type->shape[axis];
        if (!extent.constant() || *extent.constant() <= 1) continue;
        const std::string symbol = fmt::format("extent_{}_{}", number, axis);
        extents_[symbol] = extent;
        extent = Dim::symbol(symbol);
    }
    originals_[own.get()] = value;
    return own.get();
}

}  // namespace onnx2halide
