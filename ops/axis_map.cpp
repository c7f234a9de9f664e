#include "ops/axis_map.h"

#include <algorithm>

#include <fmt/format.h>

#include "ops/known_elements.h"
#include "ops/movement/relayout.h"
#include "ops/schedule/loop_schedule.h"

namespace onnx2halide {

namespace {

/// `offset + x * step`, as one would write it by hand.
std::string coordinate_text(KernelSource& source, const AxisSource& from, const Coordinates& at) {
    if (!from.axis) return source.dim(from.offset);
    std::string text = at[*from.axis];
    if (from.period) text = fmt::format("{} % {}", text, source.dim(*from.period));
    if (std::abs(from.step) != 1) text = fmt::format("{} * {}", text, std::abs(from.step));
    // For the guarded remainder of a row read backwards, Halide would load a vector from before the row, and fail.
    if (from.step < 0) return fmt::format("max({} - {}, 0)", source.dim(from.offset), text);
    return shifted(source, text, from.offset);
}

/// For each axis of the output, the input's axis that it is, or -1 if its extent is 1; nullopt unless the output is the
/// whole input with permuted axes.
std::optional<std::vector<int>> permutation(const AxisMap& map, const TensorType& in, const TensorType& out) {
    std::vector<int> axes(out.rank(), -1);
    for (size_t i = 0; i < map.size(); ++i) {
        if (in.shape[i].is(1)) continue;
        if (!map[i].is_plain() || prove_equal(in.shape[i], out.shape[*map[i].axis]) != Proof::yes) return std::nullopt;
        axes[*map[i].axis] = static_cast<int>(i);
    }
    for (size_t i = 0; i < out.rank(); ++i) {
        if (axes[i] < 0 && !out.shape[i].is(1)) return std::nullopt;
    }
    return axes;
}

/// The number of the output's innermost loops, with several iterations each, that read contiguous input.
size_t contiguous_loops(const AxisMap& map, const TensorType& in, const TensorType& out) {
    const auto nontrivial_axes = [](const TensorType& type) {
        std::vector<int> axes;
        std::copy_if(type.layout.begin(), type.layout.end(), std::back_inserter(axes),
                     [&](int axis) { return !type.shape[axis].is(1); });
        return axes;
    };
    const std::vector<int> read = nontrivial_axes(in), written = nontrivial_axes(out);
    for (size_t i = 0; i < std::min(read.size(), written.size()); ++i) {
        const AxisSource& from = map[read[i]];
        if (from.axis != static_cast<size_t>(written[i]) || from.step != 1 || from.period) return i;
        if (in.shape[read[i]] != out.shape[written[i]]) return i + 1;
    }
    return std::min(read.size(), written.size());
}

}  // namespace

AxisMap plain_map(size_t rank, size_t first) {
    AxisMap map(rank);
    for (size_t i = 0; i < rank; ++i) map[i].axis = first + i;
    return map;
}

Loops loops_over(const std::string& func, const TensorType& type, const Coordinates& at) {
    Loops loops{func, {}, type.extents(), type.element};
    for (const int axis : type.layout) loops.vars.push_back(at[axis]);
    return loops;
}

std::string shifted(KernelSource& source, const std::string& coordinate, const Dim& offset) {
    if (offset.is(0)) return coordinate;
    const auto number = offset.constant();
    if (number && *number < 0) return fmt::format("{} - {}", coordinate, -*number);
    return fmt::format("{} + {}", coordinate, source.dim(offset));
}

std::vector<std::optional<KnownElements>> AxisMapNode::known() const {
    std::vector<std::optional<KnownElements>> result(node_.outputs.size());
    for (size_t i = 0; i < result.size(); ++i) {
        if (has_output(i)) result[i] = known_output(i);
    }
    return result;
}

std::optional<KnownElements> AxisMapNode::known_output(size_t i) const {
    const KnownElements* from = tracked_input(0);
    const auto shape = numbers(in(0).shape);
    if (!from || !shape) return std::nullopt;
    const AxisMap map = this->map(i);
    return picked(*from, out(i).shape, [&](const std::vector<int64_t>& at) -> int64_t {
        std::vector<int64_t> source(map.size());
        for (size_t axis = 0; axis < map.size(); ++axis) {
            const AxisSource& from = map[axis];
            if (!from.offset.constant() || (from.period && !from.period->constant())) return -1;
            if ((*shape)[axis] == 1) continue;
            const int64_t place = from.axis ? at[*from.axis] : 0;
            source[axis] =
                *from.offset.constant() + from.step * (from.period ? place % *from.period->constant() : place);
        }
        return linear_index(source, *shape);
    });
}

std::vector<Dim> memory_strides(const Value& value) {
    const TensorType& type = value.checked_type();
    std::vector<Dim> strides(type.rank());
    Dim stride = 1;
    for (size_t k = 0; k < strides.size(); ++k) {
        const int axis = type.layout[k];
        strides[axis] = stride;
        stride = k == 0 && value.part ? Dim(value.part->pitch) : stride * type.shape[axis];
    }
    return strides;
}

std::optional<NodeGenerator::Span> AxisMapNode::span_in_input(size_t i) const {
    const TensorType& to = out(i);
    const AxisMap map = this->map(i);
    const std::vector<Dim> in_input = memory_strides(*input(0));
    std::vector<Dim> strides(to.rank());  // of the output's axes in the input's memory
    Dim offset = 0;
    for (size_t axis = 0; axis < map.size(); ++axis) {
        const AxisSource& source = map[axis];
        if (in(0).shape[axis].is(1)) continue;
        if (source.step != 1 || source.period || source.may_repeat) return {};
        offset += source.offset * in_input[axis];
        if (source.axis) strides[*source.axis] = in_input[axis];
    }
    const auto lie_apart = [&](const Dim& pitch) {
        Dim expected = 1;
        for (size_t k = 0; k < to.rank(); ++k) {
            const int axis = to.layout[k];
            if (!to.shape[axis].is(1) && prove_equal(strides[axis], expected) != Proof::yes) return false;
            expected = k == 0 ? pitch : expected * to.shape[axis];
        }
        return true;
    };
    Dim pitch = to.rank() == 0 ? Dim(1) : to.extents()[0];
    if (!lie_apart(pitch)) {
        if (pitch.is(1)) return {};
        const auto next =
            std::find_if(to.layout.begin() + 1, to.layout.end(), [&](int i) { return !to.shape[i].is(1); });
        if (next == to.layout.end() || !lie_apart(strides[*next])) return {};
        pitch = strides[*next];
    }
    const auto apart = pitch.constant();
    return apart ? std::optional(Span{offset, *apart}) : std::nullopt;
}

Coordinates AxisMapNode::coordinates(KernelSource& source, size_t i) const {
    const Coordinates at = source.vars(out(i).rank());
    const AxisMap map = this->map(i);
    Coordinates from;
    for (size_t axis = 0; axis < map.size(); ++axis) {
        const Dim& own = in(0).shape[axis];
        const std::string text = own.is(1) ? "0" : coordinate_text(source, map[axis], at);
        from.push_back(map[axis].may_repeat ? source.broadcast_coordinate(own, out(i), *map[axis].axis, text) : text);
    }
    return from;
}

void AxisMapNode::algorithm(KernelSource& source) const {
    for (size_t i = 0; i < node_.outputs.size(); ++i) {
        if (!has_output(i)) continue;
        source.store(output(i), source.vars(out(i).rank()), source.element(input(0), coordinates(source, i)));
    }
}

void AxisMapNode::schedule(KernelSource& source) const {
    const auto read = in(0).innermost_axis();
    for (size_t i = 0; i < source.output_count(); ++i) {
        const Loops loops = nontrivial_loops(source.output_loops(i));
        const auto own = std::find(node_.outputs.begin(), node_.outputs.end(), source.outputs()[i]);
        const bool is_own = own != node_.outputs.end();
        // Among other nodes' outputs, only the last one of a group computes this copy.
        const bool copies = is_own || source.output_count() == 1;
        const size_t number = is_own ? own - node_.outputs.begin() : 0;
        const AxisSource from = copies && read ? map(number)[*read] : AxisSource{};
        const bool is_empty = source.outputs()[i]->checked_type().elements().is(0);  // while others are not
        if (source.target().is_gpu() || !from.axis || is_empty) {
            schedule_loops(source, loops);
        } else {
            const size_t run = is_own ? contiguous_loops(map(number), in(0), out(number)) : 1;
            schedule_copy(source, fuse_innermost(source, loops, run),
                          {source.vars(out(number).rank())[*from.axis], from.period, pitch_along_output(number),
                           source.output_count() == 1 ? copied(source, number) : std::nullopt});
        }
    }
}

std::optional<int64_t> AxisMapNode::pitch_along_output(size_t i) const {
    const auto written = out(i).innermost_axis();
    const AxisMap map = this->map(i);
    const auto follows = [&](int axis) { return written && map[axis].axis == written; };
    const auto axis = std::find_if(in(0).layout.begin(), in(0).layout.end(), follows);
    if (axis == in(0).layout.end() || !map[*axis].is_plain()) return std::nullopt;
    return memory_strides(*input(0))[*axis].constant();
}

std::optional<CopiedFunc> AxisMapNode::copied(KernelSource& source, size_t i) const {
    const auto written = out(i).innermost_axis();
    const Layout& layout = in(0).layout;
    const AxisMap map = this->map(i);
    if (!map[layout[0]].is_plain()) return std::nullopt;
    for (size_t k = 1; k < layout.size(); ++k) {
        if (map[layout[k]].is_plain() && map[layout[k]].axis == written)
            return CopiedFunc{source.name(input(0)), source.name(output(i)), k};
    }
    return std::nullopt;
}

bool AxisMapNode::is_pointwise() const {
    const AxisMap map = this->map(0);
    if (node_.outputs.size() > 1 || out(0).rank() < map.size()) return false;
    const size_t first = out(0).rank() - map.size();
    for (size_t i = 0; i < map.size(); ++i) {
        if (in(0).shape[i].is(1)) continue;
        if (!map[i].is_plain() || map[i].axis != first + i) return false;
        if (prove_equal(in(0).shape[i], out(0).shape[first + i]) != Proof::yes) return false;
    }
    return true;
}

bool AxisMapNode::is_read_through() const {
    const auto read = in(0).innermost_axis();
    if (!read || node_.outputs.size() > 1) return false;
    const AxisSource along = map(0)[*read];
    return along.axis == out(0).innermost_axis() && along.step == 1 && !along.period && !along.may_repeat;
}

bool AxisMapNode::can_compute_input(const Node& anchor, const Target&) const {
    const auto generator = make_generator(anchor);
    const auto* copy = dynamic_cast<const MovementNode*>(generator.get());
    // Part of a part is read in place, without any copy.
    if (span_in_input(0) && generator->span_in_input(0)) return false;
    const auto is_read_once = [](const AxisSource& source) { return !source.period && !source.may_repeat; };
    return copy && copy->is_read_through() && is_read_through() && std::ranges::all_of(map(0), is_read_once);
}

std::optional<Layout> AxisMapNode::memory_order() const {
    const AxisMap map = this->map(0);
    Layout order;
    for (const int axis : in(0).layout) {
        const AxisSource& from = map[axis];
        if (!in(0).shape[axis].is(1) && from.axis && !out(0).shape[*from.axis].is(1))
            order.push_back(static_cast<int>(*from.axis));
    }
    return completed(std::move(order), out(0).rank());
}

bool MovementNode::must_count_elements() const {
    const auto count = out(0).elements().constant();
    const bool may_be_asked = count && *count <= static_cast<int64_t>(KnownElements::limit) &&
                              (is_integer(out(0).element) || out(0).element == ElementType::boolean);
    return may_be_asked && prove_equal(in(0).elements(), *count) != Proof::yes;
}

bool AxisMapNode::is_view() const {
    if (must_count_elements()) return false;
    for (size_t i = 1; i < node_.outputs.size(); ++i) {
        if (has_output(i)) return false;
    }
    const auto axes = permutation(map(0), in(0), out(0));
    return axes && same_memory_order(in(0), *axes, out(0));
}

}  // namespace onnx2halide
