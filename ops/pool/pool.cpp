#include "ops/pool/pool.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ops/conv/conv_winograd.h"
#include "ops/conv/inner_conv.h"
#include "ops/families.h"
#include "ops/schedule/directives.h"
#include "ops/schedule/loop_schedule.h"

namespace onnx2halide {

namespace {

constexpr PoolFormula max_formula = {true, "{x}", "max({a}, {x})", "{a}"};
constexpr PoolFormula average_formula = {false, "{x}", "{a} + {x}", "{a} / {count}"};
constexpr PoolFormula lp_formulas[] = {
    {false, "abs({x})", "{a} + {x}", "{a}"},
    {false, "{x} * {x}", "{a} + {x}", "sqrt({a})"},
    {false, "onnx::pow(abs({x}), {p})", "{a} + {x}", "onnx::pow({a}, Expr(1.0 / {p}))"},
};

/// Vectors of channels that each iteration over a whole image adds to, to hide the latency of additions.
constexpr int global_vectors = 4;

std::unique_ptr<NodeGenerator> make_max_pool(const Node& node) {
    if (node.has_output(1)) return std::make_unique<MaxPoolWithIndices>(node);
    return std::make_unique<WindowPool>(node);
}

}  // namespace

const PoolFormula& pool_formula(std::string_view op_type, int64_t p) {
    if (op_type.ends_with("MaxPool")) return max_formula;
    if (op_type.ends_with("AveragePool")) return average_formula;
    return lp_formulas[p == 1 ? 0 : p == 2 ? 1 : 2];
}

std::string Pool::neutral() const {
    const ElementType type = out(0).element;
    if (!formula().starts_with_first) return KernelSource::literal(0.0, type);
    return fmt::format("Expr(std::numeric_limits<{}>::lowest())", KernelSource::compute_type(type));
}

std::vector<std::string> Pool::tap_roles(KernelSource& source) const {
    const Coordinates at = source.vars(in(0).rank());
    const std::string prefix = tap_prefix(source, node_);
    std::vector<std::string> roles;
    for (size_t i = at.size(); i-- > 2;) roles.push_back(prefix + at[i]);
    return roles;
}

Coordinates Pool::taps(KernelSource& source) const {
    Coordinates taps;
    for (const std::string& role : tap_roles(source)) taps.push_back(source.rvar(role));
    return taps;
}

Coordinates Pool::define_taps(KernelSource& source) const {
    return source.name_axes(source.rdom("k", reduction_extents()), tap_roles(source));
}

std::string Pool::fill_in(std::string_view text, const std::string& accumulator, const std::string& element,
                          const std::string& count) const {
    return fmt::format(fmt::runtime(text), fmt::arg("a", accumulator), fmt::arg("x", element), fmt::arg("count", count),
                       fmt::arg("p", fmt::format("{}.0f", power())));
}

std::string Pool::combine(const std::string& a, const std::string& b) const {
    const std::string both = fill_in(formula().combine, a, b, "");
    // LLVM turns a maximum of widened numbers into one of narrow numbers, which it then computes one by one.
    return is_narrow_float(out(0).element) ? fmt::format("strict_float({})", both) : both;
}

void Pool::algorithm(KernelSource& source) const {
    const Coordinates taps = define_taps(source);
    const std::string result = source.func(output(0)->name + "_of_taps");
    source.keep(output(0), result_role, result);
    const Coordinates at = source.vars(out(0).rank());
    const std::string call = KernelSource::call(result, out(0), at);
    const Coordinates first(reduction_extents().size(), "0");
    source.line(fmt::format("{} = {};", call, formula().starts_with_first ? element(source, first) : neutral()));
    source.line(fmt::format("{} = {};", call, combine(call, term(element(source, taps)))));
    source.define(output(0), at, fill_in(formula().finish, call, "", count(source)));
}

void Pool::schedule(KernelSource& source) const {
    const TensorType& result = out(0);
    const bool by_channels =
        !source.target().is_gpu() && source.output_count() == 1 && result.layout == channels_last(result.rank());
    if (!by_channels) return NodeGenerator::schedule(source);
    const std::vector<Dim> extents = reduction_extents();
    const auto count = product(extents).constant();
    schedule_channels(source, taps(source), count && *count <= unrolled_taps);
}

ElementType Pool::lane_type(const KernelSource& source) {
    return compute_element(source.outputs().front()->checked_type().element);
}

int Pool::lanes_of_channels(const KernelSource& source) {
    const int64_t channels = source.outputs().front()->checked_type().extents()[0].constant().value_or(1);
    const auto most = static_cast<int>(std::bit_floor(static_cast<uint64_t>(std::max<int64_t>(1, channels))));
    return std::min(source.target().lanes(lane_type(source)), most);
}

void Pool::schedule_channels(KernelSource& source, const Coordinates& reduction, bool unrolled) const {
    const Loops loops = source.output_loops();
    const std::string &c = loops.vars[0], tile = source.var(c + "o"), &sum = source.kept(output(0), result_role);
    const ElementType element = lane_type(source);
    const int64_t channels = loops.extents[0].constant().value_or(1);
    const int lanes = lanes_of_channels(source);
    if (lanes == 1) return parallelise(source, loops);
    const int vectors = unrolled ? 1 : static_cast<int>(std::min<int64_t>(global_vectors, channels / lanes));
    std::vector<std::string> vectorised = {fmt::format("vectorize({}, {})", c, source.lanes(element, lanes))};
    if (vectors > 1) vectorised.push_back(unroll(c));
    const auto schedule = [&](const std::string& stage, const std::string& first, bool unrolls_taps) {
        std::vector<std::string> directives = {first};
        directives.insert(directives.end(), vectorised.begin(), vectorised.end());
        if (unrolls_taps) {
            for (const std::string& tap : reduction) directives.push_back(unroll(tap));
        }
        source.schedule(stage, directives);
    };
    schedule(loops.func, shifted_split(c, tile, source.lanes(element, lanes * vectors)), false);
    schedule(sum, compute_at(loops.func, tile), false);
    schedule(sum + ".update()", reorder(joined({c}, reduction)), unrolled);
    if (!is_parallel_work(flops())) return;
    Loops tiles = loops;
    tiles.vars[0] = tile;
    tiles.extents[0] = ceil_div(channels, lanes * vectors);
    const Loops nontrivial = nontrivial_loops(tiles);
    const std::string only = parallel(tile);
    source.schedule(loops.func, nontrivial.vars.empty() ? std::vector{only} : parallel_outermost(source, nontrivial));
}

WindowPool::WindowPool(const Node& node) : Pool(node) {
    if (!node.has("kernel_shape")) throw CompileError("kernel_shape is missing");
}

Window WindowPool::window() const {
    const bool up = node_.integer("ceil_mode", 0) != 0;
    return read_window(node_, in(0).shape, node_.integers("kernel_shape"), up ? Rounding::up : Rounding::down);
}

std::vector<TensorType> WindowPool::infer() const {
    const TensorType& data = in(0);
    check_element_type(node_.op_type == "MaxPool" ? Takes::numbers : Takes::floats);
    if (data.rank() < 3) throw CompileError("input 0 has rank {}, expected 3 or more", data.rank());
    std::vector<Dim> shape = {data.shape.at(0), data.shape.at(1)};
    for (const WindowAxis& axis : window()) shape.push_back(axis.output);
    return {TensorType(data.element, shape)};
}

bool WindowPool::covers_image() const {
    const Window window = this->window();
    const bool counts_pads = node_.integer("count_include_pad", 0) != 0;
    return is_float(in(0).element) && !node_.has_output(1) &&
           std::all_of(window.begin(), window.end(), [&](const WindowAxis& axis) {
               const auto length = axis.input.constant(), before = axis.pad_begin.constant();
               return length && before && axis.output.is(1) && axis.dilation == 1 && *before >= 0 &&
                      *length + *before <= axis.kernel && (!counts_pads || *length == axis.kernel);
           });
}

std::optional<std::vector<int64_t>> WindowPool::copied_strides() const {
    if (node_.op_type == "LpPool" || node_.has_output(1)) return {};
    std::vector<int64_t> strides;
    for (const WindowAxis& axis : window()) {
        if (axis.kernel != 1 || !axis.pad_begin.is(0) || !axis.pad_end.is(0)) return {};
        strides.push_back(axis.stride);
    }
    return strides;
}

void WindowPool::algorithm(KernelSource& source) const {
    if (pools_rows(source)) return define_rows(source);
    if (winograd_conv(source)) return define_whole_windows(source);
    const bool is_shared = pools_shared(source) && !InnerConv::in(source, node_);
    is_shared ? define_shared(source) : Pool::algorithm(source);
}

void WindowPool::schedule(KernelSource& source) const {
    if (pools_rows(source)) return schedule_rows(source);
    if (const auto conv = winograd_conv(source)) return conv->schedule_pooled(source, adjacent_windows().value());
    if (const auto conv = inner_conv(source)) return schedule_with_input(source, *conv);
    pools_shared(source) ? schedule_shared(source) : Pool::schedule(source);
}

std::vector<Dim> WindowPool::reduction_extents() const {
    std::vector<Dim> extents;
    for (const int64_t size : node_.integers("kernel_shape")) extents.insert(extents.begin(), size);
    return extents;
}

Coordinates WindowPool::under(KernelSource& source, const Coordinates& taps) const {
    const Window window = this->window();
    Coordinates at = source.vars(in(0).rank());
    for (size_t i = 0; i < window.size(); ++i)
        at[i + 2] = window[i].tap(source, at[i + 2], taps[window.size() - 1 - i]);
    return at;
}

std::string WindowPool::element_at(KernelSource& source, const Coordinates& coordinates) const {
    const Window window = this->window();
    Coordinates at = coordinates;
    const auto meets_input = [](const WindowAxis& axis) { return axis.dilation == 1 && axis.always_spans_input(); };
    if (node_.op_type != "MaxPool" || !std::all_of(window.begin(), window.end(), meets_input))
        return read_padded(source, input(0), window, at, neutral());
    // The nearest element of the input is in the window, too: taking it twice does not change a maximum.
    for (size_t i = 0; i < window.size(); ++i) {
        if (window[i].reaches_outside())
            at[i + 2] = held_inside(source, window[i], fmt::format("likely({})", at[i + 2]));
    }
    return source.read(input(0), at);
}

std::string WindowPool::count(KernelSource& source) const {
    const Window window = this->window();
    const Coordinates at = source.vars(in(0).rank());
    const bool pads_count = node_.integer("count_include_pad", 0) != 0;
    int64_t whole = 1;
    std::vector<std::string> partial;
    for (size_t i = 0; i < window.size(); ++i) {
        const std::string taps =
            pads_count ? window[i].taps_inside_pads(source, at[i + 2]) : window[i].taps_inside(source, at[i + 2]);
        taps.empty() ? void(whole *= window[i].kernel) : partial.push_back(taps);
    }
    const std::string type = KernelSource::compute_type(out(0).element);
    if (partial.empty()) return KernelSource::literal(static_cast<double>(whole), out(0).element);
    if (whole != 1) partial.push_back(std::to_string(whole));
    return fmt::format("cast<{}>({})", type, fmt::join(partial, " * "));
}

std::vector<Operator> pool_operators() {
    return {
        {"MaxPool", 1, make_max_pool},
        {"AveragePool", 1, make<WindowPool>},
        {"LpPool", 2, make<WindowPool>},
        {"GlobalMaxPool", 1, make<GlobalPool>},
        {"GlobalAveragePool", 1, make<GlobalPool>},
        {"GlobalLpPool", 2, make<GlobalPool>},
        {"MaxUnpool", 9, make<MaxUnpool>},
    };
}

}  // namespace onnx2halide
