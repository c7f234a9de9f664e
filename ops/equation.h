#pragma once

#include <map>
#include <string>
#include <vector>

#include "ops/kernel_source.h"

// The equations of Einsum.
namespace onnx2halide {

/// An index of an equation: a letter, or an axis that an ellipsis stands for, which counts from the last one.
using Label = int;
using Labels = std::vector<Label>;
constexpr Label first_of_ellipsis = 256;

/// One operand's or the result's indices, with a place for an ellipsis.
struct Term {
    Labels before, after;
    bool has_ellipsis = false;

    /// All indices, where the ellipsis stands for so many axes.
    Labels labels(size_t ellipsis_rank) const;
    size_t letters() const { return before.size() + after.size(); }
};

/// `ij,jk->ik`
struct Equation {
    std::vector<Term> operands;
    Term result;

    /// Throws CompileError where the text has anything but letters, commas, an arrow and ellipses.
    explicit Equation(std::string text);

private:
    Term implied_result() const;
};

/// An equation applied to operands whose shapes are known.
struct Contraction {
    std::vector<Labels> operands;
    Labels result, summed;
    std::map<Label, Dim> extents;

    /// Throws CompileError where the shapes do not fit the equation.
    Contraction(const Equation& equation, const std::vector<std::vector<Dim>>& shapes);

    std::vector<Dim> shape() const;

    /// What the extents of the operands' axes must be, but for those that are broadcast.
    struct Extent {
        size_t operand, axis;
        Dim expected;
    };
    std::vector<Extent> expected_extents(const std::vector<std::vector<Dim>>& shapes) const;

    /// Where an operand of this shape has the element for given indices; axes of extent 1 are broadcast.
    Coordinates place(size_t operand, const std::vector<Dim>& shape, const std::map<Label, std::string>& indices) const;

private:
    void add_extent(Label label, const Dim& extent);
};

}  // namespace onnx2halide
