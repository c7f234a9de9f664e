#include <tuple>

#include <fmt/format.h>

#include "ops/axis_map.h"
#include "ops/families.h"
#include "ops/known_elements.h"
#include "ops/schedule/loop_schedule.h"

namespace onnx2halide {

namespace {

/// Whether pixels with so few channels are made from groups of channels that the layout of the result hardly matters:
/// strided elements are read either way.
bool has_few_channels(const TensorType& image) {
    constexpr int64_t most = 8;
    const auto channels = image.shape[1].constant();
    return channels && *channels <= most;
}

/// DepthToSpace and SpaceToDepth, where blocks of pixels on one side are groups of channels on the other.
class BlockNode : public MovementNode {
public:
    explicit BlockNode(const Node& node)
        : MovementNode(node), size_(node.integer("blocksize")), mode_(node.string("mode", "DCR")) {
        if (size_ < 1) throw CompileError("blocksize is {}, expected 1 or more", size_);
        if (mode_ != "DCR" && mode_ != "CRD") throw CompileError("mode is '{}', expected DCR or CRD", mode_);
    }

protected:
    int64_t size_;
    std::string mode_;

    /// The input's shape N × C × H × W.
    const std::vector<Dim>& shape() const {
        if (in(0).rank() != 4) throw CompileError("input has rank {}, expected 4", in(0).rank());
        return in(0).shape;
    }

    static Dim divided(const Dim& extent, int64_t divisor, std::string_view what) {
        if (!floor_mod(extent, divisor).is(0) && extent.constant())
            throw CompileError("{} is {}, not a multiple of {}", what, extent.text(), divisor);
        return floor_div(extent, divisor);
    }
};

/// DepthToSpace: each group of channels becomes a block of pixels.
class DepthToSpace : public BlockNode {
public:
    using BlockNode::BlockNode;

    std::vector<TensorType> infer() const override {
        return {TensorType(in(0).element, {shape()[0], divided(shape()[1], size_ * size_, "the number of channels"),
                                           shape()[2] * size_, shape()[3] * size_})};
    }

    bool writes(const Layout&, const Target&) const override { return has_few_channels(out(0)); }

    void algorithm(KernelSource& source) const override {
        const Coordinates at = source.vars(4);
        const std::string &c = at[1], &y = at[2], &x = at[3];
        const std::string place = fmt::format("({0} % {2} * {2} + {1} % {2})", y, x, size_);
        const std::string channel = mode_ == "DCR" ? fmt::format("{} * {} + {}", place, source.dim(out(0).shape[1]), c)
                                                   : fmt::format("{} * {} + {}", c, size_ * size_, place);
        source.store(output(0), at,
                     source.element(input(0), {at[0], channel, fmt::format("{} / {}", y, size_),
                                               fmt::format("{} / {}", x, size_)}));
    }

    /// The pixels of a block's row come from several channels, each of which is read in vectors.
    void schedule(KernelSource& source) const override {
        for (size_t i = 0; i < source.output_count(); ++i) {
            Loops loops = nontrivial_loops(source.output_loops(i));
            const std::string x = source.vars(4)[3];
            if (!source.target().is_gpu() && !loops.vars.empty() && loops.vars[0] == x && size_ > 1)
                loops = split_blocks(source, loops, size_);
            schedule_loops(source, loops);
        }
    }
};

/// PhasesToSpace, the compiler's own: scatters the phases of a transposed convolution's output, which are groups of
/// channels, to every stride-th element of the output. The last `surplus` elements are dropped.
class PhasesToSpace : public MovementNode {
public:
    explicit PhasesToSpace(const Node& node)
        : MovementNode(node), strides_(node.integers("strides")), surplus_(node.integers("surplus")),
          group_(node.integer("group")) {}

