#include "ops/product/matrix_product.h"

#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ops/product/matmul_tile.h"
#include "ops/product/product.h"
#include "ops/schedule/cycles.h"
#include "ops/schedule/loop_schedule.h"
#include "ops/schedule/row_schedule.h"

namespace onnx2halide {

ElementType MatrixProduct::sum_type() const { return onnx2halide::sum_type(in(0).element); }

Dim MatrixProduct::columns() const { return column_axis() ? out(0).shape[*column_axis()] : Dim(1); }

std::optional<size_t> MatrixProduct::row_axis() const {
    // More rows than a tile's gain nothing, so an axis that may turn out to have one row need not have more than those.
    constexpr int64_t open_rows = 8;
    std::optional<size_t> best;
    const bool has_batch = !is_one_matrix();
    const auto size = [&](size_t axis) {
        const int64_t rows = out(0).shape[axis].constant().value_or(open_rows);
        // In a batch the last of the axes with enough rows, those of a matrix, is best.
        return has_batch ? std::min(rows, open_rows) : rows;
    };
    for (size_t axis = rank(); axis-- > 0;) {
        if (axis == column_axis() || b_varies_along(axis)) continue;
        if (!best || size(axis) > size(*best)) best = axis;
    }
    return best;
}

Dim MatrixProduct::rows() const { return row_axis() ? out(0).shape[*row_axis()] : Dim(1); }

bool MatrixProduct::is_one_matrix() const {
    for (size_t axis = 0; axis < rank(); ++axis) {
        if (axis != column_axis() && !out(0).shape[axis].is(1) && b_varies_along(axis)) return false;
    }
    return true;
}

bool MatrixProduct::has_few_rows() const {
    // The loops over them are unrolled. Reading one B in order, each of its vectors serves all rows, while dot products
    // load them again for each. The matrices of a batch are mostly small, and packed in a near cache.
    constexpr int64_t few = 4, few_in_order = 8;
    const auto rows = this->rows().constant();
    return rows && *rows <= (is_one_matrix() && !b_is_transposed() ? few_in_order : few);
}

bool MatrixProduct::reads_any_layout(size_t i, const Target&) const {
    return i < 2 && in(i).rank() > 0 && in(i).layout.front() == static_cast<int>(in(i).rank()) - 1;
}

bool MatrixProduct::writes(const Layout& layout, const Target& target) const {
    return !target.is_gpu() && has_tiles_of_rows() && layout.front() == static_cast<int>(rank()) - 1;
}

MatrixProduct::Form MatrixProduct::form(const Target& target) const {
    return target.is_gpu() ? Form::plain : form_on_cpu();
}

MatrixProduct::Form MatrixProduct::form_on_cpu() const {
    if (is_outer()) return Form::plain;
    if (b_is_packed()) return Form::tiled;
    if (columns().is(1)) return Form::dots;
    if (!has_few_rows()) return Form::tiled;
    return b_is_transposed() ? Form::dots : Form::streamed;
}

bool MatrixProduct::is_outer() const { return depth().is(1) && !b_is_packed(); }

void MatrixProduct::algorithm(KernelSource& source) const {
    if (is_outer()) {
        const Coordinates at = source.vars(rank());
        const std::string a = a_element(source, at, "0"), b = b_element(source, at, "0");
        const std::string type = KernelSource::compute_type(sum_type());
        return source.define(output(0), at,
                             result(source, at, fmt::format("cast<{}>({})", type, product_text(a, b, in(0).element))));
    }
    const bool is_tiled = form(source.target()) == Form::tiled;
    if (is_tiled && is_narrow_float(in(0).element)) define_wide_a(source);
    if (has_panels(source.target())) define_panels(source);

    const Coordinates at = source.vars(rank());
    const std::string sum = has_only_blocks(source.target()) ? define_block_sums(source, at) : define_sums(source, at);
    source.define(output(0), at, result(source, at, sum));
}

std::string MatrixProduct::define_sums(KernelSource& source, const Coordinates& at) const {
    const std::string product = steps() > 1 ? define_product_of_groups(source, at) : define_product(source, at);
    const std::string func = source.func(output(0)->name + "_sum"), sum = KernelSource::call(func, out(0), at);
    source.keep(output(0), sum_role, func);
    source.line(fmt::format("{} = {};", sum, KernelSource::literal(int64_t{0}, sum_type())));
    source.line(fmt::format("{} += {};", sum, product));
    if (reads_b_of_single_row(source.target()) && b_is_transposed())
        return fmt::format("select({}, {}, {})", is_single(source), define_dots(source, at), sum);
    if (may_have_blocks(source.target()))
        return fmt::format("select({} <= {}, {}, {})", source.dim(rows()), rows_in_blocks(),
                           define_block_sums(source, at), sum);
    return sum;
}

std::string MatrixProduct::define_product(KernelSource& source, const Coordinates& at) const {
    const std::string step = KernelSource::axis(source.rdom("k", {depth()}), 0);
    source.keep(output(0), step_role, step);
    const std::string a = a_element(source, at, step);
    std::string b = has_panels(source.target()) ? panel_element(source, at, step) : b_element(source, at, step);
    if (reads_b_of_single_row(source.target()) && !b_is_transposed())
        b = fmt::format("select({}, {}, {})", is_single(source), b_element(source, column_inside(source, at), step), b);
    return product_text(a, b, in(0).element);
}

Coordinates MatrixProduct::column_inside(KernelSource& source, const Coordinates& at) const {
    const Target& target = source.target();
    const MatmulTile tile = choose_matmul_tile(target, sum_type(), rows(), columns());
    if (floor_mod(columns(), tile.vectors * column_lanes(target)).is(0)) return at;
    Coordinates column = at;
    column[*column_axis()] = fmt::format("min(likely({}), {})", at[*column_axis()], source.dim(columns() - 1));
    return column;
}

std::string MatrixProduct::define_product_of_groups(KernelSource& source, const Coordinates& at) const {
    const std::string k = source.rdom("k", {steps(), floor_div(depth(), steps())}), place = KernelSource::axis(k, 0),
                      group = KernelSource::axis(k, 1);
    source.keep(output(0), at_once_role, place);
    source.keep(output(0), step_role, group);
    const std::string step = fmt::format("{} * {} + {}", group, steps(), place);
    return product_text(a_element(source, at, step), b_of_group(source, at, group, place), in(0).element);
}

std::string MatrixProduct::read_a(KernelSource& source, const Coordinates& at) const {
    const bool is_wide = is_narrow_float(in(0).element) && form(source.target()) == Form::tiled;
    return is_wide ? KernelSource::call(source.kept(output(0), wide_role), in(0), at) : source.read(input(0), at);
}

void MatrixProduct::define_wide_a(KernelSource& source) const {
    const std::string wide = source.func(input(0)->name + "_wide");
    source.keep(output(0), wide_role, wide);
    const Coordinates at = source.vars(in(0).rank());
    source.line(fmt::format("{} = {};", KernelSource::call(wide, in(0), at), source.read(input(0), at)));
}

bool MatrixProduct::has_panels(const Target& target) const {
    const bool copies = rows_in_blocks() > 0 ? !has_only_blocks(target) : !b_is_packed();
    return form(target) == Form::tiled && copies;
}

bool MatrixProduct::may_have_blocks(const Target& target) const {
    return rows_in_blocks() > 0 && form(target) == Form::tiled &&
           prove_less_equal(rows_in_blocks() + 1, rows()) != Proof::yes;
}

bool MatrixProduct::has_only_blocks(const Target& target) const {
    return may_have_blocks(target) &&
           (rows_in_blocks() == any_rows || prove_less_equal(rows(), rows_in_blocks()) == Proof::yes);
}

bool MatrixProduct::reads_b_of_single_row(const Target& target) const {
    const bool may_be_single = !rows().constant() && prove_less_equal(2, rows()) != Proof::yes;
    if (!has_panels(target) || b_is_packed() || !may_be_single || steps() > 1 || is_narrow_float(in(0).element))
        return false;
    // Fewer steps are packed as fast, and vectors of columns must not extend past the last one.
    constexpr int64_t least_depth = 16, least_width = 4;
    return b_is_transposed() ? depth().constant().value_or(0) >= least_depth && dot_width(target) >= least_width
                             : floor_mod(columns(), column_lanes(target)).is(0);
}

int MatrixProduct::column_lanes(const Target& target) const {
    const int lanes = target.lanes(sum_type());
    if (b_is_packed()) return lanes;
    const int width = filled(columns(), lanes);
    return floor_mod(columns(), width).is(0) ? width : lanes;
}

std::string MatrixProduct::is_single(KernelSource& source) const { return source.dim(rows()) + " == 1"; }

int MatrixProduct::dot_width(const Target& target) const {
    const int64_t depth = this->depth().constant().value_or(1);
    int width = 1;
    while (width < target.lanes(sum_type()) && depth % (2 * width) == 0) width *= 2;
    return width;
}

std::string MatrixProduct::define_dots(KernelSource& source, const Coordinates& at) const {
    const int width = dot_width(source.target());
    const std::string func = source.func(output(0)->name + "_dots"), dots = KernelSource::call(func, out(0), at),
                      steps = source.rdom("steps", {width, floor_div(depth(), width)}),
                      lane = KernelSource::axis(steps, 0);
    source.keep(output(0), dots_role, func);
    source.keep(output(0), dot_lane_role, lane);
    const std::string step = fmt::format("{} * {} + {}", KernelSource::axis(steps, 1), width, lane);
    // A tile may extend past the last column.
    Coordinates column = at;
    column[*column_axis()] = fmt::format("min({}, {})", at[*column_axis()], source.dim(columns() - 1));
    source.line(fmt::format("{} = {};", dots, KernelSource::literal(int64_t{0}, sum_type())));
    source.line(fmt::format("{} += {};", dots,
                            product_text(a_element(source, at, step), b_element(source, column, step), in(0).element)));
    return dots;
}

/// The result's coordinates that index B, except the column, innermost first.
Coordinates MatrixProduct::batch_of_b(const Coordinates& at) const {
    Coordinates batch;
    for (size_t axis = rank(); axis-- > 0;) {
        if (axis != column_axis() && b_varies_along(axis)) batch.push_back(at[axis]);
    }
    return batch;
}

void MatrixProduct::define_panels(KernelSource& source) const {
    const std::string panels = source.func(input(1)->name + "_panels");
    source.keep(output(0), panels_role, panels);
    const std::string lane = source.var("lane"), step = source.var("depth"), number = source.var("block");
    const int block = column_block(sum_type());
    Coordinates at = source.vars(rank());
    const Coordinates batch = batch_of_b(at);
    const auto define = [&](const std::string& lane, const std::string& element) {
        Coordinates left = {lane, step, number};
        left.insert(left.end(), batch.begin(), batch.end());
        source.line(fmt::format("{}({}) = {};", panels, fmt::join(left, ", "), element));
    };
    const auto element = [&](const std::string& column) {
        at[*column_axis()] = column;
        return b_element(source, at, step);
    };
    if (b_is_packed()) return define(lane, packed_element(source, {number, lane}, step));
    const auto column_of = [&](const std::string& lane) { return fmt::format("{} * {} + {}", number, block, lane); };
    const std::string last = source.dim(columns() - 1);
    if (columns().constant()) {
        const bool fill = floor_mod(columns(), block).is(0);
        return define(lane,
                      element(fill ? column_of(lane) : fmt::format("min(likely({}), {})", column_of(lane), last)));
    }
    // In the last block, lanes without a column must not be read, which is decided at run time. Integers keep their
    // type, while halves become the floats in which they are summed.
    const ElementType packed = is_float(in(1).element) ? sum_type() : in(1).element;
    define(lane, KernelSource::literal(int64_t{0}, packed));
    const std::string whole_blocks = source.dim(floor_div(columns(), block));
    for (const char* role : {whole_role, rest_role}) {
        const bool is_whole = role == whole_role;
        const std::string columns = source.rdom(role, {is_whole ? Dim(block) : floor_mod(this->columns(), block)}),
                          lane = KernelSource::axis(columns, 0);
        source.keep(output(0), role, lane);
        source.line(fmt::format("{}.where({} {} {});", columns, number, is_whole ? "<" : "==", whole_blocks));
        define(lane, element(column_of(lane)));
    }
}

MatrixProduct::PackedColumn MatrixProduct::packed_column(KernelSource& source, const std::string& column) const {
    const int block = column_block(sum_type());
    const Dim last = ceil_div(columns(), block) - 1;
    // A tile may extend past the last block; such sums are not stored.
    return {last.is(0) ? "0" : fmt::format("min({} / {}, {})", column, block, source.dim(last)),
            fmt::format("{} % {}", column, block)};
}

std::string MatrixProduct::panel_element(KernelSource& source, const Coordinates& at, const std::string& k) const {
    const PackedColumn column = packed_column(source, at[*column_axis()]);
    Coordinates panel = {column.lane, k, column.block};
    for (const std::string& coordinate : batch_of_b(at)) panel.push_back(coordinate);
    return fmt::format("{}({})", source.kept(output(0), panels_role), fmt::join(panel, ", "));
}

std::optional<AxisRun> MatrixProduct::axes_gaining_as_one(const Target& target) const {
    return gains_from_one_matrix(target) ? std::optional(AxisRun{0, rank() - 2}) : std::nullopt;
}

bool MatrixProduct::gains_from_one_matrix(const Target& target) const {
    // With so many rows, whose number is known, tiles waste little.
    constexpr int64_t many_rows = 32;
    if (target.is_gpu() || rank() < 3 || in(0).rank() != rank() || !a_has_axes_of_result() || is_outer() ||
        column_axis() != rank() - 1 || rows().constant().value_or(0) >= many_rows)
        return false;
    for (size_t axis = 0; axis + 1 < rank(); ++axis) {
        if (b_varies_along(axis) || in(0).shape[axis] != out(0).shape[axis]) return false;
    }
    return count_nontrivial(std::span(out(0).shape).first(rank() - 1)) > 1 && in(0).is_row_major() &&
           out(0).is_row_major();
}

bool MatrixProduct::has_tiles_of_rows() const {
    return form_on_cpu() == Form::tiled && !b_is_packed() && column_axis() == rank() - 1 && row_axis() == rank() - 2;
}

std::unique_ptr<NodeGenerator> product_before(const KernelSource& source, const Node& anchor) {
    for (const Value* value : source.defined()) {
        if (value->producer == &anchor) continue;
        auto generator = make_generator(*value->producer);
        if (dynamic_cast<const MatrixProduct*>(generator.get())) return generator;
    }
    return nullptr;
}

DistantOperand MatrixProduct::distant_a(KernelSource& source) const {
    const TensorType& a = in(0);
    if (!a_has_axes_of_result() || !row_axis() || steps() > 1 || is_narrow_float(a.element) || !a.is_row_major() ||
        input(0)->pitch() || source.is_internal(input(0)) || a.rank() != rank())
        return {};
    Dim distance(1);
    int64_t elements = 1;
    for (size_t axis = 0; axis < a.rank(); ++axis) {
        if (axis > *row_axis()) distance = distance * a.shape[axis];
        elements *= estimate(a.shape[axis]);
    }
    const int64_t bytes = info(a.element).bytes;
    if (!distance.constant() ||
        !prefetches_distant(elements * bytes, *a.shape.back().constant() * bytes, source.target()))
        return {};
    return {source.name(input(0)), *distance.constant()};
}

MatmulLoops MatrixProduct::loops(KernelSource& source) const {
    const Form form = this->form(source.target());
    const Coordinates vars = source.vars(rank());
    MatmulLoops matmul;
    matmul.output = source.output_loops();
    if (may_have_blocks(source.target())) {
        matmul.blocks = block_sums(source);
        matmul.rows_in_blocks = rows_in_blocks();
    }
    if (!has_only_blocks(source.target())) {
        matmul.sum = source.kept(output(0), sum_role);
        matmul.step = source.kept(output(0), step_role);
    }
    if (steps() > 1) matmul.at_once = source.kept(output(0), at_once_role);
    if (has_panels(source.target())) {
        matmul.panels = source.kept(output(0), panels_role);
        matmul.packs_transposed = b_is_transposed();
        matmul.panel_batch = batch_of_b(vars);
        if (!columns().constant())
            matmul.panel_updates = {source.kept(output(0), whole_role), source.kept(output(0), rest_role)};
    }
    if (reads_b_of_single_row(source.target())) {
        matmul.is_single = is_single(source);
        if (b_is_transposed()) {
            matmul.dots = source.kept(output(0), dots_role);
            matmul.dot_lane = source.kept(output(0), dot_lane_role);
            matmul.dot_width = dot_width(source.target());
        }
    }
    if (form == Form::tiled && is_narrow_float(in(0).element)) {
        matmul.wide = {source.kept(output(0), wide_role), {}, in(0).extents(), sum_type()};
        const Coordinates at = source.vars(in(0).rank());
        for (const int axis : in(0).layout) matmul.wide.vars.push_back(at[axis]);
    }
    if (form == Form::tiled) matmul.distant_a = distant_a(source);
    if (form == Form::tiled && b_is_packed() && rows_in_blocks() == 0) matmul.weights = source.name(input(1));
    if (form == Form::tiled) matmul.waited_for = waited_for(source, node_.inputs);
    matmul.element = sum_type();
    if (column_axis()) matmul.column = vars[*column_axis()];
    if (row_axis()) matmul.row = vars[*row_axis()];
    matmul.columns = columns();
    matmul.rows = rows();
    matmul.depth = depth();
    matmul.steps_at_once = steps();
    matmul.steps_of_word = steps_of_word();
    matmul.lanes = column_lanes(source.target());
    return matmul;
}

void MatrixProduct::schedule(KernelSource& source) const {
    const bool is_gpu = source.target().is_gpu();
    const auto sums = is_gpu ? gpu_sums(source) : std::nullopt;
    if (sums && schedule_gpu_sums(source, *sums)) return;
    if (is_gpu && columns().is(1) && !is_outer() && source.output_count() == 1 && schedule_dots_on_gpu(source)) return;
    if (form(source.target()) == Form::plain) return NodeGenerator::schedule(source);
    schedule_as(source, source.output_loops());
}

void MatrixProduct::schedule_as(KernelSource& source, const Loops& results) const {
    const Form form = this->form(source.target());
    if (form == Form::plain) return schedule_loops(source, results);
    MatmulLoops matmul = loops(source);
    matmul.output = results;
    if (form == Form::dots) schedule_dots(source, matmul);
    if (form == Form::streamed) schedule_streamed(source, matmul);
    if (form == Form::tiled) schedule_tiled(source, matmul);
}

}  // namespace onnx2halide
