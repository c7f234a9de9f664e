#include "ops/conv_winograd.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ops/axis_map.h"
#include "ops/conv_weights.h"
#include "ops/directives.h"

namespace onnx2halide {

namespace {

// Names that the algorithm keeps for the schedule, all under output 0.
constexpr const char *across_role = "across", *tiles_role = "tiles", *products_role = "products",
                     *product_role = "product", *rows_role = "rows", *tile_role = "tile";

PerAxis read_per_axis(const Node& node, const std::string& attribute) {
    const std::vector<int64_t> numbers = node.integers(attribute);
    if (numbers.size() != 2 || std::min(numbers[0], numbers[1]) < 1 ||
        std::max(numbers[0], numbers[1]) >= winograd_places.back())
        throw CompileError("{} is {}, expected two numbers from 1 to {}", attribute, fmt::join(numbers, "x"),
                           winograd_places.back() - 1);
    return {static_cast<int>(numbers[0]), static_cast<int>(numbers[1])};
}

/// The places of a tile, for which there have to be transforms.
PerAxis transformed_places(const PerAxis& outputs, const PerAxis& kernel) {
    const PerAxis places = places_of_tile(outputs, kernel);
    for (const size_t axis : {0, 1}) {
        const bool is_plain = places[axis] == 1;
        const bool is_transformed =
            kernel[axis] > 1 && outputs[axis] > 1 &&
            std::find(winograd_places.begin(), winograd_places.end(), places[axis]) != winograd_places.end();
        if (!is_plain && !is_transformed)
            throw CompileError("{} outputs of {} taps have no transforms", outputs[axis], kernel[axis]);
    }
    return places;
}

/// " * 4", and nothing for 1.
std::string times(int factor) { return factor == 1 ? "" : fmt::format(" * {}", factor); }

/// `winograd::input<6>(i, [&](int tap) { return image(c, tap); })`
std::string transform(const std::string& function, const std::string& place, const std::string& element) {
    return fmt::format("winograd::{}({}, [&](int tap) {{ return {}; }})", function, place, element);
}

}  // namespace

WinogradConv::WinogradConv(const Node& node)
    : Conv(node), outputs_(read_per_axis(node, "outputs")),
      places_(transformed_places(outputs_, read_per_axis(node, "kernel_shape"))),
      output_channels_(node.integer("output_channels")) {}

Window WinogradConv::tiles_window() const {
    Window window = this->window();
    for (const size_t axis : {0, 1})
        window[axis].output = ceil_div(window[axis].output, outputs_[axis]) * outputs_[axis];
    return window;
}

void WinogradConv::algorithm(KernelSource& source) const {
    const Window window = tiles_window();
    const std::string tiles_across = source.dim(floor_div(window[1].output, outputs_[1]));
    transform_inputs(source, window, tiles_across);
    add_products(source);
    transform_outputs(source, tiles_across);
}

std::string WinogradConv::func(KernelSource& source, const char* role, const std::string& suffix) const {
    const std::string name = source.func(output(0)->name + suffix);
    source.keep(output(0), role, name);
    return name;
}

void WinogradConv::transform_inputs(KernelSource& source, const Window& window, const std::string& tiles_across) const {
    const Coordinates at = source.vars(4);
    const std::string &n = at[0], &c = at[1], &y = at[2];
    const std::string t = source.var("t"), i = source.var("i"), j = source.var("j");
    const std::string input = func(source, input_role, "_input");
    source.line(fmt::format("{} = {};", KernelSource::call(input, in(0), at),
                            read_exterior(source, this->input(0), window, at, "0.0f")));
    source.comment(fmt::format("Tile t has {} x {} outputs, and {} x {} inputs; there are {} in a row.", outputs_[0],
                               outputs_[1], places_[0], places_[1], tiles_across));
    const std::string column = fmt::format("{} % {}{} + tap", t, tiles_across, times(outputs_[1])),
                      row = fmt::format("{} / {}{} + {}", t, tiles_across, times(outputs_[0]), y);
    const std::string element =
        fmt::format("{}({}, {}, {}, {})", input, c, shifted(source, column, -window[1].pad_begin),
                    shifted(source, row, -window[0].pad_begin), n);
    const std::string across = func(source, across_role, "_across"), tiles = func(source, tiles_role, "_tiles");
    const auto of_input = [&](size_t axis) { return fmt::format("input<{}>", places_[axis]); };
    source.line(fmt::format("{}({}, {}, {}, {}, {}) = {};", across, c, t, i, y, n, transform(of_input(1), i, element)));
    source.line(fmt::format("{}({}, {}, {}, {}, {}) = {};", tiles, c, t, i, j, n,
                            transform(of_input(0), j, fmt::format("{}({}, {}, {}, tap, {})", across, c, t, i, n))));
}

void WinogradConv::add_products(KernelSource& source) const {
    const Coordinates at = source.vars(4);
    const std::string &n = at[0], &c = at[1];
    const std::string t = source.var("t"), i = source.var("i"), j = source.var("j");
    const std::string ci = source.name_axes(source.rdom("k", {inputs_per_group()}), {"ci"}).front();
    const std::string read_channel =
        input_channel(source, channel(source, c), {.channel = ci, .place = "", .kernel = {}});
    const std::string block = in(1).shape.back().text();
    const std::string weight =
        source.read(input(1), {fmt::format("{} / {}", c, block), j, i, ci, fmt::format("{} % {}", c, block)});
    const std::string sum = func(source, products_role, "_sum"), product = func(source, product_role, "_product");
    const std::string place = fmt::format("({}, {}, {}, {}, {})", c, t, i, j, n);
    source.line(fmt::format("{}{} = 0.0f;", sum, place));
    source.line(fmt::format("{}{} += {} * {}({}, {}, {}, {}, {});", sum, place, weight,
                            source.kept(output(0), tiles_role), read_channel, t, i, j, n));
    source.line(fmt::format("{0}{1} = {2}{1};", product, place, sum));
}

void WinogradConv::transform_outputs(KernelSource& source, const std::string& tiles_across) const {
    const Coordinates at = source.vars(4);
    const std::string &n = at[0], &c = at[1], &y = at[2], &x = at[3];
    const std::string t = source.var("t"), j = source.var("j"), &product = source.kept(output(0), product_role);
    const std::string rows = func(source, rows_role, "_rows"), tile = func(source, tile_role, "_tile");
    const auto of_output = [&](size_t axis) { return fmt::format("output<{}, {}>", outputs_[axis], places_[axis]); };
    source.line(fmt::format("{}({}, {}, {}, {}, {}) = {};", rows, c, t, x, j, n,
                            transform(of_output(1), x, fmt::format("{}({}, {}, tap, {}, {})", product, c, t, j, n))));
    source.line(fmt::format("{}({}, {}, {}, {}, {}) = {};", tile, c, t, x, y, n,
                            transform(of_output(0), y, fmt::format("{}({}, {}, {}, tap, {})", rows, c, t, x, n))));
    const auto number_of_tile = [&](const std::string& coordinate, size_t axis) {
        return outputs_[axis] == 1 ? coordinate : fmt::format("{} / {}", coordinate, outputs_[axis]);
    };
    const auto place_in_tile = [&](const std::string& coordinate, size_t axis) {
        return outputs_[axis] == 1 ? "0" : fmt::format("{} % {}", coordinate, outputs_[axis]);
    };
    std::string result = fmt::format("{}({}, {} + {} * {}, {}, {}, {})", tile, c, number_of_tile(x, 1),
                                     number_of_tile(y, 0), tiles_across, place_in_tile(x, 1), place_in_tile(y, 0), n);
    if (has_input(2)) result += " + " + source.read(input(2), {c});
    source.define(output(0), at, result);
}

WinogradLoops WinogradConv::loops() const {
    const auto loops = winograd_loops(node_);
    if (!loops) throw CompileError("is no convolution for Winograd's algorithm");
    return *loops;
}

namespace {

/// The schedule: strips of tiles, each with its transformed inputs; in a strip tiles of channels, each with all its
/// products; then the outputs from them.
class Writer {
public:
    Writer(KernelSource& source, const WinogradLoops& loops, const PerAxis& outputs,
           std::function<std::string(const char*)> func)
        : source_(source), loops_(loops), walk_(choose_winograd_walk(loops, outputs, source.target())),
          func_(std::move(func)), output_(source.output_loops()), c_(output_.vars[0]), x_(output_.vars[1]),
          y_(output_.vars[2]), n_(output_.vars[3]), t_(source.var("t")), i_(source.var("i")), j_(source.var("j")),
          lanes_(source.lanes(ElementType::float32, walk_.product.lanes)) {}

