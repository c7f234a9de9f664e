#include "compiler/graph/dim_atom.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "compiler/graph/error.h"

namespace onnx2halide {

namespace {

/// The product of two ends, or nullopt if it overflows 64 bits.
std::optional<int64_t> end_product(int64_t a, int64_t b) {
    int64_t product;
    return __builtin_mul_overflow(a, b, &product) ? std::nullopt : std::optional(product);
}

Interval range_of(const Dim& dim) {
    const auto [min, max] = dim.bounds();
    return {min, max};
}

}  // namespace

Interval multiply(const Interval& a, const Interval& b) {
    if (!a.min || !b.min || *a.min < 0 || *b.min < 0) return {};
    Interval result{end_product(*a.min, *b.min), std::nullopt};
    if (a.max && b.max) result.max = end_product(*a.max, *b.max);
    return result;
}

Interval add(const Interval& a, const Interval& b) {
    const auto sum = [](std::optional<int64_t> p, std::optional<int64_t> q) {
        int64_t result;
        return p && q && !__builtin_add_overflow(*p, *q, &result) ? std::optional(result) : std::nullopt;
    };
    return {sum(a.min, b.min), sum(a.max, b.max)};
}

Interval scale(const Interval& a, int64_t factor) {
    const auto times = [&](std::optional<int64_t> end) { return end ? end_product(*end, factor) : std::nullopt; };
    return factor >= 0 ? Interval{times(a.min), times(a.max)} : Interval{times(a.max), times(a.min)};
}

Dim::AtomPtr Dim::Atom::symbol(const std::string& name, const Interval& range) {
    return std::make_shared<Atom>(Atom{AtomKind::symbol, 0, 0, name, {name}, range});
}

Dim::AtomPtr Dim::Atom::operation(AtomKind kind, const Dim& a, const Dim& b) {
    Atom atom{kind, a, b, "", a.symbols(), {}};
    atom.symbols.merge(b.symbols());
    atom.key = atom.text(DimSyntax::halide);
    constexpr size_t most = 20'000;
    if (atom.key.size() > most)
        throw CompileError("an extent is an expression of more than {} characters: fix dims that it depends on", most);
    atom.range = atom.range_of_operation();
    return std::make_shared<Atom>(std::move(atom));
}

Dim::AtomPtr Dim::Atom::multiplied(const Dim& dim) {
    if (dim.terms_.size() != 1) return nullptr;
    const auto& [product, factor] = *dim.terms_.begin();
    return product.size() == 1 && factor > 0 ? product.front() : nullptr;
}

Dim::AtomPtr Dim::Atom::alone(const Dim& dim) {
    const AtomPtr atom = multiplied(dim);
    return atom && dim.terms_.begin()->second == 1 ? atom : nullptr;
}

Dim::AtomPtr Dim::Atom::quotient_in(const Dim& sum) {
    AtomPtr found;
    for (const auto& [product, factor] : sum.terms_) {
        const bool is_quotient = product.size() == 1 && factor == 1 && product.front()->kind == AtomKind::div &&
                                 product.front()->b.constant().value_or(0) > 0;
        if (!is_quotient) continue;
        if (found) return nullptr;
        found = product.front();
    }
    return found;
}

void Dim::Atom::collect(AtomKind kind, const Dim& dim, std::vector<Dim>& operands) {
    const AtomPtr atom = alone(dim);
    if (!atom || atom->kind != kind) return operands.push_back(dim);
    collect(kind, atom->a, operands);
    collect(kind, atom->b, operands);
}

Dim Dim::Atom::extreme(AtomKind kind, const Dim& a, const Dim& b) {
    std::vector<Dim> all, operands;
    collect(kind, a, all);
    collect(kind, b, all);
    const auto is_idle = [&](const Dim& dim, const Dim& beside) {
        return (kind == AtomKind::max ? prove_less_equal(dim, beside) : prove_less_equal(beside, dim)) == Proof::yes;
    };
    for (const Dim& dim : all) {
        if (std::any_of(operands.begin(), operands.end(), [&](const Dim& other) { return is_idle(dim, other); }))
            continue;
        std::erase_if(operands, [&](const Dim& other) { return is_idle(other, dim); });
        operands.push_back(dim);
    }
    std::sort(operands.begin(), operands.end(), [](const Dim& p, const Dim& q) {
        const bool is_number = p.constant().has_value(), is_other = q.constant().has_value();
        return is_number == is_other ? p.text() < q.text() : is_other;
    });
    return std::accumulate(operands.begin() + 1, operands.end(), operands.front(),
                           [&](const Dim& p, const Dim& q) { return Dim::operation(kind, p, q); });
}

bool Dim::Atom::is_ordered(const Dim& a, const Dim& b) {
    const auto is_proved = [](const Dim& p, const Dim& q) { return prove_less_equal(p, q) == Proof::yes; };
    const AtomPtr left = alone(a), right = alone(b);
    // This order visits no pair of operands twice.
    if (left && left->kind == AtomKind::max) return is_proved(left->a, b) && is_proved(left->b, b);
    if (right && right->kind == AtomKind::min) return is_proved(a, right->a) && is_proved(a, right->b);
    if (left && left->kind == AtomKind::min) return is_proved(left->a, b) || is_proved(left->b, b);
    return right && right->kind == AtomKind::max && (is_proved(a, right->a) || is_proved(a, right->b));
}

Interval Dim::Atom::range_of_operation() const {
    const Interval left = range_of(a), right = range_of(b);
    const bool positive = right.min && *right.min > 0;
    switch (kind) {
    case AtomKind::div:
        if (!positive || !left.min || *left.min < 0) return {};
        return {right.max ? *left.min / *right.max : 0,
                left.max ? std::optional(*left.max / *right.min) : std::nullopt};
    case AtomKind::mod:
        if (!positive) return {};
        return {0, right.max ? std::optional(*right.max - 1) : std::nullopt};
    case AtomKind::min: {
        Interval result;
        if (left.min && right.min) result.min = std::min(*left.min, *right.min);
        if (left.max || right.max) result.max = std::min(left.max.value_or(INT64_MAX), right.max.value_or(INT64_MAX));
        return result;
    }
    case AtomKind::extent: return {std::max<int64_t>(0, left.min.value_or(0)), left.max};
    default: {
        Interval result;
        if (left.min || right.min) result.min = std::max(left.min.value_or(INT64_MIN), right.min.value_or(INT64_MIN));
        if (left.max && right.max) result.max = std::max(*left.max, *right.max);
        return result;
    }
    }
}

const Dim* Dim::Atom::indicated() const {
    const AtomPtr inner = kind == AtomKind::min && b.is(1) ? alone(a) : nullptr;
    return inner && inner->kind == AtomKind::max && inner->b.is(0) ? &inner->a : nullptr;
}

std::string Dim::Atom::text(DimSyntax syntax) const {
    const bool c = syntax == DimSyntax::c;
    if (!key.empty() && (!c || kind == AtomKind::symbol)) return key;
    // Halide would multiply the operands of extremes by factors such as strides, which may overflow.
    if (const Dim* positive = c ? nullptr : indicated())
        return fmt::format("select({} > 0, 1, 0)", positive->text(syntax));
    switch (kind) {
    case AtomKind::div:
        return c ? fmt::format("floor_div({}, {})", a.text(syntax), b.text(syntax))
                 : fmt::format("({} / {})", a.text(syntax), b.text(syntax));
    case AtomKind::mod:
        return c ? fmt::format("floor_mod({}, {})", a.text(syntax), b.text(syntax))
                 : fmt::format("({} % {})", a.text(syntax), b.text(syntax));
    case AtomKind::extent: return a.text(syntax);
    case AtomKind::min: return fmt::format("{}({}, {})", c ? "min_dim" : "min", a.text(syntax), b.text(syntax));
    default: return fmt::format("{}({}, {})", c ? "max_dim" : "max", a.text(syntax), b.text(syntax));
    }
}

}  // namespace onnx2halide
