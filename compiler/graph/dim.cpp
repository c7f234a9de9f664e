#include "compiler/graph/dim.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "compiler/graph/error.h"

namespace onnx2halide {

namespace {

enum Kind { symbol_kind, div_kind, mod_kind, min_kind, max_kind, extent_kind };

int64_t checked_add(int64_t a, int64_t b) {
    int64_t sum;
    if (__builtin_add_overflow(a, b, &sum)) throw CompileError("a dimension exceeds 64 bits");
    return sum;
}

int64_t checked_multiply(int64_t a, int64_t b) {
    int64_t product;
    if (__builtin_mul_overflow(a, b, &product)) throw CompileError("a dimension exceeds 64 bits");
    return product;
}

int64_t floor_div(int64_t a, int64_t b) {
    if (b == -1) return checked_multiply(a, b);  // the one quotient that may not fit
    return a / b - ((a % b != 0) && ((a < 0) != (b < 0)));
}

/// A closed interval; a missing end is unbounded.
struct Range {
    std::optional<int64_t> min, max;
};

/// a − b, nothing where 64 bits cannot hold it.
std::optional<Dim> difference(const Dim& a, const Dim& b) {
    try {
        return a - b;
    } catch (const CompileError&) {
        return std::nullopt;
    }
}

/// The product of two ends, nothing where it cannot be held in 64 bits.
std::optional<int64_t> end_product(int64_t a, int64_t b) {
    int64_t product;
    return __builtin_mul_overflow(a, b, &product) ? std::nullopt : std::optional(product);
}

/// Intervals of dims: products of non-negative factors are what occurs, anything else is unbounded.
Range multiply(const Range& a, const Range& b) {
    if (!a.min || !b.min || *a.min < 0 || *b.min < 0) return {};
    Range result{end_product(*a.min, *b.min), std::nullopt};
    if (a.max && b.max) result.max = end_product(*a.max, *b.max);
    return result;
}

Range add(const Range& a, const Range& b) {
    const auto sum = [](std::optional<int64_t> p, std::optional<int64_t> q) {
        int64_t result;
        return p && q && !__builtin_add_overflow(*p, *q, &result) ? std::optional(result) : std::nullopt;
    };
    return {sum(a.min, b.min), sum(a.max, b.max)};
}

Range scale(const Range& a, int64_t factor) {
    const auto times = [&](std::optional<int64_t> end) { return end ? end_product(*end, factor) : std::nullopt; };
    return factor >= 0 ? Range{times(a.min), times(a.max)} : Range{times(a.max), times(a.min)};
}

}  // namespace

/// Operands are shared, so that an expression may be far longer than what holds it: what is asked of one again and
/// again is found once, when it is made.
struct Dim::Atom {
    Kind kind;
    Dim a, b;                       // operands; of a symbol none
    std::string key;                // a symbol's name; else its text in Halide's syntax
    std::set<std::string> symbols;  // in it
    Range range;                    // of its values

    static AtomPtr symbol(const std::string& name, const Range& range);
    static AtomPtr operation(Kind kind, const Dim& a, const Dim& b);
    /// The minimum or maximum of two dims. Of the operands of nested ones each stands once, those that the others make
    /// idle not at all, and numbers last.
    static Dim extreme(Kind kind, const Dim& a, const Dim& b);
    /// The atom that a dim is times a number of 1 or more, null where it is something else.
    static AtomPtr multiplied(const Dim& dim);
    static AtomPtr alone(const Dim& dim);
    /// The quotient among the terms of a dim, where there is one alone: floor(a / b) for a number b.
    static AtomPtr quotient_in(const Dim& sum);
    /// Whether a ≤ b follows from the operands of a minimum or maximum.
    static bool is_ordered(const Dim& a, const Dim& b);

