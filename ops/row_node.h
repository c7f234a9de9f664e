#pragma once

#include <utility>

#include "ops/node_generator.h"
#include "ops/reduction.h"
#include "ops/row_schedule.h"

namespace onnx2halide {

class RowText;

/// A node whose results depend on their row: the elements of input 0 along some of its axes. Stages are computed of
/// each row first, such as its maximum and sum.
class RowNode : public NodeGenerator {
public:
    using NodeGenerator::NodeGenerator;

    void schedule(KernelSource& source) const override;

    /// The first and the last of neighbouring axes, if rows are faster with one axis in the place of these: axes of a
    /// row, or such that number rows, in front of the rows' own, as Halide makes no loop over all of several axes whose
    /// extents are open, or behind them, where vectors run across rows and end with the innermost axis.
    std::optional<std::pair<size_t, size_t>> axes_gaining_as_one(const Target& target) const;

protected:
    friend class RowText;

    struct Stage {
        std::string role;
        RowStage::Kind kind;
    };
    /// The width of the vectors to which the algorithm fills rows up with what has no part in them; 0 where it does
    /// not.
    virtual int padded_width(const KernelSource&) const { return 0; }
    /// Whether a result depends on nothing but its row and its place there: on no number of the row.
    virtual bool treats_rows_alike() const { return node_.inputs.size() == 1; }
    /// The axis from which on a result depends on nothing but its element and its row, whatever the place there.
    virtual size_t first_axis_of_places() const { return node_.inputs.size() == 1 ? 0 : in(0).rank(); }
    /// The stages that the algorithm defines, in order, behind that of filled rows.
    virtual std::vector<Stage> stages() const = 0;
    /// Axes that run within a row.
    virtual std::vector<size_t> row_axes() const = 0;

    // How rows are numbered: by the other axes, unless a class says otherwise.

    /// Vars, innermost first, and their extents.
    virtual Loops row_numbers(KernelSource& source) const;
    /// The number of the row that a result at `at` belongs to.
    virtual Coordinates row_of(const Coordinates& at) const;
    /// Extents of a row, innermost first, and the place of the input's element at a step of an RDom over them.
    virtual std::vector<Dim> row_extents() const { return reduction().reduced_extents(in(0)); }
    virtual Coordinates step_place(KernelSource& source, const std::string& rdom) const;
    /// The loops of output 0 such that a row is a set of them, splitting one where that is needed; nothing where it
    /// cannot be.
    virtual std::optional<Loops> loops_of_rows(KernelSource&, const Loops& output) const { return output; }

    /// The extents of a reduction's steps: those of a row, or the vectors that it fills.
    std::vector<Dim> step_extents(const KernelSource& source) const;
    Dim row_length() const { return product(row_extents()); }
    ElementType compute_element() const;

private:
    Reduction reduction() const;
    std::vector<size_t> numbering_axes() const;
    /// Whether several of the axes from `first` to before `end` have more than one element, in a number that a run
    /// alone knows.
    bool are_open(size_t first, size_t end) const;
    /// Of `axes_gaining_as_one`: axes of a row, and those that number rows.
    std::optional<std::pair<size_t, size_t>> places_gaining_as_one() const;
    std::optional<std::pair<size_t, size_t>> numbers_gaining_as_one() const;
};

/// Writes the stages of a row node's algorithm. Terms and results may refer to the stages before them.
class RowText {
public:
    /// Declares the RDom over a row.
    RowText(KernelSource& source, const RowNode& node);

    /// The input's element at a place of the result, and at a step of the reduction.
    const std::string& element() const { return element_; }
    const std::string& step() const { return step_; }
    const Coordinates& at() const { return at_; }
    const Coordinates& step_at() const { return step_at_; }

    /// Defines a stage and returns its Func.
    std::string sum(const std::string& role, const std::string& term);
    /// `combine` is an expression of the value so far, `{0}`, and the term, `{1}`.
    std::string reduce(const std::string& role, const std::string& identity, const std::string& term,
                       fmt::string_view combine);
    std::string number(const std::string& role, const std::string& expression);
    std::string elements(const std::string& role, const std::string& expression);
    /// The mean of a term over the row, by stages `sum_role` and `role`.
    std::string mean(const std::string& role, const std::string& sum_role, const std::string& term);

    /// A number stage of this row, in other stages, and of the row of a result.
    std::string of_row(const std::string& func) const;
    std::string of_result(const std::string& func) const;
    /// An elements stage at a place.
    std::string place(const std::string& func, const Coordinates& at) const;

    /// The row's length as a number to compute with.
    std::string length() const;

private:
    std::string stage(const std::string& role);
    void define_padded(const std::string& rdom, int width);

    KernelSource& source_;
    const RowNode& node_;
    Coordinates at_, step_at_;
    std::vector<std::string> numbers_;
    std::string element_, step_;
};

}  // namespace onnx2halide
