#include "ops/elementwise/elementwise.h"

#include <algorithm>

#include <fmt/args.h>
#include <fmt/format.h>

#include "ops/movement/relayout.h"
#include "ops/schedule/directives.h"
#include "ops/schedule/loop_schedule.h"

namespace onnx2halide {

namespace {

/// The axes with more than one element, innermost first, counted from the last.
std::vector<size_t> nontrivial_axes(const TensorType& type) {
    std::vector<size_t> axes;
    for (const int axis : type.layout) {
        if (!type.shape[axis].is(1)) axes.push_back(type.rank() - 1 - axis);
    }
    return axes;
}

const Dim& extent(const TensorType& type, size_t axis_from_last) {
    return type.shape[type.rank() - 1 - axis_from_last];
}

/// The number of the result's innermost axes that are also the operand's, in the same order, or are all broadcast.
size_t common_axes(const TensorType& result, const TensorType& operand) {
    const std::vector<size_t> axes = nontrivial_axes(result), own = nontrivial_axes(operand);
    size_t same = 0, missing = 0;
    while (same < std::min(axes.size(), own.size()) && axes[same] == own[same] &&
           extent(result, axes[same]) == extent(operand, own[same])) {
        ++same;
    }
    while (missing < axes.size() && std::find(own.begin(), own.end(), axes[missing]) == own.end()) ++missing;
    return std::max(same, missing);
}

}  // namespace

std::optional<Number> answer(Proof proof) {
    if (proof == Proof::unknown) return std::nullopt;
    return Dim(proof == Proof::yes);
}

std::vector<size_t> Elementwise::operands() const {
    std::vector<size_t> given;
    for (size_t i = 0; i < node_.inputs.size(); ++i) {
        if (has_input(i)) given.push_back(i);
    }
    return given;
}

std::vector<TensorType> Elementwise::infer() const {
    const ElementType first = in(operands()[0]).element;
    for (const size_t i : operands()) {
        const ElementType type = in(i).element;
        check_element_type(takes(i), i);
        if (same_types() && type != first) {
            throw CompileError("input {} has type {}, expected {} as input 0", i, info(type).name, info(first).name);
        }
    }
    return {TensorType(result_type(), shape())};
}

std::vector<Dim> Elementwise::shape() const {
    std::vector<Dim> result;
    for (const size_t i : operands()) result = broadcast(result, in(i).shape);
    return result;
}

std::vector<Check> Elementwise::checks() const {
    std::vector<Check> checks;
    const std::vector<Dim> result = shape();
    for (const size_t i : operands()) check_broadcast(checks, i, in(i).rank(), result, first_axis(i));
    return checks;
}

size_t Elementwise::first_axis(size_t operand) const { return shape().size() - in(operand).rank(); }

Coordinates Elementwise::coordinates(KernelSource& source, size_t operand, const Coordinates& at) const {
    const std::vector<Dim>& extents = in(operand).shape;
    const std::vector<Dim> result = shape();
    const size_t first = first_axis(operand);
    Coordinates own;
    for (size_t i = 0; i < extents.size(); ++i) {
        const bool is_missing = first + i >= result.size();
        const bool is_same = !is_missing && extents[i] == result[first + i];
        own.push_back(is_missing ? "0"
                      : is_same  ? at.at(first + i)
                                 : source.broadcast_coordinate(extents[i], out(0), first + i, at.at(first + i)));
    }
    return own;
}

void Elementwise::algorithm(KernelSource& source) const {
    const Coordinates at = source.vars(out(0).rank());
    std::vector<std::string> elements;
    for (const size_t i : operands()) elements.push_back(operand(source, i, coordinates(source, i, at)));
    const std::string result = expression(elements);
    gives_stored() ? source.store(output(0), at, result) : source.define(output(0), at, result);
}

void Elementwise::schedule(KernelSource& source) const {
    if (source.target().is_gpu()) return NodeGenerator::schedule(source);
    if (schedule_transposed_operands(source)) return;
    for (size_t i = 0; i < source.output_count(); ++i) {
        const TensorType& result = source.outputs()[i]->checked_type();
        Loops loops = nontrivial_loops(source.output_loops(i));
        // One loop is left for parallel tasks.
        size_t count = loops.vars.size() - (is_parallel_work(result.elements()) ? 1 : 0);
        for (const auto* values : {&source.inputs(), &source.outputs()}) {
            for (const Value* value : *values) count = std::min(count, common_axes(result, value->checked_type()));
        }
        if (count > 1) loops = fuse_innermost(source, loops, count);
        if (schedule_short_rows(source, loops)) continue;
        vectorise(source, loops);
        if (!share_out(source, loops)) parallelise(source, loops);
    }
}

bool Elementwise::share_out(KernelSource& source, const Loops& loops) {
    if (loops.vars.empty() || loops.extents.back().constant()) return false;
    const std::string task = source.var("task");
    if (loops.vars.size() == 1) {
        const int64_t vectors = elements_of_a_task / source.target().lanes(loops.element);
        const std::string iterations = source.param("vectors_of_task", static_cast<int>(vectors));
        source.schedule(loops.func, {guarded_split(loops.vars[0], task, iterations), parallel(task)});
        return true;
    }
    const Dim row = product({loops.extents.begin(), loops.extents.end() - 2}), rows = loops.extents.end()[-2];
    if (loops.vars.size() == 2 || row.constant()) return false;
    // With the two outermost loops fused, a division would find each row's indices, which costs more than a row's work.
    source.schedule(loops.func, {guarded_split(loops.vars.end()[-2], task, iterations_of_a_task(source, row, rows)),
                                 parallel(task), parallel(loops.vars.back())});
    return true;
}

std::string Elementwise::strict(const std::string& expression) const {
    const bool is_call = expression.starts_with("onnx::");
    return is_float(in(0).element) && !is_call ? fmt::format("strict_float({})", expression) : expression;
}

std::optional<KnownElements> Elementwise::broadcast_known(size_t operand, const std::vector<Dim>& shape) const {
    const KnownElements* known = tracked_input(operand);
    const auto extents = numbers(in(operand).shape);
    if (!known || !extents) return std::nullopt;
    const size_t first = first_axis(operand);
    return picked(*known, shape, [&](const std::vector<int64_t>& at) {
        std::vector<int64_t> own;
        for (size_t i = 0; i < extents->size(); ++i) own.push_back((*extents)[i] == 1 ? 0 : at[first + i]);
        return linear_index(own, *extents);
    });
}

std::optional<Number> Elementwise::evaluate_any(std::span<const Number> operands) const {
    const auto is_ratio = [](const Number& number) { return std::holds_alternative<Ratio>(number); };
    if (std::none_of(operands.begin(), operands.end(), is_ratio)) return evaluate(operands);
    std::vector<Ratio> ratios;
    for (const Number& number : operands) {
        const auto ratio = is_ratio(number)                         ? std::optional(std::get<Ratio>(number))
                           : std::holds_alternative<double>(number) ? Ratio::of(real(number))
                                                                    : std::nullopt;
        if (!ratio) return std::nullopt;
        ratios.push_back(*ratio);
    }
    return evaluate_ratios(ratios);
}

std::vector<std::optional<KnownElements>> Elementwise::known() const {
    const TensorType type = infer()[0];
    const std::vector<size_t> inputs = operands();
    std::vector<KnownElements> elements;
    for (const size_t i : inputs) {
        auto known = broadcast_known(i, type.shape);
        if (!known) return {};
        elements.push_back(std::move(*known));
    }
    std::vector<Number> result;
    for (size_t place = 0; place < elements[0].size(); ++place) {
        std::vector<Number> numbers;
        for (size_t i = 0; i < inputs.size(); ++i) {
            const auto number = stored(number_at(elements[i], place), in(inputs[i]).element);
            if (!number) return {};
            numbers.push_back(*number);
        }
        try {
            const std::optional<Number> number = evaluate_any(numbers);
            const std::optional<Number> held = number ? stored(*number, type.element) : std::nullopt;
            if (!held) return {};
            result.push_back(*held);
        } catch (const CompileError&) {
            return {};  // it exceeds 64 bits, and wraps at run time
        }
    }
    return {collected(result)};
}

std::string formula(std::string_view text, std::span<const std::string> operands, const Node& node) {
    fmt::dynamic_format_arg_store<fmt::format_context> names;
    names.push_back(fmt::arg("x", operands[0]));
    static constexpr const char* letters[] = {"a", "b", "c"};
    for (size_t i = 0; i < std::min(operands.size(), std::size(letters)); ++i)
        names.push_back(fmt::arg(letters[i], operands[i]));
    for (const auto& [name, value] : node.attributes) {
        if (const float* number = std::get_if<float>(&value))
            names.push_back(fmt::arg(name.c_str(), float_text(*number, false)));
    }
    return fmt::vformat(text, names);
}

}  // namespace onnx2halide
