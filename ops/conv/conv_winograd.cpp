#include "ops/conv/conv_winograd.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ops/axis_map.h"
#include "ops/conv/conv_weights.h"
#include "ops/conv/conv_winograd_schedule.h"
#include "ops/conv/inner_conv.h"
#include "ops/product/product.h"

namespace onnx2halide {

using namespace tile_axes;

namespace {

/// `onnx::winograd::input<6>(i, [&](int tap) { return image(c, tap); })`
std::string transform(const std::string& function, const std::string& place, const std::string& element) {
    return fmt::format("onnx::winograd::{}({}, [&](int tap) {{ return {}; }})", function, place, element);
}

}  // namespace

/// An axis along which there are tiles, as text (see WinogradLoops).
class WinogradConv::TiledAxis {
public:
    /// `window` is that of whole tiles, `coordinate` the output's, `place` the Var of a transformed tile's places.
    TiledAxis(const WindowAxis& window, const KernelAxis& kernel, std::string coordinate, std::string place)
        : coordinate(std::move(coordinate)), place(std::move(place)), kernel_(kernel), window_(window),
          block_(kernel.outputs_of_block()), tiles_of_block_(kernel.tiles_of_block()) {}

    const std::string coordinate, place;

    /// Whether it is transformed; else a tile is a single output.
    bool is_transformed() const { return kernel_.taps() > 1; }
    int parts() const { return kernel_.parts(); }
    /// The parts with tiles of their own, and the number of such a part.
    int tiled_parts() const { return kernel_.tiled_parts(); }
    std::string tiled_part(const std::string& part) const {
        return tiled_parts() == parts() ? part : fmt::format("{} % {}", part, tiled_parts());
    }
    /// The offset, in rows of tiles, at which a part that shares its tiles finds its inputs.
    std::string rows_to_shift(const std::string& part) const {
        return (tiled_parts() == 1 ? part : fmt::format("({} / {})", part, tiled_parts())) +
               factor_text(kernel_.dilation);
    }
    /// The Var of a part of the kernel.
    std::string part() const { return kernel_part_var(coordinate); }
    Dim tiles() const { return floor_div(window_.output, block_) * tiles_of_block_; }

    /// The tile to which an output belongs, and the output's index within it.
    std::string tile() const {
        if (block_ == 1) return coordinate;
        const std::string block = fmt::format("{} / {}", coordinate, block_);
        return tiles_of_block_ == 1
                   ? block
                   : fmt::format("({} * {} + {} % {})", block, tiles_of_block_, coordinate, tiles_of_block_);
    }
    std::string place_in_tile() const {
        const std::string in_block = fmt::format("{} % {}", coordinate, block_);
        return tiles_of_block_ == 1 ? in_block : fmt::format("{} / {}", in_block, tiles_of_block_);
    }

