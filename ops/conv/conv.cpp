#include "ops/conv/conv.h"

#include <algorithm>

#include <fmt/format.h>

#include "ops/conv/conv_operands.h"
#include "ops/conv/conv_packed.h"
#include "ops/conv/conv_transpose.h"
#include "ops/conv/conv_weights.h"
#include "ops/conv/conv_winograd.h"
#include "ops/families.h"
#include "ops/product/product.h"

namespace onnx2halide {

namespace {

bool are_pointwise(const std::vector<Node*>& nodes) {
    return std::ranges::all_of(nodes, [](const Node* node) { return make_generator(*node)->is_pointwise(); });
}

}  // namespace

Conv::Conv(const Node& node) : NodeGenerator(node), group_(node.integer("group", 1)) {
    if (group_ < 1) throw CompileError("group is {}, expected 1 or more", group_);
}

std::vector<TensorType> Conv::infer() const {
    const TensorType& data = in(0);
    // Passes make convolutions of integers; of bytes, the left operands are unsigned and the right ones signed.
    const bool are_bytes = data.element == ElementType::uint8 && in(1).element == ElementType::int8;
    if (data.element != ElementType::int16 && !are_bytes) check_element_type(Takes::floats);
    if (node_.domain.empty()) check_type_of_first(1);
    if (data.rank() < 3) throw CompileError("input 0 has rank {}, expected 3 or more", data.rank());
    const Dim wanted = inputs_per_group() * group_;
    if (prove_equal(data.shape.at(1), wanted) == Proof::no) {
        throw CompileError("input has {} channels, not a multiple of {} groups", data.shape[1].text(), group_);
    }
    const Window window = this->window();
    check_groups("result has", channels(), group_);
    const bool is_packed = !node_.domain.empty();  // with a bias for whole blocks
    if (!is_packed && has_input(bias_input())) check_bias(in(bias_input()), product_type(data.element), channels());
    std::vector<Dim> shape = {data.shape[0], channels()};
    for (const WindowAxis& axis : window) shape.push_back(axis.output);
    return {TensorType(product_type(data.element), shape)};
}

std::vector<Check> Conv::checks() const {
    std::vector<Check> checks;
    check_extent(checks, 0, 1, inputs_per_group() * group_);
    // Packed weights and biases have other axes and extents, which are constants.
    const auto is_open = [](const Dim& dim) { return !dim.constant(); };
    if (is_open(channels())) check_extent(checks, 1, 0, channels_per_group() * group_);
    if (is_open(in(1).shape.at(1))) check_extent(checks, 1, 1, inputs_per_group());
    if (has_input(bias_input()) && (is_open(channels()) || is_open(in(bias_input()).shape.at(0))))
        check_extent(checks, bias_input(), 0, channels());
    return checks;
}

Dim Conv::inputs_per_group() const {
    const Dim& channels = in(0).shape.at(1);
    if (channels.constant()) return floor_div(channels, group_);
    return node_.has("inputs_per_group") ? Dim(node_.integer("inputs_per_group")) : in(1).shape.at(1);
}

std::vector<int64_t> Conv::kernel() const {
    const std::vector<Dim>& weights = in(1).shape;
    if (weights.size() != in(0).rank())
        throw CompileError("weights have rank {}, expected {}", weights.size(), in(0).rank());
    if (prove_equal(weights[1], inputs_per_group()) == Proof::no) {
        throw CompileError("weights are for {} input channels in each group, expected {}", weights[1].text(),
                           inputs_per_group().text());
    }
    return kernel_of_weights(node_, weights);
}

Coordinates Conv::weight_at(const Channel& channel, const Tap& tap, const Target&) const {
    Coordinates at = {channel.number, tap.channel.empty() ? "0" : tap.channel};
    for (const std::string& place : tap.kernel) at.push_back(place.empty() ? "0" : place);
    return at;
}

std::vector<Dim> Conv::reduction_extents() const {
    std::vector<Dim> extents;
    const std::vector<int64_t> kernel = this->kernel();
    for (auto size = kernel.rbegin(); size != kernel.rend(); ++size) {
        if (*size != 1) extents.push_back(*size);
    }
    if (steps() > 1) {
        extents.insert(extents.begin(), {steps(), ceil_div(inputs_per_group(), steps())});
    } else if (!inputs_per_group().is(1)) {
        extents.insert(extents.begin(), inputs_per_group());
    }
    return extents;
}

std::vector<std::string> Conv::tap_roles(KernelSource& source) const {
    const std::vector<int64_t> kernel = this->kernel();
    const Coordinates at = source.vars(in(0).rank());
    std::vector<std::string> roles;
    if (steps() > 1) roles.push_back(steps_role(steps()));
    if (!inputs_per_group().is(1)) roles.push_back("ci");
    const std::string prefix = tap_prefix(source, node_);
    for (size_t i = kernel.size(); i-- > 0;) {
        if (kernel[i] != 1) roles.push_back(prefix + at[i + 2]);
    }
    return roles;
}

std::vector<std::string> Conv::reduction(KernelSource& source) const {
    std::vector<std::string> names;
    for (const std::string& role : tap_roles(source)) names.push_back(source.rvar(role));
    return names;
}

Conv::Tap Conv::tap(const std::vector<std::string>& reduction) const {
    const std::vector<int64_t> kernel = this->kernel();
    Tap tap{"", "", Coordinates(kernel.size())};
    auto next = reduction.begin();
    if (steps() > 1) tap.place = *next++;
    if (!inputs_per_group().is(1)) tap.channel = *next++;
    for (size_t i = kernel.size(); i-- > 0;) {
        if (kernel[i] != 1) tap.kernel[i] = *next++;
    }
    return tap;
}

Conv::Channel Conv::channel(KernelSource& source, const std::string& c) const {
    if (group_ == 1) return {c, "", c};
    const std::string size = source.dim(channels_per_group());
    if (sums_by_group()) {
        const std::string group = source.var("g");
        return {fmt::format("{} * {} + {}", group, size, c), group, c};
    }
    return {c, channels_per_group().is(1) ? c : fmt::format("{} / {}", c, size), fmt::format("{} % {}", c, size)};
}

std::string Conv::sum_call(const std::string& sum, const Coordinates& at, const std::string& group) const {
    std::string call = KernelSource::call(sum, out(0), at);
    if (!sums_by_group()) return call;
    call.pop_back();
    return fmt::format("{}, {})", call, group);
}

std::string Conv::bias(KernelSource& source, const Channel& channel) const {
    if (!has_input(2)) return KernelSource::literal(int64_t{0}, out(0).element);
    return source.read(input(2), {bias_at(source, channel)});
}

bool Conv::leaves_out(size_t axis, const Target& target) const {
    const Window window = this->window();
    return !has_input(3) && window[axis].kernel > 1 && window[axis].reaches_outside() &&
           is_outside_of_tiles(axis, target);
}

Window Conv::with_input_for_taps(Window window, const Target& target) const {
    for (size_t i = 0; i < window.size(); ++i) {
        if (leaves_out(i, target)) window[i] = {1, 1, 1, 0, 0, window[i].input, window[i].input};
    }
    return window;
}

bool Conv::has_input_func(const Target& target) const {
    const Window window = padded_window(target);
    return is_narrow_float(in(0).element) || reads_beyond_channels() ||
           std::any_of(window.begin(), window.end(), [](const WindowAxis& axis) { return axis.reaches_outside(); });
}

std::string Conv::exterior(KernelSource& source) const {
    return has_input(3) ? source.read(input(3), Coordinates(in(3).rank(), "0"))
                        : KernelSource::literal(int64_t{0}, in(0).element);
}

void Conv::define_input_func(KernelSource& source) const {
    const std::string func = source.func(output(0)->name + "_input");
    source.keep(output(0), input_role, func);
    const Coordinates at = source.vars(in(0).rank());
    const std::string beyond = exterior(source);
    const Window window = padded_window(source.target());
    const std::string element = is_narrow_float(in(0).element)
                                    ? read_padded(source, input(0), window, at, beyond)
                                    : read_exterior(source, input(0), window, at, beyond, reads_beyond_channels());
    source.line(fmt::format("{} = {};", KernelSource::call(func, in(0), at), element));
}

std::string Conv::input_channel(KernelSource& source, const Channel& channel, const Tap& tap) const {
    if (!channel.group.empty() && inputs_per_group().is(1)) return channel.group;
    const std::string in_group = steps() > 1           ? fmt::format("{} * {} + {}", tap.channel, steps(), tap.place)
                                 : tap.channel.empty() ? "0"
                                                       : tap.channel;
    if (channel.group.empty()) return in_group;
    return fmt::format("{} * {} + {}", channel.group, source.dim(inputs_per_group()), in_group);
}

std::string Conv::input_coordinate(KernelSource& source, size_t axis, const Tap& tap) const {
    const WindowAxis window = this->window()[axis];
    const std::string at = window.tap(source, source.vars(in(0).rank())[axis + 2], tap.kernel[axis]);
    return leaves_out(axis, source.target()) ? held_inside(source, window, at) : at;
}

std::string Conv::input_element(KernelSource& source, const Channel& channel, const Tap& tap) const {
    Coordinates at(in(0).rank());
    at[0] = source.vars(at.size())[0];
    at[1] = input_channel(source, channel, tap);
    for (size_t i = 0; i + 2 < at.size(); ++i) at[i + 2] = input_coordinate(source, i, tap);
    return has_input_func(source.target()) ? KernelSource::call(source.kept(output(0), input_role), in(0), at)
                                           : source.read(input(0), at);
}

void Conv::leave_out_taps(KernelSource& source, const std::string& rdom, const Tap& tap) const {
    const Window window = this->window();
    const Coordinates at = source.vars(in(0).rank());
    for (size_t i = 0; i < window.size(); ++i) {
        const std::string condition = leaves_out(i, source.target())
                                          ? inside(source, window[i], window[i].tap(source, at[i + 2], tap.kernel[i]))
                                          : is_useful(source, i, tap.kernel[i]);
        if (!condition.empty()) source.line(fmt::format("{}.where({});", rdom, condition));
    }
}

std::string Conv::is_useful(KernelSource& source, size_t axis, const std::string& tap) const {
    const WindowAxis window = this->window()[axis];
    const bool is_known = window.kernel == 1 || has_input(3) || window.input.constant() || !window.reaches_outside();
    if (is_known || !is_loop_over_taps(axis, source.target())) return "";
    const std::string at = window.dilation == 1 ? tap : fmt::format("{} * {}", tap, window.dilation);
    return fmt::format("{0} >= {1} && {0} < {2}", at,
                       source.dim(window.pad_begin - (window.output - 1) * window.stride),
                       source.dim(window.input + window.pad_begin));
}

void Conv::algorithm(KernelSource& source) const {
    if (has_input_func(source.target())) define_input_func(source);
    const std::vector<Dim> extents = reduction_extents();
    std::vector<std::string> taps;
    if (!extents.empty()) {
        const std::string rdom = source.rdom("k", extents);
        taps = source.name_axes(rdom, tap_roles(source));
        leave_out_taps(source, rdom, this->tap(taps));
    }
    // If only other nodes of the kernel read the result, each at its own place, it may be the sum itself.
    const bool is_result = source.is_internal(output(0)) && !sums_by_group() && !is_narrow_float(out(0).element) &&
                           are_pointwise(output(0)->consumers);
    const std::string sum = is_result ? source.name(output(0)) : source.func(output(0)->name + "_sum");
    source.keep(output(0), sum_role, sum);

    const Coordinates at = source.vars(out(0).rank());
    const Channel channel = this->channel(source, at[1]);
    const Tap tap = this->tap(taps);
    const std::string call = sum_call(sum, at, channel.group), element = input_element(source, channel, tap);
    const std::string weight = source.read(input(1), weight_at(channel, tap, source.target())),
                      initial = bias(source, channel);
    const std::string product = product_text(weight, element, in(0).element);
    if (extents.empty()) {
        source.line(fmt::format("{} = {} + {};", call, initial, product));
    } else {
        source.line(fmt::format("{} = {};", call, initial));
        source.line(fmt::format("{} += {};", call, product));
    }

    if (is_result) return;
    if (!sums_by_group()) {
        source.define(output(0), at, call);
        return;
    }
    Coordinates in_group = at;
    const std::string size = source.dim(channels_per_group());
    in_group[1] = fmt::format("{} % {}", at[1], size);
    source.define(output(0), at, sum_call(sum, in_group, fmt::format("{} / {}", at[1], size)));
}

Dim Conv::flops() const { return out(0).elements() * product(reduction_extents()) * 2; }

std::vector<Operator> conv_operators() {
    return {
        {"Conv", 1, make<Conv>},
        {"ConvTranspose", 1, make<ConvTranspose>},
        {"PackedConv", 1, make<PackedConv>, own_domain},
        {"PackConvWeights", 1, make<PackConvWeights>, own_domain},
        {"WinogradConv", 1, make<WinogradConv>, own_domain},
        {"PackWinogradWeights", 1, make<PackWinogradWeights>, own_domain},
        {"PackConvBias", 1, make<PackConvBias>, own_domain},
    };
}

}  // namespace onnx2halide