    void write() {
        const int64_t vectors = ceil_div(loops_.channels, walk_.product.lanes);
        vectors_ = held(source_.param("vectors", walk_.product.vectors), vectors);
        tiles_ = source_.param("tiles", walk_.product.pixels);
        walk_output();
        place_outputs();
        place_products();
        place_inputs();
    }

private:
    KernelSource& source_;
    const WinogradLoops& loops_;
    WinogradWalk walk_;
    std::function<std::string(const char*)> func_;  // by role
    Loops output_;
    std::string c_, x_, y_, n_, t_, i_, j_, lanes_, vectors_, tiles_;
    std::string vector_, channels_, task_;  // loops of the output

    bool rounds_channels_up() const { return loops_.channels % walk_.product.lanes != 0; }
    std::string vectorise() const { return fmt::format("vectorize({}, {})", c_, lanes_); }
    std::string at(const std::string& loop) const { return fmt::format("compute_at({}, {})", output_.func, loop); }

    std::string tile_rows() { return source_.dim(ceil_div(output_.extents[2], walk_.outputs[0])); }
    std::string tile_columns() { return source_.dim(ceil_div(output_.extents[1], walk_.outputs[1])); }

    /// Rows of tiles: a number, or what a run finds to be enough tiles.
    std::string rows_of_strip() {
        if (!loops_.is_open) return source_.param("rows", walk_.strip);
        const auto enough = static_cast<int>(walk_.strip * loops_.tile_columns(walk_.outputs));
        return fmt::format("rows_of_task({}, {}, {}, 1)", tile_rows(), tile_columns(),
                           source_.param("tiles_of_task", enough));
    }

