#include "ops/normalise/normalise.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "ops/families.h"
#include "ops/schedule/cycles.h"
#include "ops/schedule/loop_schedule.h"

namespace onnx2halide {

namespace {

/// x / (bias + alpha / size * the sum of squares of `size` neighbouring channels) ^ beta.
class LocalResponse : public NodeGenerator {
public:
    explicit LocalResponse(const Node& node) : NodeGenerator(node), size_(node.integer("size")) {
        if (size_ < 1) throw CompileError("size is {}, expected 1 or more", size_);
    }

    std::vector<TensorType> infer() const override {
        if (in(0).rank() < 2)
            throw CompileError("input has shape {}, expected channels as its axis 1", shape_text(in(0).shape));
        return {TensorType(in(0).element, in(0).shape)};
    }

    Dim flops() const override { return out(0).elements() * (2 * size_ + 4); }

    void algorithm(KernelSource& source) const override {
        const std::string squares = define_squares(source);
        const std::string rdom = source.rdom("k", {size_}), sum = source.func(output(0)->name + "_sum");
        source.keep(output(0), sum_role, sum);
        source.keep(output(0), window_role, KernelSource::axis(rdom, 0));

        const Coordinates at = source.vars(in(0).rank());
        Coordinates neighbour = at;
        neighbour[1] += " + " + KernelSource::axis(rdom, 0);
        if (const int64_t before = (size_ - 1) / 2) neighbour[1] += fmt::format(" - {}", before);
        const std::string total = KernelSource::call(sum, in(0), at);
        source.line(fmt::format("{} = {};", total, KernelSource::literal(0.0, in(0).element)));
        source.line(fmt::format("{} += {};", total, KernelSource::call(squares, in(0), neighbour)));

        const std::string base = KernelSource::call(source.func(output(0)->name + "_base"), in(0), at);
        const double factor = double{node_.real("alpha", 1e-4f)} / static_cast<double>(size_);
        source.line(fmt::format("{} = {} + {} * {};", base,
                                KernelSource::literal(double{node_.real("bias", 1.0f)}, in(0).element),
                                KernelSource::literal(factor, in(0).element), total));
        source.define(output(0), at, divided(source.read(input(0), at), base));
    }

    void schedule(KernelSource& source) const override {
        const Loops loops = nontrivial_loops(source.output_loops());
        const std::string channel = source.vars(in(0).rank())[1];
        const bool is_innermost = loops.vars.size() > 1 && loops.vars[0] == channel && !source.target().is_gpu();
        if (is_innermost) {
            vectorise(source, loops);
            // The loop over pixels is divided below, so it is not fused with others.
            parallelise(source, loops, loops.vars.size() > 2 ? 2 : 1);
        } else {
            NodeGenerator::schedule(source);
        }
        source.schedule(fmt::format("{}.update().unroll({});", source.kept(output(0), sum_role),
                                    source.kept(output(0), window_role)));
        // With channels innermost, neighbouring windows share squares.
        if (!is_innermost) return;
        const Loops squares{
            source.kept(output(0), squares_role), {channel}, {in(0).shape[1] + size_ - 1}, loops.element};
        source.schedule(fmt::format("{}.compute_at({}, {});", squares.func, loops.func, tile_of_pixels(source, loops)));
        vectorise(source, squares);
    }

private:
    int64_t size_;
    static constexpr const char *squares_role = "squares", *sum_role = "sum", *window_role = "window";

    /// The loop around the squares of some pixels. Vectors of squares are loaded across those that were stored, so a
    /// load just after such a store stalls.
    std::string tile_of_pixels(KernelSource& source, const Loops& loops) const {
        const std::string& x = loops.vars[1];
        const auto extent = loops.extents[1].constant();
        const int pixels = pixels_at_once(loops);
        if (loops.vars.size() < 3 || !loops.extents.back().constant() || !extent || *extent < pixels) return x;
        const std::string tile = source.var(x + "_tile");
        source.schedule(fmt::format("{}.split({}, {}, {}, {}, {});", loops.func, x, tile, x,
                                    source.param("pixels", pixels), tail_strategy(*extent, pixels, true)));
        return tile;
    }

    /// The number of pixels whose squares take less than a page: a load one page after a recent store is taken for
    /// aliasing it, and waits.
    int pixels_at_once(const Loops& loops) const {
        constexpr int64_t most = 8;
        const int64_t channels = loops.extents[0].constant().value_or(page_bytes) + size_ - 1,
                      bytes = std::max<int64_t>(info(ElementType::float32).bytes, info(loops.element).bytes);
        const int64_t pixels = std::clamp<int64_t>((page_bytes - 1) / (channels * bytes), 1, most);
        return static_cast<int>(std::bit_floor(static_cast<uint64_t>(pixels)));
    }

    /// Squares of the input's elements, with zeros for channels past the edges.
    std::string define_squares(KernelSource& source) const {
        const std::string squares = source.func(output(0)->name + "_squares");
        source.keep(output(0), squares_role, squares);
        const Coordinates at = source.vars(in(0).rank());
        const std::string &c = at[1], last = source.dim(in(0).shape[1] - 1);
        Coordinates inside = at;
        inside[1] = fmt::format("clamp({}, 0, {})", c, last);
        const std::string x = source.read(input(0), inside), zero = KernelSource::literal(0.0, in(0).element);
        source.line(fmt::format("{0} = select({1} >= 0 && {1} <= {2}, likely({3} * {3}), {4});",
                                KernelSource::call(squares, in(0), at), c, last, x, zero));
        return squares;
    }

    std::string divided(const std::string& x, const std::string& base) const {
        const float beta = node_.real("beta", 0.75f);
        const bool is_above_zero = node_.real("bias", 1.0f) > 1e-30f && node_.real("alpha", 1e-4f) >= 0;
        if (beta == 0.75f && is_above_zero && in(0).element != ElementType::float64)
            return fmt::format("{} * onnx::inverse_three_quarters({})", x, base);
        // Square roots are cheaper than a power.
        if (beta == 0.75f) return fmt::format("{0} / (sqrt({1}) * sqrt(sqrt({1})))", x, base);
        return fmt::format("{} * onnx::pow({}, {})", x, base, KernelSource::literal(-double{beta}, in(0).element));
    }
};

}  // namespace

std::string cast_compute(const std::string& expression, ElementType from, ElementType to) {
    const std::string type = KernelSource::compute_type(to);
    return KernelSource::compute_type(from) == type ? expression : fmt::format("cast<{}>({})", type, expression);
}

std::string scaled(KernelSource& source, const std::string& x, const Value* scale, const Value* bias,
                   const Coordinates& at, ElementType compute) {
    const auto parameter = [&](const Value* value) {
        return cast_compute(source.read_broadcast(value, at), value->checked_type().element, compute);
    };
    std::string result = x;
    if (scale) result = fmt::format("{} * {}", result, parameter(scale));
    if (bias) result = fmt::format("{} + {}", result, parameter(bias));
    return result;
}

std::vector<Operator> normalise_operators() {
    std::vector<Operator> rows = {{"LRN", 1, make<LocalResponse>}};
    for (const auto part : {batch_normalise_operators, row_normalise_operators, softmax_operators}) {
        const std::vector<Operator> more = part();
        rows.insert(rows.end(), more.begin(), more.end());
    }
    return rows;
}

}  // namespace onnx2halide
