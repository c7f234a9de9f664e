#include "compiler/graph/dim_atom.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "compiler/graph/error.h"

namespace onnx2halide {

namespace {

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

/// The result of arithmetic, or nullopt if a factor overflows 64 bits.
template <typename Compute>
std::optional<Dim> unless_it_overflows(Compute compute) {
    try {
        return compute();
    } catch (const CompileError&) {
        return std::nullopt;
    }
}

std::optional<Dim> difference(const Dim& a, const Dim& b) {
    return unless_it_overflows([&] { return a - b; });
}

}  // namespace

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

Dim Dim::operation(AtomKind kind, const Dim& a, const Dim& b) { return of_atom(Atom::operation(kind, a, b)); }

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

int64_t Dim::number() const {
    if (const auto number = constant()) return *number;
    throw CompileError("an extent is {}, expected a constant", text());
}

std::pair<std::optional<int64_t>, std::optional<int64_t>> Dim::bounds() const {
    Interval sum{0, 0};
    for (const auto& [product, factor] : terms_) {
        Interval range{1, 1};
        for (const AtomPtr& atom : product) range = multiply(range, atom->range);
        sum = onnx2halide::add(sum, scale(range, factor));
    }
    return {sum.min, sum.max};
}

std::optional<Dim> Dim::number_of_extent() const {
    const AtomPtr atom = Atom::multiplied(*this);
    return atom && atom->kind == AtomKind::extent ? std::optional(atom->a * terms_.begin()->second) : std::nullopt;
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
        case AtomKind::symbol: {
            const auto found = values.find(atom->key);
            return found == values.end() ? of_atom(atom) : found->second;
        }
        case AtomKind::div: return floor_div(atom->a.substitute(values), atom->b.substitute(values));
        case AtomKind::mod: return floor_mod(atom->a.substitute(values), atom->b.substitute(values));
        case AtomKind::min: return min(atom->a.substitute(values), atom->b.substitute(values));
        case AtomKind::extent: return extent_of(atom->a.substitute(values));
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
        for (const AtomPtr& atom : product) term *= name(of_atom(atom));
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

const Dim& Dim::without_extent() const {
    if (terms_.size() != 1) return *this;
    const auto& [product, factor] = *terms_.begin();
    const bool is_extent = factor == 1 && product.size() == 1 && product.front()->kind == AtomKind::extent;
    return is_extent ? product.front()->a : *this;
}

bool operator==(const Dim& a, const Dim& b) {
    const auto has_same_key = [](const Dim::AtomPtr& p, const Dim::AtomPtr& q) { return p == q || p->key == q->key; };
    const auto is_same_term = [&](const auto& p, const auto& q) {
        return p.second == q.second &&
               std::equal(p.first.begin(), p.first.end(), q.first.begin(), q.first.end(), has_same_key);
    };
    const auto &left = a.without_extent().terms_, &right = b.without_extent().terms_;
    return std::equal(left.begin(), left.end(), right.begin(), right.end(), is_same_term);
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

const Dim::Terms::value_type& Dim::leading_term() const {
    return *std::max_element(terms_.begin(), terms_.end(), [](const auto& p, const auto& q) {
        return p.first.size() == q.first.size() ? ProductLess()(q.first, p.first) : p.first.size() < q.first.size();
    });
}

std::optional<Dim> exact_div(const Dim& a, const Dim& b) {
    if (a == b && !a.is(0)) return 1;
    if (b.terms_.empty()) return std::nullopt;
    // Long division of polynomials: that of the leading terms yields a term of the quotient.
    const auto& [divisor, divisor_factor] = b.leading_term();
    Dim result, remainder = a;
    while (!remainder.terms_.empty()) {
        const auto& [product, factor] = remainder.leading_term();
        Dim::Product rest;
        std::set_difference(product.begin(), product.end(), divisor.begin(), divisor.end(), std::back_inserter(rest),
                            [](const auto& p, const auto& q) { return p->key < q->key; });
        if (factor == INT64_MIN && divisor_factor == -1) return std::nullopt;
        if (rest.size() + divisor.size() != product.size() || factor % divisor_factor != 0) return std::nullopt;
        Dim term;
        term.add(rest, factor / divisor_factor);
        const auto less = unless_it_overflows([&] { return remainder - term * b; });
        if (!less) return std::nullopt;
        result += term;
        remainder = *less;
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
        return whole + Dim::operation(AtomKind::div, rest, b);
    }
    return Dim::operation(AtomKind::div, a, b);
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
    if (!y) return Dim::operation(AtomKind::mod, a, b);
    if (*y < 0) return -floor_mod(-a, -b);
    Dim rest;
    for (const auto& [product, factor] : a.terms_) rest.add(product, factor - floor_div(factor, *y) * *y);
    if (rest.constant()) return *rest.constant() % *y;
    return Dim::operation(AtomKind::mod, rest, b);
}

Dim min(const Dim& a, const Dim& b) {
    if (prove_less_equal(a, b) == Proof::yes) return a;
    if (prove_less_equal(b, a) == Proof::yes) return b;
    return Dim::Atom::extreme(AtomKind::min, a, b);
}

Dim max(const Dim& a, const Dim& b) {
    if (prove_less_equal(a, b) == Proof::yes) return b;
    if (prove_less_equal(b, a) == Proof::yes) return a;
    return Dim::Atom::extreme(AtomKind::max, a, b);
}

Dim extent_of(const Dim& number) {
    if (number.lower_bound().value_or(-1) >= 0 || number.constant()) return number;
    // A common factor stays outside of the atom, where divisions can cancel it.
    int64_t factor = 0;
    for (const auto& [product, own] : number.terms_) factor = own == INT64_MIN ? 1 : std::gcd(factor, own);
    return Dim::operation(AtomKind::extent, *exact_div(number, factor), 0) * factor;
}

Dim is_equal(const Dim& a, const Dim& b) {
    const Proof proof = prove_equal(a, b);
    if (proof != Proof::unknown) return proof == Proof::yes ? 1 : 0;
    // The outer maxima make the bounds 0 and 1 known.
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

Dim product(std::span<const Dim> dims) {
    Dim result = 1;
    for (const Dim& dim : dims) result *= dim;
    return result;
}

size_t count_nontrivial(std::span<const Dim> dims) {
    return std::ranges::count_if(dims, [](const Dim& dim) { return !dim.is(1); });
}

std::string shape_text(const std::vector<Dim>& dims) {
    if (dims.empty()) return "scalar";
    std::vector<std::string> texts;
    for (const Dim& dim : dims) texts.push_back(dim.text());
    const bool is_known = std::all_of(dims.begin(), dims.end(), [](const Dim& dim) { return dim.constant(); });
    return is_known ? fmt::format("{}", fmt::join(texts, "x")) : fmt::format("[{}]", fmt::join(texts, ", "));
}

}  // namespace onnx2halide