    std::string text(DimSyntax syntax) const;

private:
    Range range_of_operation() const;
    static void collect(Kind kind, const Dim& dim, std::vector<Dim>& operands);
};

namespace {

Range range_of(const Dim& dim) {
    const auto [min, max] = dim.bounds();
    return {min, max};
}

}  // namespace

Dim::AtomPtr Dim::Atom::symbol(const std::string& name, const Range& range) {
    return std::make_shared<Atom>(Atom{symbol_kind, 0, 0, name, {name}, range});
}

Dim::AtomPtr Dim::Atom::operation(Kind kind, const Dim& a, const Dim& b) {
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
        const bool is_quotient = product.size() == 1 && factor == 1 && product.front()->kind == div_kind &&
                                 product.front()->b.constant().value_or(0) > 0;
        if (!is_quotient) continue;
        if (found) return nullptr;
        found = product.front();
    }
    return found;
}

void Dim::Atom::collect(Kind kind, const Dim& dim, std::vector<Dim>& operands) {
    const AtomPtr atom = alone(dim);
    if (!atom || atom->kind != kind) return operands.push_back(dim);
    collect(kind, atom->a, operands);
    collect(kind, atom->b, operands);
}

Dim Dim::Atom::extreme(Kind kind, const Dim& a, const Dim& b) {
    std::vector<Dim> all, operands;
    collect(kind, a, all);
    collect(kind, b, all);
    const auto is_idle = [&](const Dim& dim, const Dim& beside) {
        return (kind == max_kind ? prove_less_equal(dim, beside) : prove_less_equal(beside, dim)) == Proof::yes;
    };
    for (const Dim& dim : all) {
        if (std::any_of(operands.begin(), operands.end(), [&](const Dim& other) { return is_idle(dim, other); }))
            continue;
        std::erase_if(operands, [&](const Dim& other) { return is_idle(other, dim); });
        operands.push_back(dim);
    }
    std::sort(operands.begin(), operands.end(), [](const Dim& p, const Dim& q) {
        const bool is_number = p.constant().has_value(), is_other = q.constant().has_value();
        return is_number == is_other ? p.key() < q.key() : is_other;
    });
    return std::accumulate(operands.begin() + 1, operands.end(), operands.front(),
                           [&](const Dim& p, const Dim& q) { return Dim::operation(kind, p, q); });
}

bool Dim::Atom::is_ordered(const Dim& a, const Dim& b) {
    const auto is_proved = [](const Dim& p, const Dim& q) { return prove_less_equal(p, q) == Proof::yes; };
    const AtomPtr left = alone(a), right = alone(b);
    // In this order no pair of operands comes up twice.
    if (left && left->kind == max_kind) return is_proved(left->a, b) && is_proved(left->b, b);
    if (right && right->kind == min_kind) return is_proved(a, right->a) && is_proved(a, right->b);
    if (left && left->kind == min_kind) return is_proved(left->a, b) || is_proved(left->b, b);
    return right && right->kind == max_kind && (is_proved(a, right->a) || is_proved(a, right->b));
}

Range Dim::Atom::range_of_operation() const {
    const Range left = range_of(a), right = range_of(b);
    const bool positive = right.min && *right.min > 0;
    switch (kind) {
    case div_kind:
        if (!positive || !left.min || *left.min < 0) return {};
        return {right.max ? *left.min / *right.max : 0,
                left.max ? std::optional(*left.max / *right.min) : std::nullopt};
    case mod_kind:
        if (!positive) return {};
        return {0, right.max ? std::optional(*right.max - 1) : std::nullopt};
    case min_kind: {
        Range result;
        if (left.min && right.min) result.min = std::min(*left.min, *right.min);
        if (left.max || right.max) result.max = std::min(left.max.value_or(INT64_MAX), right.max.value_or(INT64_MAX));
        return result;
    }
    case extent_kind: return {std::max<int64_t>(0, left.min.value_or(0)), left.max};
    default: {
        Range result;
        if (left.min || right.min) result.min = std::max(left.min.value_or(INT64_MIN), right.min.value_or(INT64_MIN));
        if (left.max && right.max) result.max = std::max(*left.max, *right.max);
        return result;
    }
    }
}

