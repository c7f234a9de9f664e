#include <algorithm>

#include <fmt/format.h>

#include "ops/ml/features.h"
#include "ops/schedule/directives.h"

namespace onnx2halide {

namespace {

/// The squared distances between the rows of input 0 and the columns of input 1: the compiler's own operator. It
/// squares the differences themselves, as x x - 2 x y + y y would cancel what is small relative to x x.
class SquaredDistances : public NodeGenerator {
public:
    using NodeGenerator::NodeGenerator;

    std::vector<TensorType> infer() const override {
        const TensorType &rows = in(0), &columns = in(1);
        if (rows.element != ElementType::float32 && rows.element != ElementType::float64)
            throw CompileError("input 0 has type {}, expected float32 or float64", info(rows.element).name);
        check_type_of_first(1);
        if (rows.rank() != 2 || columns.rank() != 2 || prove_equal(rows.shape[1], columns.shape[0]) == Proof::no)
            throw CompileError("rows have shape {} and columns {}, expected matrices of as many features",
                               shape_text(rows.shape), shape_text(columns.shape));
        return {TensorType(rows.element, {rows.shape[0], columns.shape[1]})};
    }
    std::vector<Check> checks() const override {
        std::vector<Check> checks;
        check_extent(checks, 1, 0, in(0).shape[1]);
        return checks;
    }
    LayoutNeed layout_need() const override { return LayoutNeed::row_major; }
    Dim flops() const override { return in(0).shape[0] * flops_of_row(); }

    void algorithm(KernelSource& source) const override {
        const Coordinates at = source.vars(2);
        const std::string sums = source.func(output(0)->name + "_sums"), difference = source.local("difference");
        source.keep(output(0), "sums", sums);
        const std::string axis = source.rdom("feature", {in(0).shape[1]}), feature = KernelSource::axis(axis, 0),
                          sum = fmt::format("{}({}, {})", sums, at[1], at[0]);
        source.keep(output(0), "feature", feature);
        source.line(fmt::format("{} = {};", sum, KernelSource::literal(0.0, in(0).element)));
        source.line(fmt::format("Expr {} = {} - {};", difference, source.read(input(0), {at[0], feature}),
                                source.read(input(1), {feature, at[1]})));
        source.line(fmt::format("{0} += {1} * {1};", sum, difference));
        source.define(output(0), at, sum);
    }

    void schedule(KernelSource& source) const override {
        const Loops loops = source.output_loops();
        const std::string &sums = source.kept(output(0), "sums"), row = source.vars(2)[0], column = source.vars(2)[1];
        const ElementType element = in(0).element;
        constexpr int64_t most_vectors = 4;
        const int64_t lanes = source.target().lanes(element),
                      columns = in(1).shape[1].constant().value_or(most_vectors * lanes),
                      vectors = std::min(most_vectors, columns / lanes);
        if (source.target().is_gpu() || vectors == 0 || in(0).shape[1].is(0)) return NodeGenerator::schedule(source);

        source.schedule("// Vectors of adjacent columns are added up side by side.");
        const std::string vector = source.lanes(element, static_cast<int>(lanes)),
                          width = fmt::format("{} * {}", source.param("vectors", static_cast<int>(vectors)), vector),
                          tile = source.var(column + "_tile"), task = source.var("task");
        Directives directives = {guarded_split(column, tile, width), fmt::format("vectorize({}, {})", column, vector)};
        const Dim& rows = in(0).shape[0];
        const int64_t rows_of_task = ceil_div(flops_of_a_task, flops_of_row().constant().value_or(flops_of_a_task));
        if (prove_less_equal(rows, rows_of_task) != Proof::yes) {
            const std::string count = source.param("rows", static_cast<int>(rows_of_task));
            directives = joined(directives, {guarded_split(row, task, count), parallel(task)});
        }
        source.schedule(loops.func, directives);
        const std::string in_vectors = fmt::format("vectorize({}, {}, TailStrategy::GuardWithIf)", column, vector);
        source.schedule(sums, {compute_at(loops.func, tile), in_vectors, unroll(column)});
        source.schedule(sums + ".update()",
                        {reorder({column, source.kept(output(0), "feature")}), in_vectors, unroll(column)});
    }

private:
    /// Work below which tasks cost more than they save.
    static constexpr int64_t flops_of_a_task = 1 << 15;

    Dim flops_of_row() const { return in(1).elements() * 3; }
};

}  // namespace

std::vector<Operator> squared_distance_operators() {
    return {{"SquaredDistances", 1, make<SquaredDistances>, own_domain}};
}

}  // namespace onnx2halide
