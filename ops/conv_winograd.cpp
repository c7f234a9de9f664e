#include "ops/conv_winograd.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ops/axis_map.h"
#include "ops/conv_winograd_schedule.h"

namespace onnx2halide {

namespace {

constexpr size_t rows = 0, columns = 1;  // of PerAxis

/// " * 4", and nothing for 1.
std::string times(int64_t factor) { return factor == 1 ? "" : fmt::format(" * {}", factor); }

/// `winograd::input<6>(i, [&](int tap) { return image(c, tap); })`
std::string transform(const std::string& function, const std::string& place, const std::string& element) {
    return fmt::format("winograd::{}({}, [&](int tap) {{ return {}; }})", function, place, element);
}

}  // namespace

/// An axis along which there are tiles, as text. Where taps are d elements apart, elements that are so belong to one
/// tile, and d tiles make a block.
class WinogradConv::TiledAxis {
public:
    /// With the window of whole tiles, the output's coordinate, and the Var of a transformed tile's places.
    TiledAxis(const WindowAxis& window, int outputs, std::string coordinate, std::string place)
        : coordinate(std::move(coordinate)), place(std::move(place)), outputs(outputs),
          places(outputs + static_cast<int>(window.kernel) - 1), window_(window),
          dilation_(window.kernel == 1 ? 1 : window.dilation), block_(outputs * dilation_) {}

    const std::string coordinate, place;
    const int outputs, places;

    /// Whether it takes transforms; else a tile is one output.
    bool is_transformed() const { return places > 1; }
    Dim tiles() const { return floor_div(window_.output, block_) * dilation_; }

    /// Of the tile to which an output belongs, and its place in it.
    std::string tile() const {
        if (block_ == 1) return coordinate;
        const std::string block = fmt::format("{} / {}", coordinate, block_);
        return dilation_ == 1 ? block : fmt::format("({} * {} + {} % {})", block, dilation_, coordinate, dilation_);
    }
    std::string place_in_tile() const {
        const std::string in_block = fmt::format("{} % {}", coordinate, block_);
        return dilation_ == 1 ? in_block : fmt::format("{} / {}", in_block, dilation_);
    }