    /// The input's coordinate for a tile's element under a part of the kernel; `tap` is empty if a tile has one.
    std::string input(KernelSource& source, const std::string& tile, const std::string& tap) const {
        std::string at = tiles_of_block_ == 1
                             ? tile + factor_text(block_ * kernel_.stride)
                             : fmt::format("{0} / {1} * {2} + {0} % {1}", tile, tiles_of_block_, block_);
        if (tiled_parts() > 1) at += " + " + first_tap_of_part(source.var(part()), kernel_);
        if (!tap.empty()) at += " + " + tap + factor_text(int64_t{kernel_.dilation} * kernel_.stride);
        return shifted(source, at, -window_.pad_begin);
    }

private:
    KernelAxis kernel_;
    WindowAxis window_;
    int64_t block_;  // outputs of a block
    int tiles_of_block_;
};

std::string kernel_part_var(const std::string& coordinate) { return coordinate + "_part"; }

std::string factor_text(int64_t factor) { return factor == 1 ? "" : fmt::format(" * {}", factor); }

std::string first_tap_of_part(const std::string& part, const KernelAxis& kernel) {
    const int phases = kernel.phases();
    const std::string step = factor_text(int64_t{kernel.taps()} * kernel.stride * kernel.dilation);
    if (phases == 1) return part + step;
    if (kernel.taps() == 1 || kernel.parts() == phases) return part;
    return fmt::format("{0} / {1}{2} + {0} % {1}", part, phases, step);
}

WinogradConv::WinogradConv(const Node& node)
    : Conv(node), kernel_(tiled_kernel(node)), output_channels_(node.integer("output_channels")) {}

int64_t WinogradConv::steps() const { return in(0).element == ElementType::int16 ? pair : 1; }

WinogradLoops WinogradConv::loops() const {
    const auto loops = winograd_loops(node_);
    if (!loops) throw CompileError("is not a convolution for Winograd's algorithm");
    return loops->with_places(places_of_tile(kernel_));
}

Window WinogradConv::tiles_window() const {
    Window window = this->window();
    const size_t first = plane_axes(window.size());
    for (size_t i = first; i < window.size(); ++i) {
        const KernelAxis& kernel = kernel_[i - first];
        window[i].output = ceil_div(window[i].output, kernel.outputs_of_block()) * kernel.outputs_of_block();
        window[i].kernel = kernel.parts() * kernel.taps();
    }
    return window;
}

std::vector<WinogradConv::TiledAxis> WinogradConv::tiled_axes(KernelSource& source) const {
    const Window window = tiles_window();
    const Coordinates at = source.vars(in(0).rank());
    if (window.size() == 1) return {{window[0], kernel_[rows], at[2], source.var("j")}};
    const size_t last = window.size() - 1;
    return {{window[last - 1], kernel_[rows], at[last + 1], source.var("j")},
            {window[last], kernel_[columns], at[last + 2], source.var("i")}};
}

Coordinates WinogradConv::planes(KernelSource& source) const {
    const Coordinates at = source.vars(in(0).rank());
    const auto first = at.begin() + 2;
    return Coordinates(first, first + static_cast<std::ptrdiff_t>(plane_axes(at.size() - 2)));
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

std::string WinogradConv::element(KernelSource& source, const std::string& func, const Coordinates& front,
                                  const Coordinates& place, const Coordinates& planes) const {
    Coordinates at = front;
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

void WinogradConv::add_parts(const std::vector<TiledAxis>& axes,
                             const std::function<std::string(const TiledAxis&)>& part, Coordinates& front,
                             Coordinates& planes) {
    for (size_t axis = 0; axis < axes.size(); ++axis) {
        if (axes[axis].tiled_parts() > 1) (axis == rows ? planes : front).push_back(part(axes[axis]));
    }
}

std::string WinogradConv::tile_element(KernelSource& source, const std::vector<TiledAxis>& axes,
                                       const std::string& row_tap, const std::string& column_tap) const {
    Coordinates at = source.vars(in(0).rank());
    const std::string t = source.var("t");
    if (axes.size() == 1) {
        at[2] = axes[rows].input(source, t, row_tap);
    } else {
        const std::string across = source.dim(axes[columns].tiles());
        at[at.size() - 1] = axes[columns].input(source, fmt::format("{} % {}", t, across), column_tap);
        at[at.size() - 2] = axes[rows].input(source, fmt::format("{} / {}", t, across), row_tap);
    }
    return KernelSource::call(source.kept(output(0), input_role), in(0), at);
}

void WinogradConv::transform_inputs(KernelSource& source, const std::vector<TiledAxis>& axes) const {
    const Coordinates at = source.vars(in(0).rank());
    const std::string t = source.var("t"), input = func(source, input_role, "_input");
    const WinogradLoops loops = this->loops();
    const std::string zero = KernelSource::literal(int64_t{0}, in(0).element);
    const bool has_more_channels = loops.transformed_inputs(source.target()) > loops.inputs * group_;
    Window window = with_input_for_taps(tiles_window(), source.target());
    // Products round the number of tiles up, so that some may lie past the last row.
    if (!loops.is_open()) window[plane_axes(window.size())].output += kernel_[rows].outputs_of_block();
    source.line(fmt::format("{} = {};", KernelSource::call(input, in(0), at),
                            is_narrow_float(in(0).element)
                                ? read_padded(source, this->input(0), window, at, zero)
                                : read_exterior(source, this->input(0), window, at, zero, has_more_channels)));
    source.comment(
        axes.size() == 1
            ? fmt::format("Tile t has {} outputs, and {} inputs.", kernel_[rows].outputs(), kernel_[rows].places)
            : fmt::format("Tile t has {} x {} outputs, and {} x {} inputs; there are {} in a row.",
                          kernel_[rows].outputs(), kernel_[columns].outputs(), kernel_[rows].places,
                          kernel_[columns].places, source.dim(axes[columns].tiles())));
    const size_t innermost = axes.size() > 1 && axes[columns].is_transformed() ? columns : rows;
    const auto of_input = [&](size_t axis) {
        return fmt::format("{}<{}>", axis == innermost && loops.places_are_lanes() ? "input_lanes" : "input",
                           kernel_[axis].places);
    };
    Coordinates front = {at[1]}, planes = this->planes(source);
    add_parts(
        axes, [&](const TiledAxis& axis) { return source.var(axis.part()); }, front, planes);
    front.push_back(t);
    const Coordinates places = places_of(axes);
    std::string value;
    if (places.size() == 2) {
        const TiledAxis &row = axes[rows], &column = axes[columns];
        const std::string func_across = func(source, across_role, "_across");
        source.line(
            fmt::format("{} = {};", element(source, func_across, front, {column.place, row.coordinate}, planes),
                        transform(of_input(columns), column.place, tile_element(source, axes, row.coordinate, "tap"))));
        value =
            transform(of_input(rows), row.place, element(source, func_across, front, {column.place, "tap"}, planes));
    } else if (axes[rows].is_transformed()) {
        value = transform(of_input(rows), axes[rows].place, tile_element(source, axes, "tap", ""));
    } else {
        value = transform(of_input(columns), axes[columns].place, tile_element(source, axes, "", "tap"));
    }
    const std::string tiles = func(source, tiles_role, "_tiles");
    source.line(fmt::format("{} = {};", element(source, tiles, front, places, planes), value));
}

std::vector<WinogradConv::Term> WinogradConv::terms(KernelSource& source) const {
    const std::vector<int64_t> kernel = this->kernel();
    const std::vector<TiledAxis> axes = tiled_axes(source);
    const Coordinates planes = this->planes(source);
    std::vector<Term> terms;
    if (steps() > 1) terms.push_back({steps_role(steps()), steps()});
    terms.push_back({"ci", floor_div(inputs_per_group(), steps())});
    for (size_t i = axes.size(); i-- > 0;) {
        if (axes[i].parts() > 1) terms.push_back({"k" + axes[i].part(), axes[i].parts()});
    }
    for (size_t i = planes.size(); i-- > 0;) {
        if (kernel[i] != 1) terms.push_back({"k" + planes[i], kernel[i]});
    }
    return terms;
}

std::string WinogradConv::shift(KernelSource& source, const std::vector<TiledAxis>& axes) const {
    const TiledAxis& row = axes[rows];
    if (row.parts() == row.tiled_parts()) return "";
    return fmt::format(" + {} * {}", row.rows_to_shift(source.rvar("k" + row.part())),
                       source.dim(axes[columns].tiles()));
}

void WinogradConv::add_products(KernelSource& source, const std::vector<TiledAxis>& axes) const {
    const Coordinates at = source.vars(in(0).rank()), planes = this->planes(source), places = places_of(axes);
    const std::string &c = at[1], t = source.var("t");
    std::vector<Dim> extents;
    std::vector<std::string> roles;
    for (const Term& term : terms(source)) {
        extents.push_back(term.extent);
        roles.push_back(term.role);
    }
    const std::string rdom = source.rdom("k", extents);
    source.name_axes(rdom, roles);
    const PlaceInBlock place =
        place_in_block(c, c, weight_block, steps(), source.target().lanes(sum_type(in(0).element)));
    Coordinates weight_at = {place.block}, input_planes;
    for (const size_t axis : {rows, columns}) {
        const bool has_places = axis < axes.size() && axes[axis].is_transformed();
        weight_at.push_back(has_places ? axes[axis].place : "0");
    }
    Tap tap{source.rvar("ci"), "", Coordinates(kernel().size())};
    if (steps() > 1) tap.place = source.rvar(steps_role(steps()));
    for (size_t i = 0; i < planes.size(); ++i) {
        const bool has_taps = kernel()[i] != 1;
        if (has_taps) tap.kernel[i] = source.rvar("k" + planes[i]);
        weight_at.push_back(has_taps ? tap.kernel[i] : "0");
        input_planes.push_back(input_coordinate(source, i, tap));
    }
    leave_out_taps(source, rdom, tap);
    Coordinates front = {input_channel(source, channel(source, c), tap)};
    for (const TiledAxis& axis : axes) {
        if (axis.parts() > 1) weight_at.push_back(source.rvar("k" + axis.part()));
    }
    add_parts(
        axes, [&](const TiledAxis& axis) { return axis.tiled_part(source.rvar("k" + axis.part())); }, front,
        input_planes);
    front.push_back(t + shift(source, axes));
    weight_at.insert(weight_at.end(), {tap.channel, place.lane});
    if (steps() > 1) weight_at.push_back(tap.place);
    const std::string sum = func(source, products_role, "_sum"), product = func(source, product_role, "_product");
    const std::string place_of_sum = element(source, sum, {c, t}, places, planes);
    source.line(fmt::format("{} = {};", place_of_sum, KernelSource::literal(int64_t{0}, sum_type(in(0).element))));
    source.line(fmt::format(
        "{} += {};", place_of_sum,
        product_text(source.read(input(1), weight_at),
                     element(source, source.kept(output(0), tiles_role), front, places, input_planes), in(0).element)));
    source.line(fmt::format("{} = {};", element(source, product, {c, t}, places, planes),
                            is_of_integers() ? fmt::format("reinterpret<uint32_t>({})", place_of_sum) : place_of_sum));
}

void WinogradConv::transform_outputs(KernelSource& source, const std::vector<TiledAxis>& axes) const {
    const Coordinates at = source.vars(in(0).rank()), planes = this->planes(source);
    const std::string &c = at[1], t = source.var("t"), &product = source.kept(output(0), product_role);
    const auto of_output = [&](size_t axis) {
        return fmt::format("output<{}, {}>", kernel_[axis].outputs(), kernel_[axis].places);
    };
    const auto product_at = [&](const Coordinates& place) { return element(source, product, {c, t}, place, planes); };
    Coordinates outputs, in_tile;  // of a tile's Func, and of the result within it
    for (size_t i = axes.size(); i-- > 0;) {
        if (!axes[i].is_transformed()) continue;
        outputs.push_back(axes[i].coordinate);
        in_tile.push_back(axes[i].place_in_tile());
    }
    std::string value;
    if (outputs.size() == 2) {
        const TiledAxis &row = axes[rows], &column = axes[columns];
        const std::string func_rows = func(source, rows_role, "_rows");
        source.line(fmt::format("{} = {};", element(source, func_rows, {c, t}, {column.coordinate, row.place}, planes),
                                transform(of_output(columns), column.coordinate, product_at({"tap", row.place}))));
        value = transform(of_output(rows), row.coordinate,
                          element(source, func_rows, {c, t}, {column.coordinate, "tap"}, planes));
    } else {
        const size_t axis = axes[rows].is_transformed() ? rows : columns;
        value = transform(of_output(axis), axes[axis].coordinate, product_at({"tap"}));
    }
    if (is_of_integers())
        value =
            fmt::format("onnx::winograd::quotient<{}, {}>({})", kernel_[rows].places, kernel_[columns].places, value);
    const std::string tile = func(source, tile_role, "_tile");
    source.line(fmt::format("{} = {};", element(source, tile, {c, t}, outputs, planes), value));
    const std::string number = axes.size() == 1 ? axes[rows].tile()
                                                : fmt::format("{} + {} * {}", axes[columns].tile(), axes[rows].tile(),
                                                              source.dim(axes[columns].tiles()));
    std::string result = element(source, tile, {c, number}, in_tile, planes);
    if (has_input(2)) result += " + " + source.read(input(2), {c});
    source.define(output(0), at, result);
}

void WinogradConv::schedule(KernelSource& source) const {
    const TensorType& result = out(0);
    const bool is_tiled =
        !source.target().is_gpu() && source.output_count() == 1 && result.layout == channels_last(result.rank());
    if (!is_tiled) return NodeGenerator::schedule(source);
    schedule_tiles(source, {});
}

bool WinogradConv::can_be_pooled(const PooledWindow& pooled, const Target& target) const {
    const auto is_whole = [](const KernelAxis& axis, int64_t outputs) {
        return axis.taps() > 1 && axis.tiles_of_block() == 1 && axis.outputs() % outputs == 0;
    };
    return !target.is_gpu() && is_plain_image(out(0)) && is_whole(kernel_[rows], pooled.rows) &&
           is_whole(kernel_[columns], pooled.columns);
}

void WinogradConv::schedule_pooled(KernelSource& source, const PooledWindow& pooled) const {
    source.schedule("// The windows of a tile's outputs are pooled at once: the outputs themselves are not stored.");
    schedule_tiles(source, pooled);
}

void WinogradConv::schedule_tiles(KernelSource& source, const PooledWindow& pooled) const {
    std::vector<std::string> terms;
    for (const Term& term : this->terms(source)) terms.push_back(source.rvar(term.role));
    schedule_winograd(
        source, loops(), terms, source.name(input(1)), [&](const char* role) { return source.kept(output(0), role); },
        pooled);
}

}  // namespace onnx2halide
