#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ops/conv/conv.h"
#include "ops/families.h"
#include "ops/schedule/directives.h"
#include "ops/schedule/loop_schedule.h"

namespace onnx2halide {

namespace {

/// DeformConv: a convolution whose taps are displaced by offsets, to positions between elements. The samples of an
/// output row are computed first; their products with the weights are a matrix product.
class DeformConv : public Conv {
public:
    explicit DeformConv(const Node& node);

    std::vector<TensorType> infer() const override;
    std::vector<Check> checks() const override;
    void algorithm(KernelSource& source) const override;
    void schedule(KernelSource& source) const override;
    LayoutNeed layout_need() const override { return LayoutNeed::row_major; }

private:
    int64_t offset_groups_;
    static constexpr const char *samples_role = "samples", *corner_role = "corner", *tap_role = "tap";
    static constexpr size_t offset_input = 2, mask_input = 4;

    size_t bias_input() const override { return 3; }
    size_t axes() const { return in(0).rank() - 2; }
    int64_t taps() const;
    /// The shapes of offsets and masks.
    std::vector<Dim> per_tap(const Dim& numbers) const;
    std::vector<Dim> offset_shape() const { return per_tap(static_cast<int64_t>(axes())); }
    std::vector<Dim> mask_shape() const { return per_tap(1); }
    void check(size_t input, std::string_view name, const std::vector<Dim>& expected) const;
    Coordinates pixel(KernelSource& source, const Coordinates& more) const;
    void define_places(KernelSource& source) const;
    void define_samples(KernelSource& source) const;
    std::string place_role(size_t axis) const { return fmt::format("place_{}", axis); }
};

DeformConv::DeformConv(const Node& node) : Conv(node), offset_groups_(node.integer("offset_group", 1)) {
    if (offset_groups_ < 1) throw CompileError("offset_group is {}, expected 1 or more", offset_groups_);
}

int64_t DeformConv::taps() const {
    int64_t taps = 1;
    for (const int64_t extent : kernel()) taps *= extent;
    return taps;
}

std::vector<Dim> DeformConv::per_tap(const Dim& numbers) const {
    std::vector<Dim> shape = {in(0).shape[0], numbers * offset_groups_ * taps()};
    for (const WindowAxis& axis : window()) shape.push_back(axis.output);
    return shape;
}

void DeformConv::check(size_t input, std::string_view name, const std::vector<Dim>& expected) const {
    const std::vector<Dim>& shape = in(input).shape;
    bool fits = shape.size() == expected.size();
    for (size_t i = 0; fits && i < shape.size(); ++i) fits = prove_equal(shape[i], expected[i]) != Proof::no;
    if (!fits) throw CompileError("{} has shape {}, expected {}", name, shape_text(shape), shape_text(expected));
}

std::vector<TensorType> DeformConv::infer() const {
    std::vector<TensorType> types = Conv::infer();
    if (!exact_div(in(0).shape[1], offset_groups_)) {
        throw CompileError("input has {} channels, not a multiple of {} offset groups", in(0).shape[1].text(),
                           offset_groups_);
    }
    for (size_t i = 2; i < in(0).rank(); ++i) {
        if (in(0).shape[i].is(0))
            throw CompileError("input has shape {}, which holds no element to sample", shape_text(in(0).shape));
    }
    check(offset_input, "offset", offset_shape());
    if (has_input(mask_input)) check(mask_input, "mask", mask_shape());
    return types;
}

std::vector<Check> DeformConv::checks() const {
    std::vector<Check> checks = Conv::checks();
    const std::vector<Dim> offset = offset_shape(), mask = mask_shape();
    for (size_t axis = 0; axis < offset.size(); ++axis) check_extent(checks, offset_input, axis, offset[axis]);
    for (size_t axis = 0; has_input(mask_input) && axis < mask.size(); ++axis)
        check_extent(checks, mask_input, axis, mask[axis]);
    return checks;
}

/// The spatial coordinates of the output, innermost first, then `more` and the batch: those of Funcs that all output
/// channels share.
Coordinates DeformConv::pixel(KernelSource& source, const Coordinates& more) const {
    const Coordinates at = source.vars(out(0).rank());
    Coordinates result(at.rbegin(), at.rend() - 2);
    result.insert(result.end(), more.begin(), more.end());
    result.push_back(at[0]);
    return result;
}

/// Defines the positions of the taps of a group of channels along each axis.
void DeformConv::define_places(KernelSource& source) const {
    const Window window = this->window();
    const Coordinates at = source.vars(out(0).rank());
    const std::string tap = source.var("tap"), group = source.var("og");
    int64_t behind = taps();
    for (size_t i = 0; i < axes(); ++i) {
        const WindowAxis& axis = window[i];
        behind /= axis.kernel;
        std::string own = behind == 1 ? tap : fmt::format("{} / {}", tap, behind);
        if (i > 0) own += fmt::format(" % {}", axis.kernel);
        Coordinates from = at;
        from[1] = fmt::format("({} * {} + {}) * {} + {}", group, taps(), tap, axes(), i);
        const std::string func = source.func(fmt::format("{}_{}", output(0)->name, at[i + 2]));
        source.keep(output(0), place_role(i), func);
        // Beyond these bounds all neighbours are outside.
        source.line(fmt::format("{}({}) = clamp({} + {}, -2, cast<{}>({}));", func,
                                fmt::join(pixel(source, {tap, group}), ", "), axis.tap(source, at[i + 2], own),
                                source.read(input(offset_input), from),
                                KernelSource::compute_type(in(offset_input).element), source.dim(axis.input + 1)));
    }
}

/// Defines the sample at each tap of each channel: its neighbours, interpolated linearly.
void DeformConv::define_samples(KernelSource& source) const {
    const Coordinates at = source.vars(out(0).rank());
    const std::string tap = source.var("tap"), channel = source.var("ci");
    const std::string corner = source.rdom("corner", std::vector<Dim>(axes(), 2));
    source.keep(output(0), corner_role, corner);
    const Dim channels_of_group = floor_div(in(0).shape[1], offset_groups_);
    const std::string group =
        offset_groups_ == 1 ? "0" : fmt::format("{} / {}", channel, source.dim(channels_of_group));
    const std::string samples = source.func(output(0)->name + "_samples");
    source.keep(output(0), samples_role, samples);
    const std::string call = fmt::format("{}({})", samples, fmt::join(pixel(source, {tap, channel}), ", "));
    const std::string zero = KernelSource::literal(0.0, in(0).element);

    Coordinates from = {at[0], channel};
    std::vector<std::string> inside;
    std::string weights;
    for (size_t i = 0; i < axes(); ++i) {
        const std::string place =
            fmt::format("{}({})", source.kept(output(0), place_role(i)), fmt::join(pixel(source, {tap, group}), ", "));
        const std::string neighbour =
            fmt::format("cast<int>(floor({})) + {}", place, KernelSource::axis(corner, axes() - 1 - i));
        inside.push_back(fmt::format("{0} >= 0 && {0} < {1}", neighbour, source.dim(in(0).shape[i + 2])));
        weights += fmt::format("(1 - abs({} - ({}))) * ", place, neighbour);
        from.push_back(fmt::format("clamp({}, 0, {})", neighbour, source.dim(in(0).shape[i + 2] - 1)));
    }
    Coordinates mask = at;
    mask[1] = fmt::format("{} * {} + {}", group, taps(), tap);
    source.line(fmt::format("{} = {};", call, zero));
    source.line(fmt::format("{} += {}select({}, {}, {}){};", call, weights, fmt::join(inside, " && "),
                            source.read(input(0), from), zero,
                            has_input(mask_input) ? " * " + source.read(input(mask_input), mask) : ""));
}

void DeformConv::algorithm(KernelSource& source) const {
    define_places(source);
    define_samples(source);
    const Coordinates at = source.vars(out(0).rank());
    const std::vector<int64_t> kernel = this->kernel();
    std::vector<Dim> extents(kernel.rbegin(), kernel.rend());
    extents.push_back(inputs_per_group());
    const std::string domain = source.rdom("k", extents);
    source.keep(output(0), tap_role, domain);
    std::string channel = KernelSource::axis(domain, axes()), tap;
    Coordinates weight = {at[1], channel};
    for (size_t i = 0; i < axes(); ++i) {
        const std::string step = KernelSource::axis(domain, axes() - 1 - i);
        weight.push_back(step);
        tap = i == 0 ? step : fmt::format("({}) * {} + {}", tap, kernel[i], step);
    }
    if (group_ > 1)
        channel = fmt::format("{} / {} * {} + {}", at[1], source.dim(channels_per_group()),
                              source.dim(inputs_per_group()), channel);
    const std::string sum = source.func(output(0)->name + "_sum");
    source.keep(output(0), sum_role, sum);
    const std::string call = KernelSource::call(sum, out(0), at);
    source.line(fmt::format("{} = {};", call,
                            has_input(bias_input()) ? source.read(input(bias_input()), {at[1]})
                                                    : KernelSource::literal(0.0, out(0).element)));
    source.line(fmt::format("{} += {} * {}({});", call, source.read(input(1), weight),
                            source.kept(output(0), samples_role), fmt::join(pixel(source, {tap, channel}), ", ")));
    source.define(output(0), at, call);
}

/// Schedules row by row of the output: the samples, then the products with channels and pixels in registers.
void DeformConv::schedule(KernelSource& source) const {
    const Loops loops = source.output_loops();
    if (source.target().is_gpu()) return NodeGenerator::schedule(source);
    constexpr int channels = 8;
    const std::string &x = loops.vars[0], &c = loops.vars[axes()], x_tile = source.var(x + "_tile"),
                      c_tile = source.var(c + "_tile");
    const int lanes = source.target().lanes(loops.element);
    const auto width = loops.extents[0].constant(), outputs = this->channels().constant();
    const int vector = width && *width < lanes ? 1 : lanes;
    const int channels_of_tile = outputs && *outputs % channels == 0 ? channels : 1;
    std::vector<std::string> order = {x, c, x_tile, c_tile}, rows;
    for (const std::string& var : loops.vars) {
        if (var != x && var != c) rows.push_back(var);
    }
    order.insert(order.end(), rows.begin(), rows.end());
    std::vector<std::string> directives = {
        fmt::format("split({0}, {1}, {0}, {2}, {3})", x, x_tile, vector, tail_strategy(loops.extents[0], vector, true)),
        fmt::format("split({0}, {1}, {0}, {2})", c, c_tile, channels_of_tile), reorder(order), vectorize(x), unroll(c)};
    const std::string row = fuse_all(source, rows, "row", directives);
    directives.push_back(parallel(row));
    source.schedule(loops.func, directives);

    const std::string of_row = compute_at(loops.func, row);
    const std::string vectors = fmt::format("vectorize({}, {}, TailStrategy::GuardWithIf)", x, vector);
    for (size_t i = 0; i < axes(); ++i) source.schedule(source.kept(output(0), place_role(i)), {of_row, vectors});
    const std::string &samples = source.kept(output(0), samples_role), &sum = source.kept(output(0), sum_role);
    std::vector<std::string> corners, steps;
    for (size_t i = 0; i < axes(); ++i) corners.push_back(KernelSource::axis(source.kept(output(0), corner_role), i));
    for (size_t i = 0; i <= axes(); ++i) steps.push_back(KernelSource::axis(source.kept(output(0), tap_role), i));
    // All channels of a tap are computed together, as they share its position.
    directives = {
        fmt::format("reorder({}, {}, {}, {})", x, fmt::join(corners, ", "), source.var("ci"), source.var("tap")),
        vectors};
    for (const std::string& corner : corners) directives.push_back(unroll(corner));
    source.schedule(samples, {of_row, vectors});
    source.schedule(samples + ".update()", directives);
    const std::string vector_of_tile = vectorize(x), unrolled = unroll(c);
    source.schedule(sum, {compute_at(loops.func, x_tile), vector_of_tile, unrolled});
    source.schedule(sum + ".update()",
                    {fmt::format("reorder({}, {}, {})", x, c, fmt::join(steps, ", ")), vector_of_tile, unrolled});
}

}  // namespace

std::vector<Operator> deform_conv_operators() { return {{"DeformConv", 19, make<DeformConv>}}; }

}  // namespace onnx2halide
