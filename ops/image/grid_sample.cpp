#include <algorithm>
#include <optional>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ops/families.h"
#include "ops/schedule/directives.h"
#include "ops/schedule/loop_schedule.h"

namespace onnx2halide {

namespace {

/// GridSample: samples input 0 at the positions in a grid, which range from -1 to 1 along each spatial axis. The
/// compiler's own operator of this name may also have an input 2, the index of the image that each grid samples.
class GridSample : public NodeGenerator {
public:
    explicit GridSample(const Node& node);

    std::vector<TensorType> infer() const override;
    void algorithm(KernelSource& source) const override;
    void schedule(KernelSource& source) const override;
    /// Neighbouring positions of a grid may be anywhere, but the channels of a position are adjacent.
    LayoutNeed layout_need() const override {
        const auto channels = in(0).shape[1].constant();
        return channels && *channels >= 8 ? LayoutNeed::channels_last : LayoutNeed::any;
    }
    /// Rows of pixels that do not fill vectors.
    std::optional<AxisRun> axes_gaining_as_one(const Target& target) const override;
    std::vector<Check> checks() const override;
    std::vector<IndexCheck> index_checks() const override {
        return has_images() ? std::vector<IndexCheck>{{images_input, {in(0).shape[0]}}} : std::vector<IndexCheck>();
    }
    Dim flops() const override;

private:
    static constexpr size_t images_input = 2;
    enum class Mode { nearest, linear, cubic };
    Mode mode_;
    std::string padding_;  // zeros, border or reflection
    bool aligns_corners_;

    bool has_images() const { return node_.has_input(images_input); }
    size_t axes() const { return in(0).rank() - 2; }
    int64_t taps() const { return mode_ == Mode::nearest ? 1 : mode_ == Mode::linear ? 2 : 4; }
    /// The type of positions, and that of weights and sums.
    ElementType place_type() const {
        return in(1).element == ElementType::float64 ? in(1).element : ElementType::float32;
    }
    ElementType sum_type() const {
        return in(0).element == ElementType::float64 ? in(0).element : ElementType::float32;
    }