std::string Dim::Atom::text(DimSyntax syntax) const {
    const bool c = syntax == DimSyntax::c;
    if (!key.empty() && (!c || kind == symbol_kind)) return key;
    switch (kind) {
    case div_kind:
        return c ? fmt::format("floor_div({}, {})", a.text(syntax), b.text(syntax))
                 : fmt::format("({} / {})", a.text(syntax), b.text(syntax));
    case mod_kind:
        return c ? fmt::format("floor_mod({}, {})", a.text(syntax), b.text(syntax))
                 : fmt::format("({} % {})", a.text(syntax), b.text(syntax));
    case extent_kind: return a.text(syntax);
    case min_kind: return fmt::format("{}({}, {})", c ? "min_dim" : "min", a.text(syntax), b.text(syntax));
    default: return fmt::format("{}({}, {})", c ? "max_dim" : "max", a.text(syntax), b.text(syntax));
    }
}

bool Dim::ProductLess::operator()(const Product& a, const Product& b) const {
    return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(),
                                        [](const AtomPtr& p, const AtomPtr& q) { return p->key < q->key; });
}

Dim::Dim(int64_t value) {
    if (value != 0) terms_[{}] = value;
}

Dim Dim::symbol(const std::string& name, int64_t min, int64_t max) { return of_atom(Atom::symbol(name, {min, max})); }

Dim Dim::of_atom(AtomPtr atom) {
    Dim result;
    result.terms_[{std::move(atom)}] = 1;
    return result;
}

Dim Dim::operation(int kind, const Dim& a, const Dim& b) {
    return of_atom(Atom::operation(static_cast<Kind>(kind), a, b));
}

void Dim::add(const Product& product, int64_t factor) {
    const auto [term, is_new] = terms_.try_emplace(product, factor);
    if (!is_new) term->second = checked_add(term->second, factor);
    if (term->second == 0) terms_.erase(term);
}

std::optional<int64_t> Dim::constant() const {
    if (terms_.empty()) return 0;
    if (terms_.size() == 1 && terms_.begin()->first.empty()) return terms_.begin()->second;
    return std::nullopt;
}

std::pair<std::optional<int64_t>, std::optional<int64_t>> Dim::bounds() const {
    Range sum{0, 0};
    for (const auto& [product, factor] : terms_) {
        Range range{1, 1};
        for (const AtomPtr& atom : product) range = multiply(range, atom->range);
        sum = onnx2halide::add(sum, scale(range, factor));
    }
    return {sum.min, sum.max};
}

std::optional<Dim> Dim::number_of_extent() const {
    const AtomPtr atom = Atom::multiplied(*this);
    return atom && atom->kind == extent_kind ? std::optional(atom->a * terms_.begin()->second) : std::nullopt;
}

std::set<std::string> Dim::symbols() const {
    std::set<std::string> result;
    for (const auto& [product, factor] : terms_) {
        for (const AtomPtr& atom : product) result.insert(atom->symbols.begin(), atom->symbols.end());
    }
    return result;
}

std::vector<std::vector<Dim>> Dim::products() const {
    std::vector<std::vector<Dim>> result;
    for (const auto& [product, factor] : terms_) {
        std::vector<Dim>& atoms = result.emplace_back();
        for (const AtomPtr& atom : product) atoms.push_back(of_atom(atom));
    }
    return result;
}

int64_t Dim::largest_factor() const {
    int64_t largest = 0;
    for (const auto& [product, factor] : terms_) {
        if (!product.empty()) largest = std::max(largest, factor == INT64_MIN ? INT64_MAX : std::abs(factor));
    }
    return largest;
}

Dim Dim::substitute(const std::map<std::string, Dim>& values) const {
    const auto replaced = [&](const AtomPtr& atom) -> Dim {
        switch (atom->kind) {
        case symbol_kind: {
            const auto found = values.find(atom->key);
            return found == values.end() ? of_atom(atom) : found->second;
        }
        case div_kind: return floor_div(atom->a.substitute(values), atom->b.substitute(values));
        case mod_kind: return floor_mod(atom->a.substitute(values), atom->b.substitute(values));
        case min_kind: return min(atom->a.substitute(values), atom->b.substitute(values));
        case extent_kind: return extent_of(atom->a.substitute(values));
        default: return max(atom->a.substitute(values), atom->b.substitute(values));
        }
    };
    Dim sum;
    for (const auto& [product, factor] : terms_) {
        Dim term = factor;
        for (const AtomPtr& atom : product) term *= replaced(atom);
        sum += term;
    }
    return sum;
}

