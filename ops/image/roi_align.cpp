#include <fmt/format.h>

#include "ops/families.h"
#include "ops/image/region_node.h"
#include "ops/reduce/reduction.h"

namespace onnx2halide {

namespace {

/// RoiAlign: the mean or the maximum of samples of a feature map, in each bin of a grid over each region.
class RoiAlign : public RegionNode {
public:
    explicit RoiAlign(const Node& node);

    std::vector<TensorType> infer() const override;
    void algorithm(KernelSource& source) const override;
    void schedule(KernelSource& source) const override;
    std::vector<Check> checks() const override;
    std::vector<IndexCheck> index_checks() const override { return {{2, {in(0).shape[0]}}}; }
    Dim flops() const override { return out(0).elements() * 8 * std::max<int64_t>(1, ratio_ * ratio_); }

private:
    bool is_mean_, shifts_;  // by half a pixel
    int64_t ratio_;          // samples per bin and axis; 0: as many as a bin has elements
    std::vector<Dim> bins_;  // by height and width

    /// The names of what is computed along an axis for each region, and for each sample.
    struct Axis {
        size_t axis;        // of the map and of the output
        std::string name;   // y or x
        std::string step;   // of the RDom over samples
        std::string count;  // of a region's bins, `samples_x(n)`
        std::string low, high, inside;
        std::string of_low, of_high;  // weights
    };
    Axis axis(KernelSource& source, size_t axis, const std::string& step) const;
    void define_samples(KernelSource& source, Axis& axis, const std::string& start, const std::string& size) const;
    std::string corner(KernelSource& source, const Axis& y, const Axis& x, int number) const;
};

/// The limit of samples of a bin along an axis.
constexpr int64_t most_samples = 1 << 16;

RoiAlign::RoiAlign(const Node& node)
    : RegionNode(node), ratio_(node.integer("sampling_ratio", 0)), bins_{node.integer("output_height", 1),
                                                                         node.integer("output_width", 1)} {
    const std::string mode = node.string("mode", "avg");
    if (mode != "avg" && mode != "max") throw CompileError("mode is '{}', expected avg or max", mode);
    is_mean_ = mode == "avg";
    const std::string shift =
        node.string("coordinate_transformation_mode", node.version < 16 ? "output_half_pixel" : "half_pixel");
    if (shift != "half_pixel" && shift != "output_half_pixel") {
        throw CompileError("coordinate_transformation_mode is '{}', expected half_pixel or output_half_pixel", shift);
    }
    shifts_ = shift == "half_pixel";
    if (ratio_ < 0 || ratio_ > most_samples)
        throw CompileError("sampling_ratio is {}, expected 0 to {}", ratio_, most_samples);
    for (const Dim& bins : bins_) {
        if (*bins.constant() < 1 || *bins.constant() > Dim::unbounded)
            throw CompileError("output_height and output_width are {}, expected 1 or more", shape_text(bins_));
    }
}

std::vector<TensorType> RoiAlign::infer() const {
    const std::vector<Dim>&map = in(0).shape, &regions = in(1).shape;
    if (map.size() != 4) throw CompileError("input 0 has rank {}, expected 4", map.size());
    if (!is_float(in(0).element)) throw CompileError("input 0 has type {}, expected floats", info(in(0).element).name);
    if (regions.size() != 2 || prove_equal(regions[1], 4) == Proof::no)
        throw CompileError("rois have shape {}, expected Nx4", shape_text(regions));
    if (in(2).rank() != 1 || prove_equal(in(2).shape[0], regions[0]) == Proof::no) {
        throw CompileError("batch_indices have shape {}, expected {}", shape_text(in(2).shape), regions[0].text());
    }
    if (map[0].is(0) || map[2].is(0) || map[3].is(0))
        throw CompileError("input has shape {}, which holds no element to sample", shape_text(map));
    return {TensorType(in(0).element, {regions[0], map[1], bins_[0], bins_[1]})};
}

std::vector<Check> RoiAlign::checks() const {
    std::vector<Check> checks;
    check_extent(checks, 1, 1, 4);
    check_extent(checks, 2, 0, in(1).shape[0]);
    return checks;
}

RoiAlign::Axis RoiAlign::axis(KernelSource& source, size_t axis, const std::string& step) const {
    const Coordinates at = source.vars(4);
    Axis result{axis, axis == 2 ? "y" : "x", step, "", "", "", "", "", ""};
    const ElementType type = in(0).element;
    const size_t column = axis == 3 ? 0 : 1;
    const auto border = [&](size_t column) {
        const std::string place = fmt::format("{} * {}", source.read(input(1), {at[0], fmt::to_string(column)}),
                                              KernelSource::literal(double{node_.real("spatial_scale", 1.0f)}, type));
        return shifts_ ? place + " - 0.5f" : place;
    };
    const std::string start = stage(source, result.name + "_start", at[0], border(column));
    std::string size = fmt::format("{} - {}", border(column + 2), start);
    // Regions smaller than an element are enlarged to one.
    if (!shifts_) size = fmt::format("max({}, 1)", size);
    const std::string bin =
        stage(source, result.name + "_bin", at[0], fmt::format("({}) / {}", size, source.dim(bins_[axis - 2])));
    define_samples(source, result, start, bin);
    return result;
}

/// Defines the two neighbours of each sample along an axis, and their weights.
void RoiAlign::define_samples(KernelSource& source, Axis& axis, const std::string& start,
                              const std::string& bin) const {
    const Coordinates at = source.vars(4);
    const std::string type = KernelSource::compute_type(in(0).element), t = source.var("t");
    axis.count = ratio_ > 0 ? fmt::to_string(ratio_)
                            : stage(source, axis.name + "_samples", at[0],
                                    fmt::format("cast<int>(clamp(ceil({}), 0, {}))", bin, most_samples));
    const std::string last = source.dim(in(0).shape[axis.axis] - 1), extent = source.dim(in(0).shape[axis.axis]);
    const std::string arguments = fmt::format("{}, {}, {}", t, at[axis.axis], at[0]);
    const std::string place = stage(source, axis.name + "_place", arguments,
                                    fmt::format("{0} + {1} * {2} + (cast<{3}>({4}) + 0.5f) * {2} / {5}", start,
                                                at[axis.axis], bin, type, t, axis.count));
    const std::string held =
        stage(source, axis.name + "_held", arguments, fmt::format("clamp({}, 0, cast<{}>({}))", place, type, last));
    const auto at_step = [&](const std::string& call) {
        return call.substr(0, call.find('(')) + fmt::format("({}, {}, {})", axis.step, at[axis.axis], at[0]);
    };
    axis.low = fmt::format("clamp(cast<int>({}), 0, {})", at_step(held), last);
    axis.high = fmt::format("clamp(cast<int>({}) + 1, 0, {})", at_step(held), last);
    axis.of_high = fmt::format("({0} - floor({0}))", at_step(held));
    axis.of_low = fmt::format("(1 - {})", axis.of_high);
    axis.inside = fmt::format("{0} >= -1 && {0} <= {1}", at_step(place), extent);
}

/// One of a sample's four neighbours, weighted.
std::string RoiAlign::corner(KernelSource& source, const Axis& y, const Axis& x, int number) const {
    const bool is_below = number / 2, is_right = number % 2;
    const Coordinates at = source.vars(4);
    const Dim last = in(0).shape[0] - 1;
    const std::string batch =
        fmt::format("clamp(cast<int>({}), 0, {})", source.read(input(2), {at[0]}), source.dim(last));
    return fmt::format("{} * {} * {}", is_below ? y.of_high : y.of_low, is_right ? x.of_high : x.of_low,
                       source.read(input(0), {batch, at[1], is_below ? y.high : y.low, is_right ? x.high : x.low}));
}

void RoiAlign::algorithm(KernelSource& source) const {
    const Coordinates at = source.vars(4);
    const int64_t most = ratio_ > 0 ? ratio_ : most_samples;
    const std::string domain = source.rdom("k", {most, most});
    const Axis y = axis(source, 2, KernelSource::axis(domain, 1)), x = axis(source, 3, KernelSource::axis(domain, 0));
    if (ratio_ == 0) {
        source.line(fmt::format("{}.where({} < {});", domain, x.step, x.count));
        source.line(fmt::format("{}.where({} < {});", domain, y.step, y.count));
    }
    const std::string sum = source.func(output(0)->name + (is_mean_ ? "_sum" : "_largest"));
    source.keep(output(0), "sum", sum);
    source.keep(output(0), "samples", domain);
    const std::string call = KernelSource::call(sum, out(0), at), zero = KernelSource::literal(0.0, in(0).element);
    std::string corners[4];
    for (int i = 0; i < 4; ++i) corners[i] = corner(source, y, x, i);
    const std::string inside = fmt::format("{} && {}", y.inside, x.inside);
    if (is_mean_) {
        source.line(fmt::format("{} = {};", call, zero));
        source.line(
            fmt::format("{} += select({},\n            {} +\n            {} +\n            {} +\n            {}, {});",
                        call, inside, corners[0], corners[1], corners[2], corners[3], zero));
        source.define(output(0), at,
                      ratio_ > 0 ? fmt::format("{} / {}", call, ratio_ * ratio_)
                                 : fmt::format("{} / max({} * {}, 1)", call, y.count, x.count));
    } else {
        const std::string lowest = lowest_literal(in(0).element);
        source.line(fmt::format("{} = {};", call, lowest));
        source.line(fmt::format("{0} = max({0}, select({1}, max(\n            {2},\n            {3},\n            "
                                "{4},\n            {5}), {6}));",
                                call, inside, corners[0], corners[1], corners[2], corners[3], zero));
        source.define(output(0), at,
                      ratio_ > 0 ? call : fmt::format("select({} * {} == 0, {}, {})", y.count, x.count, zero, call));
    }
}

void RoiAlign::schedule(KernelSource& source) const {
    if (source.target().is_gpu()) return NodeGenerator::schedule(source);
    std::vector<std::string> of_regions = {"y_start", "y_bin", "x_start", "x_bin"};
    if (ratio_ == 0) of_regions.insert(of_regions.end(), {"y_samples", "x_samples"});
    schedule_bins(source, of_regions, "sum", "samples");
}

}  // namespace

std::vector<Operator> roi_align_operators() { return {{"RoiAlign", 10, make<RoiAlign>}}; }

}  // namespace onnx2halide