    std::vector<TensorType> infer() const override {
        std::vector<Dim> shape = in(0).shape;
        for (size_t i = 0; i < strides_.size(); ++i) {
            shape[1] = floor_div(shape[1], strides_[i]);
            shape[2 + i] = shape[2 + i] * strides_[i] - surplus_[i];
        }
        return {TensorType(in(0).element, std::move(shape))};
    }

    bool writes(const Layout&, const Target&) const override { return has_few_channels(out(0)); }

    void algorithm(KernelSource& source) const override {
        const Coordinates at = source.vars(out(0).rank());
        Coordinates from = at;
        std::string phase;
        int64_t phases = 1;
        for (size_t i = 0; i < strides_.size(); ++i) {
            const std::string own = fmt::format("{} % {}", at[2 + i], strides_[i]);
            phase = phase.empty() ? own : fmt::format("({}) * {} + {}", phase, strides_[i], own);
            phases *= strides_[i];
            from[2 + i] = fmt::format("{} / {}", at[2 + i], strides_[i]);
        }
        const Dim channels = floor_div(out(0).shape[1], group_);
        from[1] = group_ == 1 ? fmt::format("({}) * {} + {}", phase, source.dim(channels), at[1])
                              : fmt::format("({0} / {1} * {2} + {3}) * {1} + {0} % {1}", at[1], source.dim(channels),
                                            phases, phase);
        source.store(output(0), at, source.element(input(0), from));
    }

    /// If the last axis is innermost, its phases come from several channels, each of which is read in vectors.
    void schedule(KernelSource& source) const override {
        const std::string& x = source.vars(out(0).rank()).back();
        for (size_t i = 0; i < source.output_count(); ++i) {
            Loops loops = nontrivial_loops(source.output_loops(i));
            if (!source.target().is_gpu() && !loops.vars.empty() && loops.vars[0] == x && strides_.back() > 1)
                loops = split_blocks(source, loops, strides_.back());
            schedule_loops(source, loops);
        }
    }

private:
    std::vector<int64_t> strides_, surplus_;
    int64_t group_;
};

/// SpaceToDepth: each block of pixels becomes a group of channels.
class SpaceToDepth : public BlockNode {
public:
    using BlockNode::BlockNode;

    std::vector<TensorType> infer() const override {
        return {
            TensorType(in(0).element, {shape()[0], shape()[1] * size_ * size_, divided(shape()[2], size_, "the height"),
                                       divided(shape()[3], size_, "the width")})};
    }

    void algorithm(KernelSource& source) const override {
        const Coordinates at = source.vars(4);
        const auto& [n, c, y, x] = std::tie(at[0], at[1], at[2], at[3]);
        const std::string channels = source.dim(in(0).shape[1]);
        // The channel that is read, the row within the block, and the column.
        const std::string channel =
            mode_ == "DCR" ? fmt::format("{} % {}", c, channels) : fmt::format("{} / {}", c, size_ * size_);
        const std::string row = mode_ == "DCR" ? fmt::format("{} / {}", c, source.dim(in(0).shape[1] * size_))
                                               : fmt::format("{} / {} % {}", c, size_, size_);
        const std::string column =
            mode_ == "DCR" ? fmt::format("{} / {} % {}", c, channels, size_) : fmt::format("{} % {}", c, size_);
        source.store(output(0), at,
                     source.element(input(0), {n, channel, fmt::format("{} * {} + {}", y, size_, row),
                                               fmt::format("{} * {} + {}", x, size_, column)}));
    }
};

/// ReverseSequence: reverses the first elements of each sequence of a batch; input 1 holds their numbers.
class ReverseSequence : public MovementNode {
public:
    using MovementNode::MovementNode;

    std::vector<TensorType> infer() const override {
        if (in(1).rank() != 1) throw CompileError("input 1 has rank {}, expected 1", in(1).rank());
        if (batch_axis() == time_axis()) throw CompileError("batch_axis and time_axis are both {}", time_axis());
        return {TensorType(in(0).element, in(0).shape)};
    }

