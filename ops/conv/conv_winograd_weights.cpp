#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ops/conv/conv_weights.h"
#include "ops/conv/conv_winograd.h"
#include "ops/schedule/directives.h"

namespace onnx2halide {

using namespace tile_axes;

namespace {

constexpr const char* across_role = "across";

}  // namespace

PackWinogradWeights::PackWinogradWeights(const Node& node)
    : NodeGenerator(node), kernel_shape_(node.integers("kernel_shape")), kernel_(tiled_kernel(node)),
      steps_(node.integer("steps", 1)) {}

std::vector<TensorType> PackWinogradWeights::infer() const {
    const std::vector<Dim>& weights = in(0).shape;
    bool fits = weights.size() == kernel_shape_.size() + 2;
    for (size_t i = 0; fits && i < kernel_shape_.size(); ++i) fits = weights[i + 2].is(kernel_shape_[i]);
    if (!fits)
        throw CompileError("weights have shape {}, expected a kernel of {}", shape_text(weights),
                           fmt::join(kernel_shape_, "x"));
    std::vector<Dim> packed = {ceil_div(weights[0], weight_block), kernel_[rows].places, kernel_[columns].places};
    for (size_t i = 0; i < plane_axes(kernel_shape_.size()); ++i) packed.push_back(kernel_shape_[i]);
    for (const KernelAxis& axis : kernel_) {
        if (axis.parts() > 1) packed.push_back(axis.parts());
    }
    packed.insert(packed.end(), {floor_div(weights[1], steps_), weight_block});
    if (steps_ > 1) packed.push_back(steps_);
    return {TensorType(compute_element(in(0).element), packed)};
}

void PackWinogradWeights::algorithm(KernelSource& source) const {
    const Coordinates at = source.vars(out(0).rank());
    const size_t first = at.size() - static_cast<size_t>(channel_axes());
    const std::string &i = at[1 + columns], &j = at[1 + rows], &lane = at[first + 1];
    const std::string input = steps_ > 1 ? fmt::format("{} * {} + {}", at[first], steps_, at.back()) : at[first];
    const Coordinates outside(at.begin() + 3, at.end() - channel_axes());  // taps along other axes, and parts
    const std::string channel = fmt::format("{} * {} + {}", at[0], weight_block, lane);
    const std::string channels = source.dim(in(0).shape[0]), ky = source.var("ky");
    Coordinates from = {fmt::format("min({}, {} - 1)", channel, channels), input};
    auto part = outside.begin() + static_cast<std::ptrdiff_t>(plane_axes(kernel_shape_.size()));
    from.insert(from.end(), outside.begin(), part);
    std::vector<std::string> beyond;  // conditions, if the last part extends past the kernel
    for (const size_t axis : {rows, columns}) {
        if (axis == columns && kernel_shape_.size() == 1) continue;
        const KernelAxis& kernel = kernel_[axis];
        std::string tap = axis == rows ? ky : "tap";
        if (kernel.taps() == 1) tap = "0";
        if (kernel.parts() > 1) {
            tap = fmt::format("{} + {}{}", first_tap_of_part(*part++, kernel), tap, factor_text(kernel.stride));
            const int reach = kernel.parts() * kernel.taps();
            if (reach > kernel.kernel) {
                beyond.push_back(fmt::format("{} >= {}", tap, kernel.kernel));
                tap = fmt::format("min({}, {})", tap, kernel.kernel - 1);
            }
        }
        from.push_back(tap);
    }
    std::string weight = source.read(this->input(0), from);
    const std::string zero = KernelSource::literal(int64_t{0}, out(0).element);
    if (!beyond.empty()) weight = fmt::format("select({}, {}, {})", fmt::join(beyond, " || "), zero, weight);
    const std::string across = source.func(output(0)->name + "_across");
    source.keep(output(0), across_role, across);
    const auto transformed = [&](size_t axis, const std::string& place, const std::string& element) {
        return fmt::format("onnx::winograd::filter<{}, {}>({}, [&](int tap) {{ return {}; }})", kernel_[axis].taps(),
                           kernel_[axis].places, place, element);
    };
    const auto of_across = [&](const std::string& row) {
        Coordinates within = {lane, at[first], i, row, at[0]};
        if (steps_ > 1) within.insert(within.begin(), at.back());
        within.insert(within.end(), outside.begin(), outside.end());
        return fmt::format("{}({})", across, fmt::join(within, ", "));
    };
    source.line(fmt::format("{} = {};", of_across(ky), transformed(columns, i, weight)));
    source.define(
        output(0), at,
        fmt::format("select({} < {}, {}, {})", channel, channels, transformed(rows, j, of_across("tap")), zero));
}

void PackWinogradWeights::schedule(KernelSource& source) const {
    const Loops loops = source.output_loops();
    const size_t last = loops.vars.size() - 1;  // of the blocks of channels
    const std::string &c = loops.vars[0], &i = loops.vars[last - 2], &j = loops.vars[last - 1];
    // The kernel may not know its extents, but it does know these: the expression of each place is selected at compile
    // time.
    const auto unroll = [](const std::string& var, int extent) {
        return fmt::format("bound({0}, 0, {1}).unroll({0})", var, extent);
    };
    std::vector<std::string> order = {i, j, c};
    order.insert(order.end(), loops.vars.begin() + 1, loops.vars.end() - 3);
    order.push_back(loops.vars[last]);
    source.schedule(loops.func, {reorder(order), unroll(i, kernel_[columns].places), unroll(j, kernel_[rows].places)});
    const std::string ky = source.var("ky");
    source.schedule(source.kept(output(0), across_role),
                    {compute_at(loops.func, c), reorder({i, ky}), unroll(i, kernel_[columns].places),
                     unroll(ky, kernel_[rows].taps())});
}

}  // namespace onnx2halide
