#pragma once

#include "compiler/graph/dim.h"

// What the terms of a Dim multiply. For dim.cpp alone.
namespace onnx2halide {

enum class AtomKind { symbol, div, mod, min, max, extent };

/// A closed interval; a missing end is unbounded.
struct Interval {
    std::optional<int64_t> min, max;
};

/// Intervals of dims: products of non-negative factors are what occurs, anything else is unbounded.
Interval multiply(const Interval& a, const Interval& b);
Interval add(const Interval& a, const Interval& b);
Interval scale(const Interval& a, int64_t factor);

/// Operands are shared, so that an expression may be far longer than what holds it: what is asked of one again and
/// again is found once, when it is made.
struct Dim::Atom {
    AtomKind kind;
    Dim a, b;                       // operands; of a symbol none
    std::string key;                // a symbol's name; else its text in Halide's syntax
    std::set<std::string> symbols;  // in it
    Interval range;                 // of its values

    static AtomPtr symbol(const std::string& name, const Interval& range);
    static AtomPtr operation(AtomKind kind, const Dim& a, const Dim& b);
    /// The minimum or maximum of two dims. Of the operands of nested ones each stands once, those that the others make
    /// idle not at all, and numbers last.
    static Dim extreme(AtomKind kind, const Dim& a, const Dim& b);
    /// The atom that a dim is times a number of 1 or more, null where it is something else.
    static AtomPtr multiplied(const Dim& dim);
    static AtomPtr alone(const Dim& dim);
    /// The quotient among the terms of a dim, where there is one alone: floor(a / b) for a number b.
    static AtomPtr quotient_in(const Dim& sum);
    /// Whether a ≤ b follows from the operands of a minimum or maximum.
    static bool is_ordered(const Dim& a, const Dim& b);

    std::string text(DimSyntax syntax) const;

private:
    Interval range_of_operation() const;
    static void collect(AtomKind kind, const Dim& dim, std::vector<Dim>& operands);
};

}  // namespace onnx2halide
