#include "compiler/plan/symbolic_copy.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

namespace onnx2halide {

namespace {

/// Calls `visit` for each dim of a value's shape and each of its known integers.
template <typename AnyValue, typename Visit>
void for_each_dim(AnyValue& value, const Visit& visit) {
    for (auto& dim : value.type->shape) visit(dim);
    if (!value.known) return;
    for (auto& element : value.known->integers) visit(element);
}

}  // namespace

SymbolicCopy::SymbolicCopy(const Group& group, const std::vector<const Value*>& escaping, Extents extents,
                           const std::map<std::string, Dim>& open_dims)
    : kind_(extents), open_dims_(open_dims) {
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
    if (kind_ == Extents::compound) name_products();
}

Value* SymbolicCopy::copy(const Value* value) {
    if (!value) return nullptr;
    std::unique_ptr<Value>& own = copies_[value];
    if (own) return own.get();
    own = std::make_unique<Value>();
    own->name = value->name;
    own->type = value->type;
    own->known = value->known;
    own->is_passed_to_kernels = value->is_passed_to_kernels;
    own->constant = value->constant;
    own->bindings = value->bindings;
    own->part = value->part;
    kind_ == Extents::all ? name_all(*own, copies_.size()) : name_compound(*own);
    originals_[own.get()] = value;
    return own.get();
}

/// Symbols are numbered rather than named after values, so that the same operator on other values has the same text.
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
        if (open_dims_.contains(atom.text())) return atom;
        const auto [known, is_new] = named_.try_emplace(atom.text());
        if (is_new) known->second = named(atom);
        return known->second;
    });
}

/// A new symbol that stands for an expression in the original's symbols.
Dim SymbolicCopy::named(const Dim& meaning) {
    const std::string symbol = fmt::format("extent_{}", extents_.size() + 1);
    const auto [low, high] = meaning.bounds();
    extents_[symbol] = meaning;
    return Dim::symbol(symbol, low.value_or(-Dim::unbounded), std::min(high.value_or(Dim::unbounded), Dim::unbounded));
}

/// Replaces symbols that only occur together by one symbol for their product: every product in the copies contains them
/// equally often.
void SymbolicCopy::name_products() {
    std::map<std::string, Dim> symbols;
    std::set<std::multiset<std::string>> products;
    for (const auto& [original, own] : copies_) {
        for_each_dim(*own, [&](const Dim& dim) {
            for (const std::vector<Dim>& product : dim.products()) {
                std::multiset<std::string> names;
                for (const Dim& symbol : product) symbols[*names.insert(symbol.text())] = symbol;
                products.insert(names);
            }
        });
    }
    std::map<std::vector<size_t>, std::vector<std::string>> together;  // by how often each product contains them
    for (const auto& [name, symbol] : symbols) {
        std::vector<size_t> counts;
        for (const auto& product : products) counts.push_back(product.count(name));
        together[counts].push_back(name);
    }
    std::map<std::string, Dim> replaced;
    for (const auto& [counts, names] : together) {
        if (names.size() < 2) continue;
        Dim whole = 1;
        for (const std::string& name : names) {
            const auto known = extents_.find(name);
            whole *= known == extents_.end() ? symbols[name] : known->second;
            replaced[name] = 1;
        }
        replaced[names.front()] = named(whole);
    }
    if (replaced.empty()) return;
    for (const auto& [original, own] : copies_) for_each_dim(*own, [&](Dim& dim) { dim = dim.substitute(replaced); });
}

bool has_open_extents(const Group& group) {
    bool found = false;
    for (const Node* node : group.nodes) {
        for (const auto* values : {&node->inputs, &node->outputs}) {
            for (const Value* value : *values) {
                if (value) for_each_dim(*value, [&](const Dim& dim) { found = found || !dim.constant(); });
            }
        }
    }
    return found;
}

}  // namespace onnx2halide
