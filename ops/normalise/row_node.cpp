#include "ops/normalise/row_node.h"

#include <algorithm>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ops/schedule/gpu_rows.h"

namespace onnx2halide {

namespace {

constexpr const char* steps_role = "steps";    // the RDom, stored for the schedule
constexpr const char* padded_role = "padded";  // the stage of rows padded to whole vectors

}  // namespace

ElementType RowNode::compute_element() const { return onnx2halide::compute_element(in(0).element); }

Reduction RowNode::reduction() const {
    std::vector<bool> is_reduced(in(0).rank(), false);
    for (const size_t axis : row_axes()) is_reduced[axis] = true;
    return {is_reduced, true};
}

/// The axes other than a row's, innermost in memory first.
std::vector<size_t> RowNode::numbering_axes() const {
    std::vector<size_t> axes;
    for (const int axis : in(0).layout) {
        if (!reduction().reduces(axis)) axes.push_back(axis);
    }
    return axes;
}

Loops RowNode::row_numbers(KernelSource& source) const {
    Loops numbers{"", row_of(source.vars(in(0).rank())), {}, compute_element()};
    for (const size_t axis : numbering_axes()) numbers.extents.push_back(in(0).shape[axis]);
    return numbers;
}

Coordinates RowNode::row_of(const Coordinates& at) const {
    Coordinates number;
    for (const size_t axis : numbering_axes()) number.push_back(at[axis]);
    return number;
}

Coordinates RowNode::step_place(KernelSource& source, const std::string& rdom) const {
    return reduction().input_coordinates(in(0), source.vars(in(0).rank()), rdom);
}

std::vector<Dim> RowNode::step_extents(const KernelSource& source) const {
    const int width = padded_width(source);
    return width == 0 ? row_extents() : std::vector<Dim>{width, ceil_div(row_length(), width)};
}

bool RowNode::are_open(size_t first, size_t end) const {
    const std::span axes = std::span(in(0).shape).subspan(first, end - first);
    return count_nontrivial(axes) > 1 && !product(axes).constant();
}

std::optional<AxisRun> RowNode::axes_gaining_as_one(const Target& target) const {
    if (target.is_gpu() || node_.outputs.size() != 1 || row_axes().empty() || in(0).layout != out(0).layout)
        return std::nullopt;
    const auto places = places_gaining_as_one();
    return places ? places : numbers_gaining_as_one();
}

std::optional<AxisRun> RowNode::places_gaining_as_one() const {
    std::vector<size_t> axes = row_axes();
    std::sort(axes.begin(), axes.end());
    const size_t last = axes.back(), least = std::max<size_t>(first_axis_of_places(), in(0).is_row_major() ? 0 : 2);
    size_t first = last;
    while (first > least && std::binary_search(axes.begin(), axes.end(), first - 1)) --first;
    const bool lie_together = in(0).is_row_major() || in(0).layout == channels_last(in(0).rank());
    return lie_together && are_open(first, last + 1) ? std::optional(AxisRun{first, last}) : std::nullopt;
}

std::optional<AxisRun> RowNode::numbers_gaining_as_one() const {
    if (!treats_rows_alike() || !in(0).is_row_major()) return std::nullopt;
    const std::vector<size_t> axes = row_axes();
    const size_t rank = in(0).rank(), behind = *std::max_element(axes.begin(), axes.end()) + 1;
    if (behind < rank) return are_open(behind, rank) ? std::optional(AxisRun{behind, rank - 1}) : std::nullopt;
    const size_t count = rank - axes.size();
    const bool are_last = std::all_of(axes.begin(), axes.end(), [&](size_t axis) { return axis >= count; });
    return are_last && are_open(0, count) ? std::optional(AxisRun{0, count - 1}) : std::nullopt;
}

void RowNode::schedule(KernelSource& source) const {
    RowLoops rows;
    rows.output = source.output_loops();
    const Coordinates vars = source.vars(in(0).rank());
    for (const size_t axis : row_axes()) rows.row.push_back(vars[axis]);
    rows.numbers = row_numbers(source);
    rows.steps = {"", {}, step_extents(source), compute_element()};
    const std::string rdom = source.kept(output(0), steps_role);
    for (size_t i = 0; i < rows.steps.extents.size(); ++i) rows.steps.vars.push_back(KernelSource::axis(rdom, i));
    rows.length = row_length();
    rows.padded_width = padded_width(source);
    if (rows.padded_width > 0) rows.stages.push_back({source.kept(output(0), padded_role), RowStage::Kind::elements});
    for (const auto& [role, kind] : stages()) rows.stages.push_back({source.kept(output(0), role), kind});
    // Loops are split into rows only if a schedule by rows follows, which a GPU does not have for rows that may be
    // empty.
    const bool is_gpu = source.target().is_gpu(),
               may_nest = source.output_count() == 1 && !(is_gpu && rows.may_be_empty());
    if (const auto loops = may_nest ? loops_of_rows(source, rows.output) : std::nullopt) {
        rows.output = *loops;
        if (!is_gpu) return schedule_row_by_row(source, rows);
        if (!schedule_rows_on_gpu(source, rows)) schedule_stage_by_stage(source, rows);
    } else {
        schedule_stage_by_stage(source, rows);
    }
}

RowText::RowText(KernelSource& source, const RowNode& node) : source_(source), node_(node) {
    const std::string rdom = source.rdom("k", node.step_extents(source));
    source.keep(node.output(0), steps_role, rdom);
    at_ = source.vars(node.in(0).rank());
    numbers_ = node.row_numbers(source).vars;
    if (const int width = node.padded_width(source)) {
        define_padded(rdom, width);
        return;
    }
    step_at_ = node.step_place(source, rdom);
    element_ = source.read(node.input(0), at_);
    step_ = source.read(node.input(0), step_at_);
}

void RowText::define_padded(const std::string& rdom, int width) {
    const size_t axis = node_.row_axes().at(0);
    const std::string x = at_[axis], length = source_.dim(node_.row_length());
    const std::string func = stage(padded_role);
    Coordinates inside = at_;
    // Only the last vector needs the bound.
    inside[axis] = fmt::format("min(likely({}), {})", x, source_.dim(node_.row_length() - 1));
    source_.line("// Rows are padded with elements that do not affect them.");
    source_.line(fmt::format("{} = select(likely({} < {}), {}, {});", place(func, at_), x, length,
                             source_.read(node_.input(0), inside), lowest_literal(node_.compute_element())));
    step_at_ = at_;
    step_at_[axis] = fmt::format("{} * {} + {}", KernelSource::axis(rdom, 1), width, KernelSource::axis(rdom, 0));
    element_ = place(func, at_);
    step_ = place(func, step_at_);
}

std::string RowText::stage(const std::string& role) {
    const std::string func = source_.func(fmt::format("{}_{}", node_.output(0)->name, role));
    source_.keep(node_.output(0), role, func);
    return func;
}

std::string RowText::of_row(const std::string& func) const {
    return fmt::format("{}({})", func, fmt::join(numbers_, ", "));
}

std::string RowText::of_result(const std::string& func) const {
    return fmt::format("{}({})", func, fmt::join(node_.row_of(at_), ", "));
}

std::string RowText::place(const std::string& func, const Coordinates& at) const {
    return KernelSource::call(func, node_.in(0), at);
}

std::string RowText::sum(const std::string& role, const std::string& term) {
    const std::string func = stage(role), left = of_row(func);
    source_.line(fmt::format("{} = {};", left, KernelSource::literal(int64_t{0}, node_.compute_element())));
    source_.line(fmt::format("{} += {};", left, term));
    return func;
}

std::string RowText::reduce(const std::string& role, const std::string& identity, const std::string& term,
                            fmt::string_view combine) {
    const std::string func = stage(role), left = of_row(func);
    source_.line(fmt::format("{} = {};", left, identity));
    source_.line(fmt::format("{} = {};", left, fmt::format(fmt::runtime(combine), left, term)));
    return func;
}

std::string RowText::number(const std::string& role, const std::string& expression) {
    const std::string func = stage(role);
    source_.line(fmt::format("{} = {};", of_row(func), expression));
    return func;
}

std::string RowText::elements(const std::string& role, const std::string& expression) {
    const std::string func = stage(role);
    source_.line(fmt::format("{} = {};", place(func, at_), expression));
    return func;
}

std::string RowText::length() const {
    const Dim length = node_.row_length();
    const ElementType element = node_.compute_element();
    if (length.constant()) return KernelSource::literal(*length.constant(), element);
    return cast_text(source_.dim(length), element);
}

std::string RowText::mean(const std::string& role, const std::string& sum_role, const std::string& term) {
    const std::string total = sum(sum_role, term);
    return number(role, fmt::format("{} / {}", of_row(total), length()));
}

}  // namespace onnx2halide