Dim Dim::with_named_atoms(const std::function<Dim(const Dim& atom)>& name) const {
    Dim sum;
    for (const auto& [product, factor] : terms_) {
        Dim term = factor;
        for (const AtomPtr& atom : product) term *= atom->kind == symbol_kind ? of_atom(atom) : name(of_atom(atom));
        sum += term;
    }
    return sum;
}

std::string Dim::text(DimSyntax syntax) const {
    if (const auto value = constant()) return fmt::to_string(*value);
    std::string result;
    // The constant term sorts first; a person writes it last.
    const auto write = [&](const Product& product, int64_t factor) {
        if (!result.empty()) result += factor < 0 ? " - " : " + ";
        if (result.empty() && factor < 0) result += "-";
        const std::string magnitude =
            fmt::to_string(factor < 0 ? -static_cast<uint64_t>(factor) : static_cast<uint64_t>(factor));
        std::string term;
        for (const AtomPtr& atom : product) term += (term.empty() ? "" : " * ") + atom->text(syntax);
        if (term.empty()) {
            term = magnitude;
        } else if (magnitude != "1") {
            term += " * " + magnitude;
        }
        result += term;
    };
    for (const auto& [product, factor] : terms_) {
        if (!product.empty()) write(product, factor);
    }
    if (const auto rest = terms_.find({}); rest != terms_.end()) write({}, rest->second);
    const bool simple = terms_.size() == 1 && terms_.begin()->second > 0;
    const bool one_atom = simple && terms_.begin()->first.size() == 1 && terms_.begin()->second == 1;
    return one_atom ? result : "(" + result + ")";
}

Dim operator+(const Dim& a, const Dim& b) {
    Dim sum = a;
    for (const auto& [product, factor] : b.terms_) sum.add(product, factor);
    return sum;
}

Dim operator-(const Dim& a, const Dim& b) { return a + -b; }

Dim operator*(const Dim& a, const Dim& b) {
    constexpr size_t most = 10'000;
    if (a.terms_.size() * b.terms_.size() > most)
        throw CompileError("an extent is a sum of more than {} terms: fix dims that it depends on", most);
    Dim result;
    for (const auto& [left, left_factor] : a.terms_) {
        for (const auto& [right, right_factor] : b.terms_) {
            Dim::Product both;
            std::merge(left.begin(), left.end(), right.begin(), right.end(), std::back_inserter(both),
                       [](const auto& p, const auto& q) { return p->key < q->key; });
            result.add(both, checked_multiply(left_factor, right_factor));
        }
    }
    return result;
}

std::optional<Dim> exact_div(const Dim& a, const Dim& b) {
    if (a == b && !a.is(0)) return 1;
    if (b.terms_.size() != 1) return std::nullopt;
    const auto& [divisor, divisor_factor] = *b.terms_.begin();
    Dim result;
    for (const auto& [product, factor] : a.terms_) {
        Dim::Product rest;
        std::set_difference(product.begin(), product.end(), divisor.begin(), divisor.end(), std::back_inserter(rest),
                            [](const auto& p, const auto& q) { return p->key < q->key; });
        if (factor == INT64_MIN && divisor_factor == -1) return std::nullopt;
        if (rest.size() + divisor.size() != product.size() || factor % divisor_factor != 0) return std::nullopt;
        result.add(rest, factor / divisor_factor);
    }
    return result;
}