    void walk_output() {
        vector_ = source_.var("vector"), channels_ = source_.var("co");
        const std::string xo = source_.var("xo"), yo = source_.var("yo");
        std::vector<std::string> order = {c_, x_, y_, vector_, xo, yo}, directives;
        const auto split = [&](const std::string& var, const std::string& to, const std::string& factor,
                               std::string_view tail) {
            directives.push_back(fmt::format("split({0}, {1}, {0}, {2}, TailStrategy::{3})", var, to, factor, tail));
        };
        split(c_, channels_, fmt::format("{} * {}", lanes_, vectors_),
              rounds_channels_up() ? "GuardWithIf" : "ShiftInwards");
        directives.push_back(fmt::format("split({}, {}, {}, {})", c_, vector_, c_, lanes_));
        split(x_, xo, std::to_string(walk_.outputs[1]), "GuardWithIf");
        if (walk_.channels_outermost) {
            order.insert(order.end(), {channels_, n_});
        } else {
            const std::string strip = source_.var("strip");
            split(y_, strip, fmt::format("{} * {}", walk_.outputs[0], rows_of_strip()), "GuardWithIf");
            order.insert(order.end(), {channels_, strip, n_});
            task_ = strip;
        }
        split(y_, yo, std::to_string(walk_.outputs[0]), "GuardWithIf");
        directives.push_back(fmt::format("reorder({})", fmt::join(order, ", ")));
        directives.push_back(fmt::format("vectorize({})", c_));
        directives.push_back(fmt::format("unroll({})", x_));
        if (loops_.is_open) directives.push_back(fmt::format("parallel({})", n_));
        if (!walk_.channels_outermost && !loops_.is_open) task_ = fuse_all(source_, {task_, n_}, "task", directives);
        if (walk_.parallel)
            directives.push_back(fmt::format("parallel({})", walk_.channels_outermost ? channels_ : task_));
        if (walk_.channels_outermost) task_ = n_;
        source_.schedule(walk_.channels_outermost
                             ? "// Weights are read once: tiles of channels are the outermost loop."
                             : "// A strip of rows is a task, so that its transformed inputs stay in the cache.");
        source_.schedule(output_.func, directives);
    }

    void place_outputs() {
        // Of an open image Halide does not see that each is of one tile.
        const std::string one_tile = fmt::format("bound_extent({}, 1)", t_);
        source_.schedule(func_(tile_role),
                         {at(vector_), one_tile, fmt::format("reorder({}, {}, {}, {})", c_, x_, y_, t_), vectorise(),
                          fmt::format("unroll({})", x_), fmt::format("unroll({})", y_)});
        source_.schedule(func_(rows_role),
                         {at(vector_), one_tile, fmt::format("reorder({}, {}, {}, {})", x_, j_, c_, t_), vectorise(),
                          fmt::format("unroll({})", x_), fmt::format("unroll({})", j_)});
    }

