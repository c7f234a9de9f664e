#include "ops/node_generator.h"

#include <algorithm>

#include <fmt/format.h>

#include "ops/names.h"
#include "ops/schedule/loop_schedule.h"

namespace onnx2halide {

const Node* view_of(const Value* value) {
    const Node* producer = value && !value->constant ? value->producer : nullptr;
    return producer && producer->outputs[0] == value && make_generator(*producer)->is_view() ? producer : nullptr;
}

void NodeGenerator::schedule(KernelSource& source) const {
    for (size_t i = 0; i < source.output_count(); ++i) schedule_loops(source, source.output_loops(i));
}

HostCall NodeGenerator::host_call() const { throw std::logic_error(node_.label() + " is no call of the host"); }

size_t NodeGenerator::first_axis(size_t i) const { return out(0).rank() - std::min(out(0).rank(), in(i).rank()); }

Dim NodeGenerator::flops() const { return has_output(0) ? out(0).elements() : Dim(0); }

const Value* NodeGenerator::input(size_t i) const {
    if (!node_.has_input(i)) throw CompileError("input {} is missing", i);
    return node_.inputs[i];
}

const Value* NodeGenerator::output(size_t i) const {
    if (!node_.has_output(i)) throw CompileError("output {} is missing", i);
    return node_.outputs[i];
}

const std::vector<Dim>& NodeGenerator::dims(size_t i) const {
    const KnownElements* known = known_input(i);
    if (!known) throw UnknownElements(node_, i);
    return known->integers;
}

const Dim& NodeGenerator::single_dim(size_t i) const {
    check_single(i, dims(i).size());
    return dims(i)[0];
}

std::vector<int64_t> NodeGenerator::integers(size_t i) const {
    // A constant may have more elements than inference tracks.
    if (input(i)->constant) return input(i)->constant->integers();
    std::vector<int64_t> result;
    for (const Dim& dim : dims(i)) {
        if (!dim.constant())
            throw CompileError("input {} ('{}') must be known at compile time, it is {}", i, input(i)->name,
                               dim.text());
        result.push_back(*dim.constant());
    }
    return result;
}

std::vector<double> NodeGenerator::reals(size_t i) const {
    if (input(i)->constant) return input(i)->constant->reals();
    const KnownElements* known = known_input(i);
    if (!known) throw CompileError("input {} ('{}') must be known before run time", i, input(i)->name);
    return known->reals;
}

double NodeGenerator::single_real(size_t i) const {
    const std::vector<double> elements = reals(i);
    check_single(i, elements.size());
    return elements[0];
}

void NodeGenerator::check_single(size_t i, size_t elements) const {
    if (elements != 1) throw CompileError("input {} ('{}') has {} elements, expected 1", i, input(i)->name, elements);
}

std::vector<Dim> NodeGenerator::shape_operand(size_t i, std::optional<size_t> rank) const {
    const auto& declared = output(0)->declared;
    const auto is_number = [](const Dim& dim) { return dim.constant().has_value(); };
    const bool is_declared = declared && std::all_of(declared->shape.begin(), declared->shape.end(), is_number);
    if (known_input(i) || !is_declared) return dims(i);
    if (rank && declared->rank() != *rank) {
        throw CompileError("output '{}' is declared with rank {}, expected {}", output(0)->name, declared->rank(),
                           *rank);
    }
    return declared->shape;
}

const KnownElements* NodeGenerator::known_input(size_t i) const {
    const auto& known = input(i)->known;
    return known ? &*known : nullptr;
}

const KnownElements* NodeGenerator::tracked_input(size_t i) const {
    const auto& tracked = input(i)->tracked;
    return tracked ? &*tracked : known_input(i);
}

std::vector<Check> NodeGenerator::axis_checks(const std::vector<Dim>& axes, size_t rank) {
    const auto signed_rank = static_cast<int64_t>(rank);
    std::vector<Check> checks;
    for (const Dim& axis : axes) {
        if (!axis.constant()) checks.push_back({"axis", axis, -signed_rank, signed_rank - 1});
    }
    return checks;
}

namespace {

std::string symbol_name(const Value& value, std::string_view role, size_t i) {
    const std::string name = fmt::format("{}_{}_{}", identifier(value.name), role, i);
    return value.duplicate_index == 0 ? name : fmt::format("{}_of_{}", name, value.duplicate_index + 1);
}

}  // namespace

std::string extent_symbol_name(const Value& value, size_t axis) { return symbol_name(value, "extent", axis); }

std::string element_symbol_name(const Value& value, size_t i) { return symbol_name(value, "element", i); }

Dim extent_symbol(const Value& value, size_t axis, const Dim& max) {
    return Dim::symbol(extent_symbol_name(value, axis), 0, max.upper_bound().value_or(Dim::unbounded));
}

namespace {

/// The model's own value whose axis this value's axis is, for use in messages: values that layouts and expansions
/// insert have names of their own.
const Value* of_model(const Value* value, size_t axis) {
    const auto is_like = [&](const Value* source) {
        return source && source->type && source->type->rank() == value->type->rank() &&
               source->type->shape[axis] == value->type->shape[axis];
    };
    for (const Node* node = value->producer; node; node = value->producer) {
        const bool is_own = !node->origin.empty() || node->domain == own_domain;
        if (!is_own || node->inputs.empty() || !is_like(node->inputs[0])) break;
        value = node->inputs[0];
    }
    return value;
}

bool is_taken(Takes takes, ElementType type) {
    switch (takes) {
    case Takes::floats: return is_float(type);
    case Takes::integers: return is_integer(type);
    case Takes::numbers: return is_float(type) || is_integer(type);
    case Takes::booleans: return type == ElementType::boolean;
    default: return true;
    }
}

}  // namespace

void NodeGenerator::check_element_type(Takes takes, size_t i) const {
    static constexpr std::string_view expected[] = {"a float type", "an integer type", "a number", "bool", ""};
    const ElementType type = in(i).element;
    if (is_taken(takes, type)) return;
    throw CompileError("input {} has type {}, expected {}", i, info(type).name, expected[static_cast<size_t>(takes)]);
}

void NodeGenerator::check_type_of_first(size_t i) const {
    if (in(i).element != in(0).element)
        throw CompileError("input {} has type {}, expected {} as input 0", i, info(in(i).element).name,
                           info(in(0).element).name);
}

void NodeGenerator::check_extent(std::vector<Check>& checks, size_t i, size_t axis, const Dim& expected,
                                 bool or_one) const {
    const Dim& own = in(i).shape.at(axis);
    if (prove_equal(own, expected) == Proof::yes || (or_one && own.is(1))) return;
    checks.push_back(
        {fmt::format("dim {} of '{}'", axis, of_model(input(i), axis)->name), own, expected, expected, or_one});
}

void NodeGenerator::check_broadcast(std::vector<Check>& checks, size_t i, size_t axes, const std::vector<Dim>& result,
                                    size_t first) const {
    for (size_t axis = 0; axis < axes && first + axis < result.size(); ++axis)
        check_extent(checks, i, axis, result[first + axis], true);
}

namespace {

/// An extent as two factors: a flag that is 0 if it is empty and else 1, and its value if it is not empty.
std::pair<Dim, Dim> split_extent(const Dim& extent) {
    for (const std::vector<Dim>& atoms : extent.products()) {
        for (const Dim& atom : atoms) {
            const bool is_flag = atom.lower_bound() == 0 && atom.upper_bound() == 1;
            const auto rest = is_flag ? exact_div(extent, atom) : std::nullopt;
            if (rest && rest->lower_bound().value_or(-1) >= 0) return {atom, *rest};
        }
    }
    return {1, extent};
}

/// The broadcast extent, if it may be known only at run time whether the two are equal or one is 1.
Dim broadcast_extent(const Dim& p, const Dim& q) {
    const auto is_certain = [](const Dim& extent) { return prove_less_equal(2, extent) == Proof::yes; };
    if (p.constant() && is_certain(p)) return p;
    if (is_certain(q)) return q;
    if (is_certain(p) || prove_equal(p, q) == Proof::yes) return p;
    // 0 and 1 give 0. Broadcasting an extent that has been broadcast already, however often, gives the same result.
    const auto [some_p, most_p] = split_extent(p);
    const auto [some_q, most_q] = split_extent(q);
    return max(most_p, most_q) * min(min(min(min(Dim(1), some_p), some_q), most_p), most_q);
}

}  // namespace

std::vector<Dim> broadcast(const std::vector<Dim>& a, const std::vector<Dim>& b) {
    const std::vector<Dim>&longer = a.size() >= b.size() ? a : b, &shorter = a.size() >= b.size() ? b : a;
    std::vector<Dim> result = longer;
    const size_t offset = longer.size() - shorter.size();
    for (size_t i = 0; i < shorter.size(); ++i) {
        const Dim &p = longer[offset + i], &q = shorter[i];
        if (q.is(1)) continue;
        if (p.is(1)) {
            result[offset + i] = q;
        } else if (prove_equal(p, q) == Proof::no && prove_equal(p, 1) == Proof::no && prove_equal(q, 1) == Proof::no) {
            throw CompileError("shapes {} and {} cannot be broadcast together", shape_text(a), shape_text(b));
        } else {
            result[offset + i] = broadcast_extent(p, q);
        }
    }
    return result;
}

}  // namespace onnx2halide
