#pragma once

#include <utility>

#include "ops/node_generator.h"
#include "ops/reduce/reduction.h"
#include "ops/schedule/row_schedule.h"

namespace onnx2halide {

class RowText;

/// A node whose results depend on their row: the elements of input 0 along some of its axes. Each row's stages, such as
/// its maximum and sum, are computed first.
class RowNode : public NodeGenerator {
public:
    using NodeGenerator::NodeGenerator;

    void schedule(KernelSource& source) const override;

    /// Axes of a row; or axes that number rows, either before the rows' own, as Halide does not make one parallel loop
    /// of several with open extents, or after them, where vectors run across rows and end with the innermost axis.
    std::optional<AxisRun> axes_gaining_as_one(const Target& target) const override;

protected:
    friend class RowText;

    struct Stage {
        std::string role;
        RowStage::Kind kind;
    };
    /// The width of the vectors to which the algorithm pads rows with neutral elements; 0 if it does not.
    virtual int padded_width(const KernelSource&) const { return 0; }
    /// Whether results depend only on the row's elements and the position within it, not on the row's index.
    virtual bool treats_rows_alike() const { return node_.inputs.size() == 1; }
    /// The first axis from which on results depend only on their element and row, not on the position within it.
    virtual size_t first_axis_of_places() const { return node_.inputs.size() == 1 ? 0 : in(0).rank(); }
    /// The stages that the algorithm defines, in order, after that of padded rows.
    virtual std::vector<Stage> stages() const = 0;
    /// Axes that run within a row.
    virtual std::vector<size_t> row_axes() const = 0;

    // How rows are numbered: by the other axes, unless a derived class overrides it.

    /// Vars, innermost first, and their extents.
    virtual Loops row_numbers(KernelSource& source) const;
    /// The number of the row to which the result at `at` belongs.
    virtual Coordinates row_of(const Coordinates& at) const;
    /// Extents of a row, innermost first, and the coordinates of the input's element at a step of an RDom over them.
    virtual std::vector<Dim> row_extents() const { return reduction().reduced_extents(in(0)); }
    virtual Coordinates step_place(KernelSource& source, const std::string& rdom) const;
    /// The loops of output 0 such that a row is a set of them, after splitting one if needed; nullopt if that is not
    /// possible.
    virtual std::optional<Loops> loops_of_rows(KernelSource&, const Loops& output) const { return output; }

    /// The extents of the steps of a reduction: those of a row, or its vectors if it is padded.
    std::vector<Dim> step_extents(const KernelSource& source) const;
    Dim row_length() const { return product(row_extents()); }
    ElementType compute_element() const;

private:
    Reduction reduction() const;
    std::vector<size_t> numbering_axes() const;
    /// Whether several of the axes in [first, end) have more than one element, and their number of elements is known
    /// only at run time.
    bool are_open(size_t first, size_t end) const;
    /// For `axes_gaining_as_one`: axes of a row, and axes that number rows.
    std::optional<AxisRun> places_gaining_as_one() const;
    std::optional<AxisRun> numbers_gaining_as_one() const;
};

/// Writes the stages of a row node's algorithm. Terms and results may refer to earlier stages.
class RowText {
public:
    /// Declares the RDom over a row.
    RowText(KernelSource& source, const RowNode& node);

    /// The input's element for the result at `at`, and at a step of the reduction.
    const std::string& element() const { return element_; }
    const std::string& step() const { return step_; }
    const Coordinates& at() const { return at_; }
    const Coordinates& step_at() const { return step_at_; }

    /// Each defines a stage and returns its Func.
    std::string sum(const std::string& role, const std::string& term);
    /// `combine` is an expression of the accumulator, `{0}`, and the term, `{1}`.
    std::string reduce(const std::string& role, const std::string& identity, const std::string& term,
                       fmt::string_view combine);
    std::string number(const std::string& role, const std::string& expression);
    std::string elements(const std::string& role, const std::string& expression);
    /// The mean of a term over the row, by the stages `sum_role` and `role`.
    std::string mean(const std::string& role, const std::string& sum_role, const std::string& term);

    /// A number stage's value for this row, in other stages, and for the row of a result.
    std::string of_row(const std::string& func) const;
    std::string of_result(const std::string& func) const;
    /// The value of an elements stage at these coordinates.
    std::string place(const std::string& func, const Coordinates& at) const;

    /// The row's length in the type of the arithmetic.
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