    void place_products() {
        const std::string to = source_.var("to");
        const std::string unrolled_channels = fmt::format("unroll({})", c_),
                          unrolled_tiles = fmt::format("unroll({})", t_);
        const PerAxis places = places_of_tile(walk_.outputs, loops_.kernel);
        source_.schedule(fmt::format("// One matrix product for each of {} x {} places: {} registers.", places[0],
                                     places[1], register_text(walk_.product, source_.target())));
        const std::string sum = func_(products_role), values = func_(product_role);
        std::vector<std::string> directives = {at(channels_)};
        if (rounds_channels_up()) directives.push_back(fmt::format("align_extent({}, {} * {})", c_, lanes_, vectors_));
        const auto loops_over = [&](const std::string& tiles, std::string_view tail) {
            return std::vector<std::string>{
                fmt::format("split({0}, {1}, {0}, {2}, TailStrategy::{3})", t_, to, tiles, tail),
                fmt::format("reorder({}, {}, {}, {}, {})", c_, t_, to, i_, j_), vectorise(), unrolled_channels,
                unrolled_tiles};
        };
        if (loops_.is_open) {
            source_.schedule(values, directives);
            source_.schedule_versions(
                values, fmt::format("tile_versions({} * {}, {})", rows_of_strip(), tile_columns(), tiles_),
                loops_over(KernelSource::tile_size, "ShiftInwards"));
        } else {
            directives.push_back(fmt::format("align_extent({}, {})", t_, tiles_));
            const auto loops = loops_over(tiles_, "RoundUp");
            directives.insert(directives.end(), loops.begin(), loops.end());
            source_.schedule(values, directives);
        }
        const std::string in_tile = fmt::format("compute_at({}, {})", values, to);
        source_.schedule(sum, {in_tile, vectorise(), unrolled_channels, unrolled_tiles});
        const std::string ci = source_.rvar("ci");
        directives = {fmt::format("reorder({}, {}, {}, {}, {})", c_, t_, ci, i_, j_), vectorise(), unrolled_channels,
                      unrolled_tiles};
        if (loops_.inputs % 4 == 0) directives.push_back(fmt::format("unroll({}, 4)", ci));
        source_.schedule(sum + ".update()", directives);
    }

