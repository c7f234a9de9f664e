#pragma once

#include "compiler/graph/dim.h"

// The factors of a Dim's terms. Only dim.cpp and dim_atom.cpp include this header.
namespace onnx2halide {

enum class AtomKind { symbol, div, mod, min, max, extent };

/// A closed interval, unbounded at an end that is missing.
struct Interval {
    std::optional<int64_t> min, max;
};

/// Interval arithmetic. A product with a factor that may be negative is unbounded: dims have none in practice.
Interval multiply(const Interval& a, const Interval& b);
Interval add(const Interval& a, const Interval& b);
Interval scale(const Interval& a, int64_t factor);

/// A symbol or an operation on two dims. Operands are shared between expressions, so the text of an atom may be far
/// longer than its memory; its key, symbols and range, which are asked for often, are computed once.
struct Dim::Atom {
    AtomKind kind;
    Dim a, b;                       // the operands; 0 for a symbol
    std::string key;                // a symbol's name, else the text in Halide's syntax
    std::set<std::string> symbols;  // all that it contains
    Interval range;                 // that its value is in

    static AtomPtr symbol(const std::string& name, const Interval& range);
    static AtomPtr operation(AtomKind kind, const Dim& a, const Dim& b);
    /// The minimum or maximum of two dims. Nested ones are flattened: each operand occurs once, operands that cannot
    /// decide the result are dropped, and constants come last.
    static Dim extreme(AtomKind kind, const Dim& a, const Dim& b);
    /// The atom of a dim that is one atom times a positive number; null for any other dim.
    static AtomPtr multiplied(const Dim& dim);
    /// The atom of a dim that is just that; null for any other dim.
    static AtomPtr alone(const Dim& dim);
    /// The only term of a dim that is a quotient floor(a / b) with a constant b > 0; null if there is none or several.
    static AtomPtr quotient_in(const Dim& sum);
    /// Whether a ≤ b follows from the operands of a minimum or maximum.
    static bool is_ordered(const Dim& a, const Dim& b);

    std::string text(DimSyntax syntax) const;

private:
    /// The dim x if this is min(max(x, 0), 1), which is 1 if x is positive and else 0; null for any other atom.
    const Dim* indicated() const;
    Interval range_of_operation() const;
    static void collect(AtomKind kind, const Dim& dim, std::vector<Dim>& operands);
};

}  // namespace onnx2halide
