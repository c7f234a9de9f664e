#include "ops/row_node.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace onnx2halide {

namespace {

constexpr const char* steps_role = "steps";  // the RDom, kept for the schedule

}  // namespace

ElementType RowNode::compute_element() const {
    return is_narrow_float(in(0).element) ? ElementType::float32 : in(0).element;
}

Reduction RowNode::reduction() const {
    std::vector<bool> is_reduced(in(0).rank(), false);
    for (const size_t axis : row_axes()) is_reduced[axis] = true;
    return {is_reduced, true};
}

/// The axes beside a row's, innermost in memory first.
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

void RowNode::schedule(KernelSource& source) const {
    RowLoops rows;
    rows.output = source.output_loops();
    const Coordinates vars = source.vars(in(0).rank());
    for (const size_t axis : row_axes()) rows.row.push_back(vars[axis]);
    rows.numbers = row_numbers(source);
    rows.steps = {"", {}, row_extents(), compute_element()};
    const std::string rdom = source.kept(output(0), steps_role);
    for (size_t i = 0; i < rows.steps.extents.size(); ++i) rows.steps.vars.push_back(KernelSource::axis(rdom, i));
    rows.length = row_length();
    rows.is_strict = is_strict();
    for (const auto& [role, kind] : stages()) rows.stages.push_back({source.kept(output(0), role), kind});
    const bool may_nest = source.output_count() == 1 && !source.target().is_gpu();
    if (const auto loops = may_nest ? loops_of_rows(source, rows.output) : std::nullopt) {
        rows.output = *loops;
        schedule_row_by_row(source, rows);
    } else {
        schedule_stage_by_stage(source, rows);
    }
}

RowText::RowText(KernelSource& source, const RowNode& node) : source_(source), node_(node) {
    const std::string rdom = source.rdom("k", node.row_extents());
    source.keep(node.output(0), steps_role, rdom);
    at_ = source.vars(node.in(0).rank());
    step_at_ = node.step_place(source, rdom);
    numbers_ = node.row_numbers(source).vars;
    element_ = source.read(node.input(0), at_);
    step_ = source.read(node.input(0), step_at_);
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