    void place_inputs() {
        const int natural = source_.target().lanes(ElementType::float32);
        const auto narrow = static_cast<int>(
            std::min<int64_t>(natural, std::bit_floor(static_cast<uint64_t>(loops_.inputs * loops_.groups))));
        const std::string vector = fmt::format("vectorize({}, {}, TailStrategy::ShiftInwards)", c_,
                                               source_.lanes(ElementType::float32, narrow));
        std::vector<std::string> directives = {at(task_), fmt::format("reorder({}, {}, {}, {})", i_, j_, c_, t_),
                                               vector, fmt::format("unroll({})", i_), fmt::format("unroll({})", j_)};
        // With all channels' weights ahead of it, transforming the inputs is a task of its own.
        if (walk_.channels_outermost && walk_.parallel) {
            const std::string to = source_.var("to");
            directives.push_back(fmt::format("split({0}, {1}, {0}, {2}, TailStrategy::GuardWithIf)", t_, to, tiles_));
            directives.push_back(fmt::format("parallel({})", to));
        }
        const std::string tiles = func_(tiles_role);
        source_.schedule(tiles, directives);
        source_.schedule(func_(across_role), {fmt::format("compute_at({}, {})", tiles, c_),
                                              fmt::format("reorder({}, {}, {}, {})", i_, y_, c_, t_), vector,
                                              fmt::format("unroll({})", i_), fmt::format("unroll({})", y_)});
        source_.schedule("// Copied with its edges, so that tiles are read without conditions.");
        source_.schedule(func_("input"), {at(task_), vector});
    }
};

}  // namespace

void WinogradConv::schedule(KernelSource& source) const {
    const TensorType& result = out(0);
    const bool is_tiled =
        !source.target().is_gpu() && source.output_count() == 1 && result.layout == channels_last(result.rank());
    if (!is_tiled) return NodeGenerator::schedule(source);
    Writer(source, loops(), outputs_, [&](const char* role) { return source.kept(output(0), role); }).write();
}

std::optional<WinogradLoops> winograd_loops(const Node& conv) {
    const TensorType &data = conv.inputs.at(0)->checked_type(), &weights = conv.inputs.at(1)->checked_type();
    if (data.element != ElementType::float32 || data.rank() != 4) return {};
    const bool is_packed = conv.op_type == "WinogradConv";
    std::vector<int64_t> kernel;
    for (const size_t axis : {0, 1})
        kernel.push_back(is_packed ? conv.integers("kernel_shape").at(axis)
                                   : weights.shape.at(2 + axis).constant().value_or(0));
    const std::vector<int64_t> ones = {1, 1};
    if (conv.integers("strides", ones) != ones || conv.integers("dilations", ones) != ones) return {};
    const Window window = read_window(conv, data.shape, kernel);
    const Dim &height = window[0].output, &width = window[1].output;
    const int64_t groups = conv.integer("group", 1);
    const auto inputs = floor_div(data.shape[1], groups).constant();
    const auto channels = is_packed ? std::optional(conv.integer("output_channels")) : weights.shape[0].constant();
    if (!inputs || !channels || *inputs < 1 || *channels < 1 || height.is(0) || width.is(0)) return {};
    if (!has_winograd(kernel[0], kernel[1], groups, *channels / groups)) return {};
    WinogradLoops loops{*inputs, *channels / groups, estimate(height), estimate(width),
                        PerAxis{static_cast<int>(kernel[0]), static_cast<int>(kernel[1])}};
    loops.groups = groups;
    loops.is_open = !height.constant() || !width.constant();
    loops.images = std::max<int64_t>(1, data.shape[0].constant().value_or(1));
    return loops;
}

PackWinogradWeights::PackWinogradWeights(const Node& node)
    : NodeGenerator(node), kernel_(read_per_axis(node, "kernel_shape")),
      places_(transformed_places(read_per_axis(node, "outputs"), kernel_)) {}

std::vector<TensorType> PackWinogradWeights::infer() const {
    const std::vector<Dim>& weights = in(0).shape;
    if (weights.size() != 4 || !weights[2].is(kernel_[0]) || !weights[3].is(kernel_[1]))
        throw CompileError("weights have shape {}, expected a kernel of {}", shape_text(weights),
                           fmt::join(kernel_, "x"));
    return {TensorType(in(0).element,
                       {ceil_div(weights.at(0), weight_block), places_[0], places_[1], weights.at(1), weight_block})};
}

void PackWinogradWeights::algorithm(KernelSource& source) const {
    const Coordinates at = source.vars(5);
    const std::string channel = fmt::format("{} * {} + {}", at[0], weight_block, at[4]);
    const std::string channels = source.dim(in(0).shape[0]), ky = source.var("ky");
    const std::string weight =
        source.read(input(0), {fmt::format("min({}, {} - 1)", channel, channels), at[3], ky, "tap"});
    const std::string across = source.func(output(0)->name + "_across");
    const auto of_filter = [&](size_t axis) { return fmt::format("filter<{}, {}>", kernel_[axis], places_[axis]); };
    source.keep(output(0), across_role, across);
    source.line(fmt::format("{}({}, {}, {}, {}, {}) = {};", across, at[4], at[3], at[2], ky, at[0],
                            transform(of_filter(1), at[2], weight)));
    const std::string value =
        transform(of_filter(0), at[1], fmt::format("{}({}, {}, {}, tap, {})", across, at[4], at[3], at[2], at[0]));
    source.define(output(0), at, fmt::format("select({} < {}, {}, 0.0f)", channel, channels, value));
}

void PackWinogradWeights::schedule(KernelSource& source) const {
    const Loops loops = source.output_loops();
    const std::string &c = loops.vars[0], &i = loops.vars[2], &j = loops.vars[3];
    // The kernel may not know its extents, these it can: what stands at each place is chosen while it is compiled.
    const auto unroll = [](const std::string& var, int extent) {
        return fmt::format("bound({0}, 0, {1}).unroll({0})", var, extent);
    };
    source.schedule(loops.func, {fmt::format("reorder({}, {}, {}, {}, {})", i, j, c, loops.vars[1], loops.vars[4]),
                                 unroll(i, places_[1]), unroll(j, places_[0])});
    const std::string ky = source.var("ky");
    source.schedule(source.kept(output(0), across_role),
                    {fmt::format("compute_at({}, {})", loops.func, c), fmt::format("reorder({}, {})", i, ky),
                     unroll(i, places_[1]), unroll(ky, kernel_[0])});
}

}  // namespace onnx2halide