    /// The input's coordinate of a tile's element; `tap` is empty where a tile has one.
    std::string input(KernelSource& source, const std::string& tile, const std::string& tap) const {
        std::string at =
            dilation_ == 1 ? tile + times(block_) : fmt::format("{0} / {1} * {2} + {0} % {1}", tile, dilation_, block_);
        if (!tap.empty()) at += " + " + tap + times(dilation_);
        return shifted(source, at, -window_.pad_begin);
    }

private:
    WindowAxis window_;
    int64_t dilation_, block_;
};

PerAxis tiled_kernel(const std::vector<int64_t>& kernel_shape) {
    if (kernel_shape.empty()) throw CompileError("kernel_shape is empty");
    if (kernel_shape.size() == 1) return {static_cast<int>(kernel_shape[0]), 1};
    return {static_cast<int>(kernel_shape[kernel_shape.size() - 2]), static_cast<int>(kernel_shape.back())};
}

PerAxis outputs_of_tile(const Node& node, const PerAxis& kernel) {
    const std::vector<int64_t> numbers = node.integers("outputs");
    if (numbers.size() != 2) throw CompileError("outputs has {} numbers, expected two", numbers.size());
    const PerAxis outputs{static_cast<int>(numbers[rows]), static_cast<int>(numbers[columns])};
    const PerAxis places = places_of_tile(outputs, kernel);
    for (const size_t axis : {rows, columns}) {
        const bool is_plain = outputs[axis] == 1 && kernel[axis] == 1;
        const bool is_transformed =
            kernel[axis] > 1 && outputs[axis] > 1 &&
            std::find(winograd_places.begin(), winograd_places.end(), places[axis]) != winograd_places.end();
        if (!is_plain && !is_transformed)
            throw CompileError("{} outputs of {} taps have no transforms", outputs[axis], kernel[axis]);
    }
    return outputs;
}

WinogradConv::WinogradConv(const Node& node)
    : Conv(node), outputs_(outputs_of_tile(node, tiled_kernel(node.integers("kernel_shape")))),
      places_(places_of_tile(outputs_, tiled_kernel(node.integers("kernel_shape")))),
      output_channels_(node.integer("output_channels")) {}

Window WinogradConv::tiles_window() const {
    Window window = this->window();
    const size_t first = window.size() > 1 ? window.size() - 2 : 0;
    for (size_t i = first; i < window.size(); ++i) {
        const int64_t block = outputs_[i - first] * (window[i].kernel == 1 ? 1 : window[i].dilation);
        window[i].output = ceil_div(window[i].output, block) * block;
    }
    return window;
}

std::vector<WinogradConv::TiledAxis> WinogradConv::tiled_axes(KernelSource& source) const {
    const Window window = tiles_window();
    const Coordinates at = source.vars(in(0).rank());
    if (window.size() == 1) return {{window[0], outputs_[rows], at[2], source.var("j")}};
    const size_t last = window.size() - 1;
    return {{window[last - 1], outputs_[rows], at[last + 1], source.var("j")},
            {window[last], outputs_[columns], at[last + 2], source.var("i")}};
}

Coordinates WinogradConv::planes(KernelSource& source) const {
    Coordinates at = source.vars(in(0).rank());
    at.resize(std::max<size_t>(4, at.size()) - 2);
    at.erase(at.begin(), at.begin() + 2);
    return at;
}

void WinogradConv::algorithm(KernelSource& source) const {
    const std::vector<TiledAxis> axes = tiled_axes(source);
    transform_inputs(source, axes);
    add_products(source, axes);
    transform_outputs(source, axes);
}

std::string WinogradConv::func(KernelSource& source, const char* role, const std::string& suffix) const {
    const std::string name = source.func(output(0)->name + suffix);
    source.keep(output(0), role, name);
    return name;
}

std::string WinogradConv::element(KernelSource& source, const std::string& func, const std::string& channel,
                                  const std::string& tile, const Coordinates& place, const Coordinates& planes) const {
    Coordinates at = {channel, tile};
    at.insert(at.end(), place.begin(), place.end());
    at.insert(at.end(), planes.rbegin(), planes.rend());
    at.push_back(source.vars(in(0).rank())[0]);
    return fmt::format("{}({})", func, fmt::join(at, ", "));
}

namespace {

/// The Vars of a transformed tile's places, innermost first.
template <typename Axes>
Coordinates places_of(const Axes& axes) {
    Coordinates places;
    for (size_t i = axes.size(); i-- > 0;) {
        if (axes[i].is_transformed()) places.push_back(axes[i].place);
    }
    return places;
}

}  // namespace

void WinogradConv::transform_inputs(KernelSource& source, const std::vector<TiledAxis>& axes) const {
    Coordinates at = source.vars(in(0).rank());
    const std::string c = at[1], t = source.var("t");
    const std::string input = func(source, input_role, "_input");
    source.line(fmt::format(
        "{} = {};", KernelSource::call(input, in(0), at),
        read_exterior(source, this->input(0), with_input_for_taps(tiles_window(), source.target()), at, "0.0f")));
    const bool is_signal = axes.size() == 1;
    const std::string across = is_signal ? "" : source.dim(axes[columns].tiles());
    source.comment(is_signal ? fmt::format("Tile t has {} outputs, and {} inputs.", outputs_[rows], places_[rows])
                             : fmt::format("Tile t has {} x {} outputs, and {} x {} inputs; there are {} in a row.",
                                           outputs_[rows], outputs_[columns], places_[rows], places_[columns], across));
    const auto element_of_input = [&](const std::string& row_tap, const std::string& column_tap) {
        Coordinates from = at;
        if (is_signal) {
            from[2] = axes[rows].input(source, t, row_tap);
        } else {
            from[from.size() - 1] = axes[columns].input(source, fmt::format("{} % {}", t, across), column_tap);
            from[from.size() - 2] = axes[rows].input(source, fmt::format("{} / {}", t, across), row_tap);
        }
        return KernelSource::call(input, in(0), from);
    };
    const auto of_input = [&](size_t axis) { return fmt::format("input<{}>", places_[axis]); };
    const Coordinates planes = this->planes(source), places = places_of(axes);
    const std::string tiles_suffix = "_tiles";
    std::string value;
    if (places.size() == 2) {
        const TiledAxis &row = axes[rows], &column = axes[columns];
        const std::string func_across = func(source, across_role, "_across");
        source.line(fmt::format("{} = {};", element(source, func_across, c, t, {column.place, row.coordinate}, planes),
                                transform(of_input(columns), column.place, element_of_input(row.coordinate, "tap"))));
        value = transform(of_input(rows), row.place, element(source, func_across, c, t, {column.place, "tap"}, planes));
    } else if (axes[rows].is_transformed()) {
        value = transform(of_input(rows), axes[rows].place, element_of_input("tap", ""));
    } else {
        value = transform(of_input(columns), axes[columns].place, element_of_input("", "tap"));
    }
    const std::string tiles = func(source, tiles_role, tiles_suffix);
    source.line(fmt::format("{} = {};", element(source, tiles, c, t, places, planes), value));
}

std::vector<std::string> WinogradConv::term_roles(KernelSource& source) const {
    const std::vector<int64_t> kernel = this->kernel();
    const Coordinates planes = this->planes(source);
    std::vector<std::string> roles = {"ci"};
    for (size_t i = planes.size(); i-- > 0;) {
        if (kernel[i] != 1) roles.push_back("k" + planes[i]);
    }
    return roles;
}

void WinogradConv::add_products(KernelSource& source, const std::vector<TiledAxis>& axes) const {
    const Coordinates at = source.vars(in(0).rank()), planes = this->planes(source), places = places_of(axes);
    const std::string &c = at[1], t = source.var("t");
    const std::vector<int64_t> kernel = this->kernel();
    std::vector<Dim> extents = {inputs_per_group()};
    for (size_t i = planes.size(); i-- > 0;) {
        if (kernel[i] != 1) extents.push_back(kernel[i]);
    }
    const std::string rdom = source.rdom("k", extents);
    const std::vector<std::string> terms = source.name_axes(rdom, term_roles(source));
    Tap tap{terms.front(), "", Coordinates(kernel.size())};
    auto next = terms.begin() + 1;
    for (size_t i = planes.size(); i-- > 0;) {
        if (kernel[i] != 1) tap.kernel[i] = *next++;
    }
    leave_out_taps(source, rdom, tap);
    Coordinates input_planes, weight_at;
    const std::string block = in(1).shape.back().text();
    weight_at.push_back(fmt::format("{} / {}", c, block));
    for (const size_t axis : {rows, columns}) {
        const bool has_places = axis < axes.size() && axes[axis].is_transformed();
        weight_at.push_back(has_places ? axes[axis].place : "0");
    }
    for (size_t i = 0; i < planes.size(); ++i) {
        input_planes.push_back(input_coordinate(source, i, tap));
        weight_at.push_back(tap.kernel[i].empty() ? "0" : tap.kernel[i]);
    }
    weight_at.push_back(tap.channel);
    weight_at.push_back(fmt::format("{} % {}", c, block));
    const std::string read_channel = input_channel(source, channel(source, c), tap);
    const std::string sum = func(source, products_role, "_sum"), product = func(source, product_role, "_product");
    const std::string place_of_sum = element(source, sum, c, t, places, planes);
    source.line(place_of_sum + " = 0.0f;");
    source.line(
        fmt::format("{} += {} * {};", place_of_sum, source.read(input(1), weight_at),
                    element(source, source.kept(output(0), tiles_role), read_channel, t, places, input_planes)));
    source.line(fmt::format("{} = {};", element(source, product, c, t, places, planes), place_of_sum));
}

void WinogradConv::transform_outputs(KernelSource& source, const std::vector<TiledAxis>& axes) const {
    const Coordinates at = source.vars(in(0).rank()), planes = this->planes(source);
    const std::string &c = at[1], t = source.var("t"), &product = source.kept(output(0), product_role);
    const auto of_output = [&](size_t axis) { return fmt::format("output<{}, {}>", outputs_[axis], places_[axis]); };
    const auto product_at = [&](const Coordinates& place) { return element(source, product, c, t, place, planes); };
    Coordinates outputs, in_tile;  // of a tile's Func, and of the result's in it
    for (size_t i = axes.size(); i-- > 0;) {
        if (!axes[i].is_transformed()) continue;
        outputs.push_back(axes[i].coordinate);
        in_tile.push_back(axes[i].place_in_tile());
    }
    std::string value;
    if (outputs.size() == 2) {
        const TiledAxis &row = axes[rows], &column = axes[columns];
        const std::string func_rows = func(source, rows_role, "_rows");
        source.line(fmt::format("{} = {};", element(source, func_rows, c, t, {column.coordinate, row.place}, planes),
                                transform(of_output(columns), column.coordinate, product_at({"tap", row.place}))));
        value = transform(of_output(rows), row.coordinate,
                          element(source, func_rows, c, t, {column.coordinate, "tap"}, planes));
    } else {
        const size_t axis = axes[rows].is_transformed() ? rows : columns;
        value = transform(of_output(axis), axes[axis].coordinate, product_at({"tap"}));
    }
    const std::string tile = func(source, tile_role, "_tile");
    source.line(fmt::format("{} = {};", element(source, tile, c, t, outputs, planes), value));
    const std::string number = axes.size() == 1 ? axes[rows].tile()
                                                : fmt::format("{} + {} * {}", axes[columns].tile(), axes[rows].tile(),
                                                              source.dim(axes[columns].tiles()));
    std::string result = element(source, tile, c, number, in_tile, planes);
    if (has_input(2)) result += " + " + source.read(input(2), {c});
    source.define(output(0), at, result);
}

void WinogradConv::schedule(KernelSource& source) const {
    const TensorType& result = out(0);
    const bool is_tiled =
        !source.target().is_gpu() && source.output_count() == 1 && result.layout == channels_last(result.rank());
    if (!is_tiled) return NodeGenerator::schedule(source);
    const auto loops = winograd_loops(node_);
    if (!loops) throw CompileError("is no convolution for Winograd's algorithm");
    std::vector<std::string> terms;
    for (const std::string& role : term_roles(source)) terms.push_back(source.rvar(role));
    schedule_winograd(source, *loops, outputs_, terms, [&](const char* role) { return source.kept(output(0), role); });
}

namespace {

/// The share of taps that find a row of the image under them, over all rows of the output.
double share_inside(const WindowAxis& axis) {
    const auto input = axis.input.constant(), output = axis.output.constant(), pad = axis.pad_begin.constant();
    if (!input || !output || !pad) return 1;
    int64_t inside = 0;
    for (int64_t tap = 0; tap < axis.kernel; ++tap) {
        const int64_t shift = tap * axis.dilation - *pad;
        inside += std::max<int64_t>(0, std::min(*output, *input - shift) - std::max<int64_t>(0, -shift));
    }
    return static_cast<double>(inside) / static_cast<double>(axis.kernel * *output);
}

}  // namespace

std::optional<WinogradLoops> winograd_loops(const Node& conv) {
    const TensorType &data = conv.inputs.at(0)->checked_type(), &weights = conv.inputs.at(1)->checked_type();
    if (data.element != ElementType::float32 || data.rank() < 3) return {};
    const bool is_packed = conv.op_type == "WinogradConv";
    std::vector<int64_t> kernel_shape;
    for (size_t i = 2; i < data.rank(); ++i)
        kernel_shape.push_back(is_packed ? conv.integers("kernel_shape").at(i - 2)
                                         : weights.shape.at(i).constant().value_or(0));
    const PerAxis kernel = tiled_kernel(kernel_shape);
    const Window window = read_window(conv, data.shape, kernel_shape);
    const size_t planes = window.size() > 1 ? window.size() - 2 : 0;
    const WindowAxis& row_axis = window[planes];
    const WindowAxis column_axis = window.size() > 1 ? window.back() : WindowAxis{1, 1, 1, 0, 0, 1, 1};
    const int64_t groups = conv.integer("group", 1);
    const auto inputs = floor_div(data.shape[1], groups).constant();
    const auto channels = is_packed ? std::optional(conv.integer("output_channels")) : weights.shape[0].constant();
    if (!inputs || !channels || *inputs < 1 || *channels < 1) return {};
    if (row_axis.stride != 1 || column_axis.stride != 1) return {};
    if (!has_winograd(kernel[rows], kernel[columns], groups, *channels / groups)) return {};
    WinogradLoops loops{*inputs, *channels / groups, estimate(row_axis.output), estimate(column_axis.output), kernel};
    for (const size_t axis : {rows, columns}) {
        const WindowAxis& own = axis == rows ? row_axis : column_axis;
        if (own.output.is(0)) return {};
        loops.dilations[axis] = own.kernel == 1 ? 1 : static_cast<int>(own.dilation);
    }
    for (size_t i = 0; i < planes; ++i) {
        if (window[i].output.is(0)) return {};
        loops.planes *= estimate(window[i].output);
        loops.plane_taps *= window[i].kernel;
    }
    loops.groups = groups;
    loops.is_open = !row_axis.output.constant() || !column_axis.output.constant();
    loops.images = std::max<int64_t>(1, data.shape[0].constant().value_or(1));
    loops.rows_inside = share_inside(row_axis);
    return loops;
}

}  // namespace onnx2halide
