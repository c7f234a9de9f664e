#include <fmt/format.h>

#include "ops/families.h"
#include "ops/image/region_node.h"
#include "ops/reduce/reduction.h"

namespace onnx2halide {

namespace {

/// The largest elements of a map [N, C, H, W] in bins of regions, as in Fast R-CNN (Girshick, 2015). Regions [R, 5] are
/// an image's index and the first and last x and y, rounded to whole elements after scaling: a region has at least one,
/// and its bins may share some. Elements outside of the map are ignored; an empty bin is 0.
class MaxRoiPool : public RegionNode {
public:
    explicit MaxRoiPool(const Node& node) : RegionNode(node) {
        for (const int64_t bins : node.integers("pooled_shape")) {
            if (bins < 1 || bins > Dim::unbounded)
                throw CompileError("pooled_shape has {} bins, expected 1 or more", bins);
            bins_.push_back(bins);
        }
        if (bins_.size() != 2) throw CompileError("pooled_shape has {} numbers, expected two", bins_.size());
    }

    std::vector<TensorType> infer() const override {
        const std::vector<Dim>&map = in(0).shape, &regions = in(1).shape;
        if (map.size() != 4) throw CompileError("input 0 has rank {}, expected 4", map.size());
        if (!is_float(in(0).element))
            throw CompileError("input 0 has type {}, expected floats", info(in(0).element).name);
        if (regions.size() != 2 || prove_equal(regions[1], 5) == Proof::no)
            throw CompileError("rois have shape {}, expected Nx5", shape_text(regions));
        if (map[0].is(0) || map[2].is(0) || map[3].is(0))
            throw CompileError("input has shape {}, which holds no element to pool", shape_text(map));
        return {TensorType(in(0).element, {regions[0], map[1], bins_[0], bins_[1]})};
    }

    std::vector<Check> checks() const override {
        std::vector<Check> checks;
        check_extent(checks, 1, 1, 5);
        return checks;
    }

    void algorithm(KernelSource& source) const override {
        const Coordinates at = source.vars(4);
        const std::string domain = source.rdom("k", {in(0).shape[3], in(0).shape[2]});
        source.keep(output(0), domain_role, domain);
        const std::string x = KernelSource::axis(domain, 0), y = KernelSource::axis(domain, 1);
        const std::string has_no_column = keep_inside(source, domain, x, 3, "x"),
                          has_no_row = keep_inside(source, domain, y, 2, "y");
        const std::string image = fmt::format("clamp(cast<int>({}), 0, {})", source.read(input(1), {at[0], "0"}),
                                              source.dim(in(0).shape[0] - 1));
        const std::string largest = source.func(output(0)->name + "_largest");
        source.keep(output(0), largest_role, largest);
        const std::string call = KernelSource::call(largest, out(0), at), lowest = lowest_literal(in(0).element);
        source.line(fmt::format("{} = {};", call, lowest));
        source.line(fmt::format("{0} = max({0}, {1});", call, source.read(input(0), {image, at[1], y, x})));
        source.define(output(0), at,
                      fmt::format("select({} || {}, {}, {})", has_no_column, has_no_row,
                                  KernelSource::literal(0.0, in(0).element), call));
    }

    void schedule(KernelSource& source) const override {
        if (source.target().is_gpu()) return NodeGenerator::schedule(source);
        schedule_bins(source, {"x_start", "x_bin", "x_first", "x_end", "y_start", "y_bin", "y_first", "y_end"},
                      largest_role, domain_role);
    }

private:
    std::vector<Dim> bins_;  // by height and width
    static constexpr const char *domain_role = "domain", *largest_role = "largest";

    /// Defines where bins begin and end along an axis of the map, restricts the domain's `step` to that range, and
    /// returns the condition that it is empty. The rounding of a bin's size determines whether neighbours share an
    /// element, so a division must not become a multiplication.
    std::string keep_inside(KernelSource& source, const std::string& domain, const std::string& step, size_t axis,
                            const std::string& name) const {
        const Coordinates at = source.vars(4);
        const std::string scale = KernelSource::literal(double{node_.real("spatial_scale", 1.0f)}, in(0).element);
        // Ties are rounded away from zero.
        const auto scaled = [&](size_t column) {
            const std::string place =
                fmt::format("{} * {}", source.read(input(1), {at[0], fmt::to_string(column)}), scale);
            return fmt::format("cast<int>(select({0} < 0, ceil({0} - 0.5f), floor({0} + 0.5f)))", place);
        };
        const size_t column = axis == 3 ? 1 : 2;
        const std::string start = stage(source, name + "_start", at[0], scaled(column));
        const std::string bin = stage(source, name + "_bin", at[0],
                                      fmt::format("strict_float(cast<float>(max({} - {} + 1, 1)) / {})",
                                                  scaled(column + 2), start, source.dim(bins_[axis - 2])));
        const auto edge = [&](const std::string& role, const std::string& offset) {
            return stage(source, name + role, fmt::format("{}, {}", at[axis], at[0]),
                         fmt::format("clamp(cast<int>({}) + {}, 0, {})", offset, start, source.dim(in(0).shape[axis])));
        };
        const std::string first = edge("_first", fmt::format("floor(strict_float({} * {}))", at[axis], bin)),
                          end = edge("_end", fmt::format("ceil(strict_float(({} + 1) * {}))", at[axis], bin));
        source.line(fmt::format("{}.where({} >= {});", domain, step, first));
        source.line(fmt::format("{}.where({} < {});", domain, step, end));
        return fmt::format("{} >= {}", first, end);
    }
};

}  // namespace

std::vector<Operator> max_roi_pool_operators() { return {{"MaxRoiPool", 1, make<MaxRoiPool>}}; }

}  // namespace onnx2halide