Dim floor_div(const Dim& a, const Dim& b) {
    const auto x = a.constant(), y = b.constant();
    if (b.is(0)) throw CompileError("a dimension is divided by 0");
    if (x && y) return floor_div(*x, *y);
    if (const auto quotient = exact_div(a, b)) return *quotient;
    if (y && *y < 0) return floor_div(-a, -b);
    if (y) {  // (y·p + rest) / y = p + rest / y
        Dim whole, rest;
        for (const auto& [product, factor] : a.terms_) {
            whole.add(product, floor_div(factor, *y));
            rest.add(product, factor - floor_div(factor, *y) * *y);
        }
        if (rest.constant()) return whole + floor_div(*rest.constant(), *y);
        // floor((floor(x / n) + t) / y) = floor((x + n·t) / (n·y))
        const Dim::AtomPtr inner = Dim::Atom::quotient_in(rest);
        if (inner && max(*y, *inner->b.constant()) < Dim::unbounded)
            return whole + floor_div(inner->a + (rest - Dim::of_atom(inner)) * inner->b, inner->b * b);
        return whole + Dim::operation(div_kind, rest, b);
    }
    return Dim::operation(div_kind, a, b);
}

Dim ceil_div(const Dim& a, const Dim& b) {
    const auto y = b.constant();
    if (y && *y < 0) return ceil_div(-a, -b);
    return y && *y > 0 ? floor_div(a + (*y - 1), b) : -floor_div(-a, b);
}

Dim floor_mod(const Dim& a, const Dim& b) {
    if (b.is(0)) throw CompileError("a dimension is divided by 0");
    if (exact_div(a, b)) return 0;
    const auto y = b.constant();
    if (!y) return Dim::operation(mod_kind, a, b);
    if (*y < 0) return -floor_mod(-a, -b);
    Dim rest;
    for (const auto& [product, factor] : a.terms_) rest.add(product, factor - floor_div(factor, *y) * *y);
    if (rest.constant()) return *rest.constant() % *y;
    return Dim::operation(mod_kind, rest, b);
}

Dim min(const Dim& a, const Dim& b) {
    if (prove_less_equal(a, b) == Proof::yes) return a;
    if (prove_less_equal(b, a) == Proof::yes) return b;
    return Dim::Atom::extreme(min_kind, a, b);
}

Dim max(const Dim& a, const Dim& b) {
    if (prove_less_equal(a, b) == Proof::yes) return b;
    if (prove_less_equal(b, a) == Proof::yes) return a;
    return Dim::Atom::extreme(max_kind, a, b);
}

Dim extent_of(const Dim& number) {
    if (number.lower_bound().value_or(-1) >= 0 || number.constant()) return number;
    // A common factor stays where divisions find it.
    int64_t factor = 0;
    for (const auto& [product, own] : number.terms_) factor = own == INT64_MIN ? 1 : std::gcd(factor, own);
    return Dim::operation(extent_kind, *exact_div(number, factor), 0) * factor;
}

Dim is_equal(const Dim& a, const Dim& b) {
    const Proof proof = prove_equal(a, b);
    if (proof != Proof::unknown) return proof == Proof::yes ? 1 : 0;
    // The outer maxima tell the bounds.
    return max(Dim(0), 1 - max(Dim(0), max(a - b, b - a)));
}

Proof prove_less_equal(const Dim& a, const Dim& b) {
    if (a.constant() && b.constant()) return *a.constant() <= *b.constant() ? Proof::yes : Proof::no;
    const auto rest = difference(b, a);
    if (!rest) return Proof::unknown;
    const auto [low, high] = rest->bounds();
    if (low && *low >= 0) return Proof::yes;
    if (high && *high < 0) return Proof::no;
    return Dim::Atom::is_ordered(a, b) ? Proof::yes : Proof::unknown;
}

Proof prove_equal(const Dim& a, const Dim& b) {
    if (a.constant() && b.constant()) return *a.constant() == *b.constant() ? Proof::yes : Proof::no;
    const auto rest = difference(a, b);
    if (!rest) return Proof::unknown;
    if (rest->is(0)) return Proof::yes;
    const auto [low, high] = rest->bounds();
    if ((low && *low > 0) || (high && *high < 0)) return Proof::no;
    return Proof::unknown;
}

Dim product(const std::vector<Dim>& dims) {
    Dim result = 1;
    for (const Dim& dim : dims) result *= dim;
    return result;
}

std::string shape_text(const std::vector<Dim>& dims) {
    if (dims.empty()) return "scalar";
    std::string result;
    for (const Dim& dim : dims) result += (result.empty() ? "" : "x") + dim.text();
    return result;
}

}  // namespace onnx2halide