    std::vector<Check> checks() const override {
        std::vector<Check> checks;
        check_extent(checks, 1, 0, in(0).shape[batch_axis()]);
        return checks;
    }
    std::vector<IndexCheck> index_checks() const override { return {{1, {in(0).shape[time_axis()] + 1}}}; }

    void algorithm(KernelSource& source) const override {
        const Coordinates at = source.vars(in(0).rank());
        const std::string length = fmt::format("cast<int32_t>({})", source.element(input(1), {at[batch_axis()]})),
                          time = at[time_axis()];
        Coordinates from = at;
        from[time_axis()] = fmt::format("clamp(select({0} < {1}, {1} - 1 - {0}, {0}), 0, {2})", time, length,
                                        source.dim(in(0).shape[time_axis()] - 1));
        source.store(output(0), at, source.element(input(0), from));
    }

private:
    size_t batch_axis() const { return normalised_axis(node_.integer("batch_axis", 1), in(0).rank()); }
    size_t time_axis() const { return normalised_axis(node_.integer("time_axis", 0), in(0).rank()); }
};

/// Trilu: the triangle above or below the k-th diagonal of each matrix; zeros elsewhere. It is not pointwise, as Halide
/// narrows what a select over coordinates reads, and tiles of an anchor before it would no longer have constant sizes.
class Trilu : public MovementNode {
public:
    using MovementNode::MovementNode;

    std::vector<TensorType> infer() const override {
        if (in(0).rank() < 2) throw CompileError("input has rank {}, expected 2 or more", in(0).rank());
        return {TensorType(in(0).element, in(0).shape)};
    }

    std::vector<std::optional<KnownElements>> known() const override {
        const KnownElements *data = known_input(0), *given = has_input(1) ? known_input(1) : nullptr;
        const auto shape = numbers(in(0).shape);
        const auto diagonal = given ? single_dim(1).constant() : std::optional<int64_t>(0);
        if (!data || !shape || !diagonal || (has_input(1) && !given)) return {};
        const bool is_upper = node_.integer("upper", 1) != 0;
        return {computed(in(0).shape, [&](const std::vector<int64_t>& at) -> std::optional<Number> {
            const int64_t column = at.back() - at[at.size() - 2];
            if (is_upper ? column >= *diagonal : column <= *diagonal) return number_at(*data, linear_index(at, *shape));
            return is_float(in(0).element) ? Number(0.0) : Number(Dim(0));
        })};
    }

    void algorithm(KernelSource& source) const override {
        const Coordinates at = source.vars(in(0).rank());
        const std::string kept = fmt::format("{} - {} {} {}", at.back(), at[at.size() - 2],
                                             node_.integer("upper", 1) ? ">=" : "<=", diagonal(source));
        source.store(
            output(0), at,
            fmt::format("select({}, {}, {})", kept, source.element(input(0), at), cast_text("0", in(0).element)));
    }

private:
    std::string diagonal(KernelSource& source) const {
        if (!has_input(1)) return "0";
        // None that is farther away meets the matrix, and the sum with a row may have no more than 32 bits.
        const Dim first = -in(0).shape[in(0).rank() - 2], last = in(0).shape.back();
        if (known_input(1)) return source.dim(max(min(single_dim(1), last), first));
        return fmt::format("cast<int32_t>(clamp({}, {}, {}))", source.element(input(1), Coordinates(in(1).rank(), "0")),
                           source.dim(first), source.dim(last));
    }
};

}  // namespace

std::vector<Operator> rearrange_operators() {
    return {
        {"DepthToSpace", 1, make<DepthToSpace>},
        {"SpaceToDepth", 1, make<SpaceToDepth>},
        {"PhasesToSpace", 1, make<PhasesToSpace>, own_domain},
        {"ReverseSequence", 10, make<ReverseSequence>},
        {"Trilu", 14, make<Trilu>},
    };
}

}  // namespace onnx2halide
