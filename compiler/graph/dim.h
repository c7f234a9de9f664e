#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace onnx2halide {

/// Answer to a question about dimensions whose symbols are not known yet.
enum class Proof { no, yes, unknown };

/// What a user says of a dim that a model leaves open: a number, where both are the same, or bounds.
struct DimRange {
    int64_t min, max;
    bool operator==(const DimRange&) const = default;
    /// `8` or `1..32`
    std::string text() const { return std::to_string(min) + (min == max ? "" : ".." + std::to_string(max)); }
};

/// Where the text of a dimension goes: Halide divides by floor, C truncates.
enum class DimSyntax { halide, c };

enum class AtomKind;

/// A 64-bit integer expression over named symbols: a sum of products of atoms, sorted so that equal sums are the same.
/// An atom is a symbol, a floor division, a remainder, a minimum or a maximum.
class Dim {
public:
    static constexpr int64_t unbounded = std::numeric_limits<int32_t>::max();

    Dim(int64_t value = 0);  // NOLINT: a number is a dimension

    /// A named size that the caller of the compiled model chooses, within [min, max].
    static Dim symbol(const std::string& name, int64_t min = 1, int64_t max = unbounded);

    std::optional<int64_t> constant() const;
    bool is(int64_t value) const { return constant() == value; }

    /// The smallest and largest value that the symbols' bounds allow, or nothing where there is no such bound.
    std::pair<std::optional<int64_t>, std::optional<int64_t>> bounds() const;
    /// The number that extent_of() has taken for an extent; nothing of other dims.
    std::optional<Dim> number_of_extent() const;
    std::optional<int64_t> lower_bound() const { return bounds().first; }
    std::optional<int64_t> upper_bound() const { return bounds().second; }

    /// Names of the symbols that occur anywhere in it.
    std::set<std::string> symbols() const;

    /// The atoms that each of its terms multiplies, with repetition.
    std::vector<std::vector<Dim>> products() const;

    /// The magnitude of the largest number among its terms' factors, that of the constant term aside.
    int64_t largest_factor() const;

    /// The same expression with each named symbol replaced.
    Dim substitute(const std::map<std::string, Dim>& values) const;

    /// The same expression with every atom, such as batch or max(batch, 4), replaced by what `name` gives it.
    Dim with_named_atoms(const std::function<Dim(const Dim& atom)>& name) const;

    /// `batch * 12 + 1`, in parentheses where it is a sum or starts with a minus.
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
    /// The same number, which is 0 or more, as an extent is: a run refuses others.
    friend Dim extent_of(const Dim& number);
    /// 1 where both are the same number, else 0.
    friend Dim is_equal(const Dim& a, const Dim& b);

    /// a / b where b divides every term of a; nothing where it does not.
    friend std::optional<Dim> exact_div(const Dim& a, const Dim& b);

    /// Same expression. Different expressions may still be equal: see prove_equal.
    friend bool operator==(const Dim& a, const Dim& b);

    friend Proof prove_equal(const Dim& a, const Dim& b);
    friend Proof prove_less_equal(const Dim& a, const Dim& b);

    struct Atom;

private:
    using AtomPtr = std::shared_ptr<const Atom>;
    /// Atoms with repetition, sorted by their keys; empty for the constant term.
    using Product = std::vector<AtomPtr>;
    struct ProductLess {
        bool operator()(const Product& a, const Product& b) const;
    };
    std::map<Product, int64_t, ProductLess> terms_;

    static Dim of_atom(AtomPtr atom);
    static Dim operation(AtomKind kind, const Dim& a, const Dim& b);
    void add(const Product& product, int64_t factor);
    /// The number that an extent was made from, where this is one atom of that kind; else this dim.
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
/// Of numbers of 0 or more and of 1 or more.
inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
Dim floor_mod(const Dim& a, const Dim& b);
Dim min(const Dim& a, const Dim& b);
Dim max(const Dim& a, const Dim& b);
Dim extent_of(const Dim& number);
Dim is_equal(const Dim& a, const Dim& b);
std::optional<Dim> exact_div(const Dim& a, const Dim& b);
Proof prove_equal(const Dim& a, const Dim& b);
Proof prove_less_equal(const Dim& a, const Dim& b);

/// The product of all dims: a tensor's number of elements.
Dim product(const std::vector<Dim>& dims);

/// `1x3x224x224`; `[batch, 3, (height + 1) / 2]` where one is no number.
std::string shape_text(const std::vector<Dim>& dims);

}  // namespace onnx2halide
