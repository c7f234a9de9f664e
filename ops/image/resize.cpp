#include "ops/image/resize.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ops/axis_map.h"
#include "ops/axis_operand.h"
#include "ops/composite.h"
#include "ops/families.h"
#include "ops/schedule/shifted_vectors.h"

namespace onnx2halide {

namespace {

/// The position of an output element in the input. In the texts {x} is its coordinate, {scale} the axis's scale, {in}
/// the input's extent, {width} the output's before rounding, {out} after it; {begin} and {end} are the region of
/// interest, {zero} is a zero of the positions' type.
struct Transformation {
    std::string_view name, place;
    std::string_view of_one = "";  // if the output has one element, by `one`, a width or an extent
    std::string_view one = "{width}";
};
constexpr Transformation transformations[] = {
    {"asymmetric", "{x} / {scale}"},
    {"half_pixel", "({x} + 0.5f) / {scale} - 0.5f"},
    {"half_pixel_symmetric", "{in} / 2 * (1 - {out} / {width}) + ({x} + 0.5f) / {scale} - 0.5f"},
    {"pytorch_half_pixel", "({x} + 0.5f) / {scale} - 0.5f", "{zero}", "{out}"},
    {"tf_half_pixel_for_nn", "({x} + 0.5f) / {scale}"},
    {"align_corners", "{x} * ({in} - 1) / ({width} - 1)", "{zero}"},
    {"tf_crop_and_resize", "{begin} * ({in} - 1) + {x} * ({end} - {begin}) * ({in} - 1) / ({width} - 1)",
     "({begin} + {end}) * ({in} - 1) / 2"},
};

struct Rounding {
    std::string_view name, text;
};
// What is within a millionth of halfway counts as halfway, as in onnxruntime.
constexpr Rounding roundings[] = {
    {"round_prefer_floor", "ceil(cast<double>({}) - Expr(0.500001))"},
    {"round_prefer_ceil", "floor(cast<double>({}) + Expr(0.500001))"},
    {"floor", "floor({})"},
    {"ceil", "ceil({})"},
};

/// How Resize (10) rounds: to the element after a position where it shrinks an axis, as in that version's own tests,
/// and to the one before where it stretches one.
constexpr std::string_view by_scale = "by_scale";

template <typename Row, size_t count>
const Row& row(const Row (&rows)[count], const std::string& attribute, const std::string& name) {
    const auto found = std::find_if(std::begin(rows), std::end(rows), [&](const Row& row) { return row.name == name; });
    if (found == std::end(rows)) throw CompileError("{} is '{}'", attribute, name);
    return *found;
}

}  // namespace

Resize::Resize(const Node& node)
    : NodeGenerator(node), mode_(node.string("mode", "nearest")),
      transformation_(node.string("coordinate_transformation_mode", "half_pixel")),
      nearest_mode_(node.string("nearest_mode", "round_prefer_floor")), antialias_(node.integer("antialias", 0) != 0),
      exclude_outside_(node.integer("exclude_outside", 0) != 0) {
    if (node.op_type == "Upsample" || node.version < 11) {
        transformation_ = "asymmetric";
        nearest_mode_ = node.op_type == "Upsample" ? "floor" : by_scale;
    }
    if (mode_ == "bilinear") mode_ = "linear";
    if (mode_ != "nearest" && mode_ != "linear" && mode_ != "cubic")
        throw CompileError("mode is '{}', expected nearest, linear or cubic", mode_);
    if (is_nearest() && antialias_) throw CompileError("antialias is 1, expected 0 with mode nearest");
    row(transformations, "coordinate_transformation_mode", transformation_);
    const bool is_own = node.version < 11 || node.domain == own_domain;
    if (!is_own || nearest_mode_ != by_scale) row(roundings, "nearest_mode", nearest_mode_);
}

std::vector<TensorType> Resize::infer() const {
    const TensorType& data = in(0);
    if (!is_nearest() && !is_float(data.element) && !is_integer(data.element)) {
        throw CompileError("input 0 has type {}, expected a number with mode {}", info(data.element).name, mode_);
    }
    std::vector<Dim> shape = data.shape;
    for (const Axis& axis : all_axes()) shape[axis.axis] = axis.output;
    return {TensorType(data.element, shape)};
}

std::string Resize::as_place(const std::string& text) const {
    return fmt::format("cast<{}>({})", KernelSource::compute_type(type_of_places()), text);
}

std::string Resize::number(double number) const { return KernelSource::literal(number, type_of_places()); }

std::string Resize::number(const Dim& dim, KernelSource& source) const {
    const auto number = dim.constant();
    return number ? this->number(static_cast<double>(*number)) : as_place(source.dim(dim));
}

std::string Resize::scale(KernelSource& source, const Axis& axis) const {
    if (axis.scale != 0) return number(axis.scale);
    if (axis.scale_at) return as_place(source.read(input(2), {fmt::to_string(*axis.scale_at)}));
    if (const auto factor = exact_div(axis.output, axis.input); factor && factor->constant())
        return number(*factor, source);
    return fmt::format("({} / {})", number(axis.output, source), number(axis.input, source));
}

std::string Resize::width(KernelSource& source, const Axis& axis) const {
    if (!axis.has_scale()) return number(axis.output, source);
    const auto extent = axis.input.constant();
    return extent && axis.scale != 0 ? number(axis.scale * static_cast<double>(*extent))
                                     : fmt::format("({} * {})", number(axis.input, source), scale(source, axis));
}

std::string Resize::place(KernelSource& source, const Axis& axis, const std::string& at) const {
    const Transformation& transformation = row(transformations, "", transformation_);
    const auto place = [&](std::string_view text) {
        const std::string place =
            fmt::format(fmt::runtime(text), fmt::arg("x", as_place(at)), fmt::arg("zero", number(0.0)),
                        fmt::arg("scale", scale(source, axis)), fmt::arg("in", number(axis.input, source)),
                        fmt::arg("out", number(axis.output, source)), fmt::arg("width", width(source, axis)),
                        fmt::arg("begin", roi(source, axis, false)), fmt::arg("end", roi(source, axis, true)));
        // A division must not become a multiplication: if it is exact, so is the position.
        return fmt::format("strict_float({})", place);
    };
    if (transformation.of_one.empty()) return place(transformation.place);
    if (const auto is_one = has_one(axis, transformation.one == "{width}"))
        return place(*is_one ? transformation.of_one : transformation.place);
    return fmt::format("select({} == 1, {}, {})", place(transformation.one), place(transformation.of_one),
                       place(transformation.place));
}

/// Whether an axis has one element, by its width before or after rounding; nullopt if known only at run time.
std::optional<bool> Resize::has_one(const Axis& axis, bool before_rounding) const {
    const auto extent = axis.input.constant();
    if (before_rounding && axis.has_scale()) {
        if (axis.scale != 0 && extent) return axis.scale * static_cast<double>(*extent) == 1;
        if (axis.scale > 1) return false;
        return std::nullopt;
    }
    if (axis.output.constant() || prove_less_equal(2, axis.output) == Proof::yes) return axis.output.is(1);
    return std::nullopt;
}

std::string Resize::roi(KernelSource& source, const Axis& axis, bool is_end) const {
    if (!axis.roi_at) return number(is_end ? axis.roi_end : axis.roi_begin);
    const size_t place = *axis.roi_at + (is_end ? axis.axes : 0);
    return as_place(source.read(input(1), {fmt::to_string(place)}));
}

std::optional<int64_t> Resize::repetition(const Axis& axis) const {
    const auto factor = exact_div(axis.output, axis.input);
    if (!factor || !factor->constant() || axis.scale_at ||
        (axis.scale != 0 && axis.scale != static_cast<double>(*factor->constant())))
        return std::nullopt;
    const bool halves = transformation_.find("half_pixel") != std::string::npos &&
                        transformation_ != "tf_half_pixel_for_nn" && !axis.output.is(1);
    const bool floors = transformation_ == "asymmetric" && (nearest_mode_ == "floor" || nearest_mode_ == by_scale);
    return floors || (halves && nearest_mode_.starts_with("round")) ? factor->constant() : std::nullopt;
}

std::string Resize::rounded(KernelSource& source, const Axis& axis, const std::string& place) const {
    const auto text = [](const std::string& mode, const std::string& place) {
        return fmt::format(fmt::runtime(row(roundings, "", mode).text), place);
    };
    if (nearest_mode_ != by_scale) return text(nearest_mode_, place);
    if (!axis.scale_at) return text(axis.scale < 1 ? "ceil" : "floor", place);
    return fmt::format("select({} < 1, {}, {})", scale(source, axis), text("ceil", place), text("floor", place));
}

std::string Resize::nearest(KernelSource& source, const Axis& axis, const std::string& at) const {
    if (const auto times = repetition(axis)) return fmt::format("{} / {}", at, *times);
    const std::string rounded = this->rounded(source, axis, place(source, axis, at));
    return table(source, axis, "nearest", at,
                 fmt::format("clamp(cast<int>({}), 0, {})", rounded, source.dim(axis.input - 1))) +
           fmt::format("({})", at);
}

std::string Resize::table(KernelSource& source, const Axis& axis, const std::string& role, const std::string& arguments,
                          const std::string& text) const {
    const std::string full_role = fmt::format("{}_{}", source.vars(out(0).rank())[axis.axis], role);
    const std::string func = source.func(fmt::format("{}_{}", output(0)->name, full_role));
    source.keep(output(0), full_role, func);
    source.line(fmt::format("{}({}) = {};", func, arguments, text));
    if (!source.target().is_gpu()) source.schedule(fmt::format("{}.compute_root();", func));
    return func;
}

void Resize::copy_nearest(KernelSource& source, const std::vector<Axis>& axes) const {
    const Coordinates at = source.vars(out(0).rank());
    Coordinates from = at;
    for (const Axis& axis : axes) from[axis.axis] = nearest(source, axis, at[axis.axis]);
    const std::string outside = this->outside(source, axes);
    if (outside.empty()) {
        source.store(output(0), at, source.element(input(0), from));
    } else {
        source.define(output(0), at,
                      fmt::format("select({}, {}, {})", outside,
                                  result_of(float_text(node_.real("extrapolation_value", 0.0f), false)),
                                  source.read(input(0), from)));
    }
}

std::string Resize::outside(KernelSource& source, const std::vector<Axis>& axes) const {
    std::vector<std::string> conditions;
    for (const Axis& axis : axes) {
        if (!crops()) continue;
        const std::string place = this->place(source, axis, source.vars(out(0).rank())[axis.axis]);
        conditions.push_back(fmt::format("{0} < 0 || {0} > {1}", place, number(axis.input - 1, source)));
    }
    return fmt::format("{}", fmt::join(conditions, " || "));
}

std::string Resize::result_of(const std::string& sum) const {
    const ElementType type = out(0).element;
    if (is_float(type)) return fmt::format("cast<{}>({})", KernelSource::compute_type(type), sum);
    return fmt::format("saturating_cast<{}>(onnx::round({}))", info(type).halide_name, sum);
}

void Resize::algorithm(KernelSource& source) const {
    const std::vector<Axis> axes = this->axes();
    is_nearest() || axes.empty() ? copy_nearest(source, axes) : interpolate(source);
}

void Resize::schedule(KernelSource& source) const {
    const bool copies = is_nearest() || axes().empty();
    if (source.target().is_gpu()) return NodeGenerator::schedule(source);
    if (!copies) return schedule_passes(source);
    for (size_t i = 0; i < source.output_count(); ++i) schedule_shifted(source, source.output_loops(i));
}

namespace {

std::unique_ptr<NodeGenerator> make_resize(const Node& node) {
    auto resize = std::make_unique<Resize>(node);
    if (resize->is_sized_by_run()) return std::make_unique<EarlyComposite>(node, expand_resize);
    return resize;
}

}  // namespace

std::vector<Operator> resize_operators() {
    return {{"Resize", 10, make_resize}, {"Upsample", 7, make_resize}, {"Resize", 1, make<Resize>, own_domain}};
}

}  // namespace onnx2halide
