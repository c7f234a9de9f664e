#pragma once

#include <map>
#include <string>
#include <vector>

#include "ops/kernel_source.h"

// The equations of Einsum.
namespace onnx2halide {

/// An index of an equation: a letter, or an axis of an ellipsis, numbered from the last.
using Label = int;
using Labels = std::vector<Label>;
constexpr Label first_of_ellipsis = 256;

/// The indices of one operand or the result, which may include an ellipsis.
struct Term {
    Labels before, after;
    bool has_ellipsis = false;

    /// All indices, with the ellipsis expanded to so many axes.
    Labels labels(size_t ellipsis_rank) const;
    size_t letters() const { return before.size() + after.size(); }
};

/// `ij,jk->ik`
struct Equation {
    std::vector<Term> operands;
    Term result;

    /// Throws CompileError if the text has anything but letters, commas, an arrow and ellipses.
    explicit Equation(std::string text);

    /// Whether it is a batch of matrix products: one index, which both operands have, is summed, and the result's last
    /// index is a column of the second operand.
    bool is_product() const;

private:
    Term implied_result() const;
};

/// An equation applied to operands whose shapes are known.
struct Contraction {
    std::vector<Labels> operands;
    Labels result, summed;
    std::map<Label, Dim> extents;

    /// Throws CompileError if the shapes do not fit the equation.
    Contraction(const Equation& equation, const std::vector<std::vector<Dim>>& shapes);

    std::vector<Dim> shape() const;

    /// The extents that the operands' axes must have, except those that are broadcast.
    struct Extent {
        size_t operand, axis;
        Dim expected;
    };
    std::vector<Extent> expected_extents(const std::vector<std::vector<Dim>>& shapes) const;

    /// The coordinates of an operand of this shape for given indices; axes of extent 1 are broadcast.
    Coordinates place(size_t operand, const std::vector<Dim>& shape, const std::map<Label, std::string>& indices) const;

private:
    void add_extent(Label label, const Dim& extent);
};

}  // namespace onnx2halide