    Coordinates pixel(KernelSource& source) const;
    std::string image(KernelSource& source) const;
    std::string table(KernelSource& source, const std::string& role, Coordinates arguments,
                      const std::string& text) const;
    std::string place(KernelSource& source, size_t axis) const;
    std::string tap(KernelSource& source, size_t axis, const std::string& first, const std::string& number) const;
    void interpolate(KernelSource& source) const;
    void copy_nearest(KernelSource& source) const;
    std::string sample(KernelSource& source, const Coordinates& taps, const std::string& element,
                       const std::string& otherwise) const;
    std::vector<std::string> tables(KernelSource& source) const;
    void schedule_plain(KernelSource& source) const;
};

GridSample::GridSample(const Node& node)
    : NodeGenerator(node), padding_(node.string("padding_mode", "zeros")),
      aligns_corners_(node.integer("align_corners", 0) != 0) {
    const std::string mode = node.string("mode", node.version < 20 ? "bilinear" : "linear");
    if (mode == "nearest") {
        mode_ = Mode::nearest;
    } else if (mode == "linear" || mode == "bilinear") {
        mode_ = Mode::linear;
    } else if (mode == "cubic" || mode == "bicubic") {
        mode_ = Mode::cubic;
    } else {
        throw CompileError("mode is '{}', expected nearest, linear or cubic", mode);
    }
    if (padding_ != "zeros" && padding_ != "border" && padding_ != "reflection")
        throw CompileError("padding_mode is '{}', expected zeros, border or reflection", padding_);
}

std::vector<TensorType> GridSample::infer() const {
    const TensorType &image = in(0), &grid = in(1);
    if (image.rank() < 3 || grid.rank() != image.rank() ||
        prove_equal(grid.shape.back(), static_cast<int64_t>(axes())) == Proof::no) {
        throw CompileError("input and grid have shapes {} and {}, expected NxCx… and Nx…x(axes)",
                           shape_text(image.shape), shape_text(grid.shape));
    }
    if (!is_float(grid.element)) throw CompileError("grid has type {}, expected floats", info(grid.element).name);
    if (mode_ != Mode::nearest && !is_float(image.element) && !is_integer(image.element))
        throw CompileError("input 0 has type {}, expected numbers", info(image.element).name);
    if (has_images() && (in(images_input).rank() != 1 || !is_integer(in(images_input).element)))
        throw CompileError("images are {}, expected a row of integers", in(images_input).text());
    const Dim& grids = has_images() ? in(images_input).shape.at(0) : image.shape[0];
    if (prove_equal(grids, grid.shape[0]) == Proof::no)
        throw CompileError("the grid has a batch of {}, expected {}", grid.shape[0].text(), grids.text());
    const auto empty = std::find(image.shape.begin() + 2, image.shape.end(), Dim(0));
    if (empty != image.shape.end())
        throw CompileError("input has shape {}, which holds no element to sample", shape_text(image.shape));
    std::vector<Dim> shape = {grids, image.shape[1]};
    shape.insert(shape.end(), grid.shape.begin() + 1, grid.shape.end() - 1);
    return {TensorType(image.element, shape)};
}

std::vector<Check> GridSample::checks() const {
    std::vector<Check> checks;
    check_extent(checks, 1, 0, out(0).shape[0]);
    check_extent(checks, 1, in(1).rank() - 1, static_cast<int64_t>(axes()));
    return checks;
}

std::optional<AxisRun> GridSample::axes_gaining_as_one(const Target& target) const {
    const size_t first = 2, last = out(0).rank() - 1, grid = 1;
    if (target.is_gpu() || first == last || !out(0).is_row_major() || !in(grid).is_row_major()) return std::nullopt;
    const std::span places = std::span(out(0).shape).subspan(first);
    if (!std::ranges::equal(places, std::span(in(grid).shape).subspan(first - 1, places.size()))) return std::nullopt;
    const bool fill = floor_mod(places.back(), target.lanes(out(0).element)).is(0);
    return count_nontrivial(places) > 1 && !fill ? std::optional(AxisRun{first, last, -1, {grid}}) : std::nullopt;
}

/// The output's coordinates without that of the channel.
Coordinates GridSample::pixel(KernelSource& source) const {
    Coordinates at = source.vars(out(0).rank());
    at.erase(at.begin() + 1);
    return at;
}

/// The number of the sampled image.
std::string GridSample::image(KernelSource& source) const {
    const std::string grid = source.vars(out(0).rank())[0];
    if (!has_images()) return grid;
    const std::string index = source.read(input(images_input), {grid}), count = source.dim(in(0).shape[0]);
    return fmt::format("clamp(cast<int>(select({0} < 0, {0} + {1}, {0})), 0, {1} - 1)", index, count);
}

/// Defines a Func that all channels share, and returns its call.
std::string GridSample::table(KernelSource& source, const std::string& role, Coordinates arguments,
                              const std::string& text) const {
    const std::string func = source.func(output(0)->name + "_" + role);
    source.keep(output(0), role, func);
    std::reverse(arguments.begin(), arguments.end());
    const std::string call = fmt::format("{}({})", func, fmt::join(arguments, ", "));
    source.line(fmt::format("{} = {};", call, text));
    return call;
}

/// The sampled position along an axis, in elements.
std::string GridSample::place(KernelSource& source, size_t axis) const {
    const ElementType type = place_type();
    Coordinates at = pixel(source);
    at.push_back(fmt::to_string(axes() - 1 - axis));
    const std::string extent =
        fmt::format("cast<{}>({})", KernelSource::compute_type(type), source.dim(in(0).shape[axis + 2]));
    const std::string number = source.read(input(1), at), name = source.vars(out(0).rank())[axis + 2];
    std::string text = aligns_corners_ ? fmt::format("strict_float(({} + 1) / 2 * ({} - 1))", number, extent)
                                       : fmt::format("strict_float((({} + 1) * {} - 1) / 2)", number, extent);
    // Rounds to the nearest integer, ties to even, before padding is applied.
    if (mode_ == Mode::nearest) text = fmt::format("onnx::round({})", text);
    if (padding_ == "reflection") {
        const std::string place = table(source, name + "_unpadded", pixel(source), text);
        text = aligns_corners_ ? fmt::format("onnx::reflect({}, 0, {} - 1)", place, extent)
                               : fmt::format("onnx::reflect({}, -0.5f, {} - 0.5f)", place, extent);
    } else if (padding_ == "border" && mode_ != Mode::cubic) {
        text = fmt::format("clamp({}, 0, {} - 1)", text, extent);
    } else {
        // Past these bounds no tap is inside. Each tap of cubic sampling is clamped to the border by itself, as in
        // PyTorch and onnxruntime; ONNX's reference clamps the position.
        text = fmt::format("clamp({}, -4, {} + 4)", text, extent);
    }
    return table(source, name + "_place", pixel(source), text);
}

/// The coordinate of a tap, which is inside only if the padding makes it so.
std::string GridSample::tap(KernelSource& source, size_t axis, const std::string& first,
                            const std::string& number) const {
    const std::string extent = source.dim(in(0).shape[axis + 2]);
    const std::string at = number.empty() ? first : fmt::format("{} + {}", first, number);
    if (padding_ == "reflection" && mode_ == Mode::cubic)
        return fmt::format("onnx::mirror({}, {}, {})", at, extent, aligns_corners_);
    return at;
}

/// The element at these coordinates, each clamped to its axis; with zero padding, `otherwise` if one is outside.
std::string GridSample::sample(KernelSource& source, const Coordinates& taps, const std::string& element,
                               const std::string& otherwise) const {
    std::vector<std::string> inside;
    for (size_t i = 0; i < taps.size(); ++i)
        inside.push_back(fmt::format("{0} >= 0 && {0} < {1}", taps[i], source.dim(in(0).shape[i + 2])));
    return padding_ != "zeros" ? element
                               : fmt::format("select({}, {}, {})", fmt::join(inside, " && "), element, otherwise);
}

void GridSample::copy_nearest(KernelSource& source) const {
    const Coordinates at = source.vars(out(0).rank());
    Coordinates from = {image(source), at[1]}, taps;
    for (size_t i = 0; i < axes(); ++i) {
        const std::string place = this->place(source, i);
        taps.push_back(table(source, at[i + 2] + "_tap", pixel(source), fmt::format("cast<int>({})", place)));
        from.push_back(fmt::format("clamp({}, 0, {})", taps.back(), source.dim(in(0).shape[i + 2] - 1)));
    }
    const std::string zero = fmt::format("cast<{}>(0)", info(out(0).element).halide_name);
    source.store(output(0), at, sample(source, taps, source.element(input(0), from), zero));
}

void GridSample::interpolate(KernelSource& source) const {
    const Coordinates at = source.vars(out(0).rank());
    const std::string domain = source.rdom("k", std::vector<Dim>(axes(), taps())), t = source.var("t");
    source.keep(output(0), "taps", domain);
    Coordinates from = {image(source), at[1]}, places;
    std::string weights;
    for (size_t i = 0; i < axes(); ++i) {
        const std::string &name = at[i + 2], place = this->place(source, i);
        const std::string whole = fmt::format("cast<int>(floor({}))", place);
        const std::string first =
            table(source, name + "_first", pixel(source), mode_ == Mode::linear ? whole : whole + " - 1");
        const std::string distance = fmt::format("abs({} - {} - {})", place, first, t);
        // Stored tap by tap: the weights of adjacent pixels are read as a vector.
        Coordinates arguments = pixel(source);
        arguments.insert(arguments.begin(), t);
        table(source, name + "_weight", arguments,
              fmt::format("cast<{}>({})", KernelSource::compute_type(sum_type()),
                          mode_ == Mode::linear ? fmt::format("1 - {}", distance)
                                                : fmt::format("onnx::cubic({}, -0.75f)", distance)));
        arguments.front() = KernelSource::axis(domain, axes() - 1 - i);
        places.push_back(tap(source, i, first, arguments.front()));
        std::reverse(arguments.begin(), arguments.end());
        weights += fmt::format("{}({}) * ", source.kept(output(0), name + "_weight"), fmt::join(arguments, ", "));
        from.push_back(fmt::format("clamp({}, 0, {})", places.back(), source.dim(in(0).shape[i + 2] - 1)));
    }
    const std::string sum = source.func(output(0)->name + "_sum");
    source.keep(output(0), "sum", sum);
    const std::string call = KernelSource::call(sum, out(0), at), zero = KernelSource::literal(0.0, sum_type());
    const bool converts = !is_float(out(0).element);
    const std::string element = source.read(input(0), from);
    source.line(fmt::format("{} = {};", call, zero));
    source.line(
        fmt::format("{} += {}{};", call, weights,
                    sample(source, places, converts ? fmt::format("cast<float>({})", element) : element, zero)));
    source.define(output(0), at,
                  converts ? fmt::format("saturating_cast<{}>({})", info(out(0).element).halide_name, call) : call);
}

void GridSample::algorithm(KernelSource& source) const {
    mode_ == Mode::nearest ? copy_nearest(source) : interpolate(source);
}

/// Vectors run along channels if these are innermost, else along x, so that all channels reuse the positions of a
/// vector of pixels.
void GridSample::schedule(KernelSource& source) const {
    const Coordinates at = source.vars(out(0).rank());
    Loops loops = source.output_loops();
    const int lanes = source.target().lanes(out(0).element);
    const auto innermost = loops.extents[0].constant();
    if (source.target().is_gpu() || lanes == 1 || (innermost && *innermost < lanes)) return schedule_plain(source);

    const std::string &vector = loops.vars[0], tile = source.var(vector + "_tile");
    const bool is_channel = vector == at[1];
    if (!is_channel) {
        const auto channel = std::find(loops.vars.begin(), loops.vars.end(), at[1]) - loops.vars.begin();
        std::rotate(loops.vars.begin() + 1, loops.vars.begin() + channel, loops.vars.begin() + channel + 1);
        std::rotate(loops.extents.begin() + 1, loops.extents.begin() + channel, loops.extents.begin() + channel + 1);
    }
    std::vector<std::string> order = loops.vars;
    order.insert(order.begin() + (is_channel ? 1 : 2), tile);
    source.schedule(loops.func,
                    {fmt::format("split({0}, {1}, {0}, {2}, {3})", vector, tile, source.lanes(out(0).element, lanes),
                                 tail_strategy(loops.extents[0], lanes, true)),
                     reorder(order), vectorize(vector)});
    parallelise(source, loops, 2);
    for (const std::string& func : tables(source)) {
        std::vector<std::string> directives = {compute_at(loops.func, is_channel ? loops.vars[1] : tile)};
        if (!is_channel) directives.push_back(vectorize(vector));
        source.schedule(func, directives);
    }
    if (mode_ == Mode::nearest) return;
    const std::string& sum = source.kept(output(0), "sum");
    std::vector<std::string> taps;
    for (size_t i = 0; i < axes(); ++i) taps.push_back(KernelSource::axis(source.kept(output(0), "taps"), i));
    source.schedule(sum, {compute_at(loops.func, is_channel ? tile : at[1]), vectorize(vector)});
    std::vector<std::string> update = {reorder(joined({vector}, taps)), vectorize(vector)};
    for (const std::string& tap : taps) update.push_back(unroll(tap));
    source.schedule(sum + ".update()", update);
}

void GridSample::schedule_plain(KernelSource& source) const {
    NodeGenerator::schedule(source);
    if (source.target().is_gpu()) return;
    for (const std::string& func : tables(source)) source.schedule(func + ".compute_root();");
}

/// The Funcs that all channels share.
std::vector<std::string> GridSample::tables(KernelSource& source) const {
    const Coordinates at = source.vars(out(0).rank());
    std::vector<std::string> roles = {"place"}, result;
    if (padding_ == "reflection") roles.push_back("unpadded");
    if (mode_ == Mode::nearest) {
        roles.push_back("tap");
    } else {
        roles.insert(roles.end(), {"first", "weight"});
    }
    for (size_t i = 0; i < axes(); ++i) {
        for (const std::string& role : roles) result.push_back(source.kept(output(0), at[i + 2] + "_" + role));
    }
    return result;
}

Dim GridSample::flops() const {
    Dim flops = out(0).elements() * 2;
    for (size_t i = 0; i < axes(); ++i) flops *= taps();
    return flops;
}

}  // namespace

std::vector<Operator> grid_sample_operators() {
    return {{"GridSample", 16, make<GridSample>}, {"GridSample", 1, make<GridSample>, own_domain}};
}

}  // namespace onnx2halide
