#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace onnx2halide {

/// The answer to a question about dims whose symbols have no values yet.
enum class Proof { no, yes, unknown };

/// What a user specifies for a dim that a model leaves open: bounds, both included, or one number if they are equal.
struct DimRange {
    int64_t min, max;
    bool operator==(const DimRange&) const = default;
    /// `8` or `1..32`
    std::string text() const { return std::to_string(min) + (min == max ? "" : ".." + std::to_string(max)); }
};

/// The language that the text of a dim is in: Halide's integer division rounds down, C's truncates.
enum class DimSyntax { halide, c };

enum class AtomKind;

/// A 64-bit integer expression over named symbols: a sum of products of atoms, kept in a canonical order. An atom is a
/// symbol, a floor division, a remainder, a minimum, a maximum or an extent (see extent_of).
class Dim {
public:
    static constexpr int64_t unbounded = std::numeric_limits<int32_t>::max();

    Dim(int64_t value = 0);  // NOLINT: a number is a dimension

    /// A named number in [min, max] that is not known at compile time, such as an open dim.
    static Dim symbol(const std::string& name, int64_t min = 1, int64_t max = unbounded);

    std::optional<int64_t> constant() const;
    /// The constant. Throws CompileError if the dim is not one, as in kernels that serve all sizes.
    int64_t number() const;
    bool is(int64_t value) const { return constant() == value; }

    /// Bounds on the value that follow from those of the symbols; nullopt where there is none.
    std::pair<std::optional<int64_t>, std::optional<int64_t>> bounds() const;
    /// The number n of an extent_of(n), times its constant factor; nullopt for any other dim.
    std::optional<Dim> number_of_extent() const;
    std::optional<int64_t> lower_bound() const { return bounds().first; }
    std::optional<int64_t> upper_bound() const { return bounds().second; }

    /// The names of all symbols in the expression.
    std::set<std::string> symbols() const;

    /// The atoms of each term, with repetition.
    std::vector<std::vector<Dim>> products() const;

    /// The largest magnitude among the factors of its terms, the constant term excepted.
    int64_t largest_factor() const;

    /// The expression with these symbols replaced by their values.
    Dim substitute(const std::map<std::string, Dim>& values) const;

    /// The expression with every atom, such as batch or max(batch, 4), replaced by the result of `name`.
    Dim with_named_atoms(const std::function<Dim(const Dim& atom)>& name) const;

    /// `(batch * 12 + 1)`, in parentheses unless it is a constant or a single atom.
    std::string text(DimSyntax syntax = DimSyntax::halide) const;

    Dim& operator+=(const Dim& other) { return *this = *this + other; }
    Dim& operator*=(const Dim& other) { return *this = *this * other; }
    friend Dim operator+(const Dim& a, const Dim& b);
    friend Dim operator-(const Dim& a, const Dim& b);
    friend Dim operator*(const Dim& a, const Dim& b);
    friend Dim operator-(const Dim& a) { return a * Dim(-1); }
    friend Dim floor_div(const Dim& a, const Dim& b);
    friend Dim ceil_div(const Dim& a, const Dim& b);
    /// a − b · floor(a / b)
    friend Dim floor_mod(const Dim& a, const Dim& b);
    friend Dim min(const Dim& a, const Dim& b);
    friend Dim max(const Dim& a, const Dim& b);
    /// The number as an extent: 0 or more, since it is an error at run time if an extent is negative.
    friend Dim extent_of(const Dim& number);
    /// 1 if both are the same number, else 0.
    friend Dim is_equal(const Dim& a, const Dim& b);

    /// a / b if b divides a as a polynomial with integers as factors, else nullopt. Taken to be right for a b of 0,
    /// too.
    friend std::optional<Dim> exact_div(const Dim& a, const Dim& b);

    /// Whether both are the same expression, where extent_of(n) is the same as n. Different expressions may still have
    /// equal values: see prove_equal.
    friend bool operator==(const Dim& a, const Dim& b);

    friend Proof prove_equal(const Dim& a, const Dim& b);
    friend Proof prove_less_equal(const Dim& a, const Dim& b);

    struct Atom;

private:
    using AtomPtr = std::shared_ptr<const Atom>;
    /// The atoms of a term, with repetition, sorted by key; empty for the constant term.
    using Product = std::vector<AtomPtr>;
    struct ProductLess {
        bool operator()(const Product& a, const Product& b) const;
    };
    using Terms = std::map<Product, int64_t, ProductLess>;
    Terms terms_;

    static Dim of_atom(AtomPtr atom);
    static Dim operation(AtomKind kind, const Dim& a, const Dim& b);
    void add(const Product& product, int64_t factor);
    /// The highest term in an order that products by the same term keep. There must be a term.
    const Terms::value_type& leading_term() const;
    /// n if this is extent_of(n), else this dim.
    const Dim& without_extent() const;
};

using std::max;
using std::min;
bool operator==(const Dim& a, const Dim& b);
Dim operator+(const Dim& a, const Dim& b);
Dim operator-(const Dim& a, const Dim& b);
Dim operator*(const Dim& a, const Dim& b);
Dim floor_div(const Dim& a, const Dim& b);
Dim ceil_div(const Dim& a, const Dim& b);
/// Rounds up; a >= 0 and b >= 1.
inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
Dim floor_mod(const Dim& a, const Dim& b);
Dim min(const Dim& a, const Dim& b);
Dim max(const Dim& a, const Dim& b);
Dim extent_of(const Dim& number);
Dim is_equal(const Dim& a, const Dim& b);
std::optional<Dim> exact_div(const Dim& a, const Dim& b);
Proof prove_equal(const Dim& a, const Dim& b);
Proof prove_less_equal(const Dim& a, const Dim& b);

/// The symbol for the number of threads that share a run's tasks. No dim of a model has this name.
constexpr const char* thread_count_symbol = "threads";

/// The product of all dims, such as the number of elements of a tensor.
Dim product(std::span<const Dim> dims);

/// How many dims are not 1.
size_t count_nontrivial(std::span<const Dim> dims);

/// `1x3x224x224`, or `[batch, 3, ((height + 1) / 2)]` if any dim is not constant.
std::string shape_text(const std::vector<Dim>& dims);

}  // namespace onnx2halide
