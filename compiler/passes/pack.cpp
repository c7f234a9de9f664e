#include "compiler/passes/pack.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "compiler/infer/add_node.h"
#include "compiler/passes/centred.h"
#include "compiler/passes/constants.h"
#include "compiler/passes/pack_matmul.h"
#include "compiler/passes/quantise_rows.h"
#include "ops/conv/conv_packed.h"
#include "ops/conv/conv_weights.h"
#include "ops/conv/conv_winograd.h"
#include "ops/conv/dots_tile.h"
#include "ops/node_generator.h"
#include "ops/product/product.h"
#include "ops/schedule/cycles.h"

namespace onnx2halide {

namespace {

/// The target that decides, and all that share the weights.
struct Targets {
    const Target& best;
    std::span<const Target> all;
};

/// Adds a node of the compiler's own domain before `before`.
Value* add_packing(Graph& graph, const Node* before, const std::string& op_type, Value* input,
                   std::map<std::string, Attribute> attributes) {
    const NewNode node{op_type, 1, {input}, std::move(attributes), own_domain, before->index};
    return add_node(graph, node, input->name + "_packed", before);
}

/// Whether packing a convolution's weights pays: they are constant and the images are not, or are used for enough
/// pixels.
bool gains_from_packing(const Node& conv) {
    const Value* weights = conv.inputs.at(1);
    if (weights->checked_type().elements().constant().value_or(0) == 0) return false;
    if (is_compile_time_constant(weights)) return !is_compile_time_constant(conv.inputs[0]);
    return are_worth_packing(conv.outputs.at(0)->checked_type().shape);
}

/// Makes `conv` an operator that reads packed weights; `weights` is their type before packing.
void read_packed(Node& conv, const std::string& op_type, const TensorType& weights) {
    conv.become(op_type);
    conv.attributes["output_channels"] = *weights.shape[0].constant();
    conv.attributes["inputs_per_group"] = *weights.shape[1].constant();
}

/// The extents of a convolution with few output channels, if it may be sums over input channels.
std::optional<ConvLoops> loops_of_dots(const Node& conv) {
    const TensorType &data = conv.inputs[0]->checked_type(), &weights = conv.inputs[1]->checked_type(),
                     &result = conv.outputs[0]->checked_type();
    const auto inputs = weights.shape[1].constant();
    if (!inputs) return std::nullopt;
    const std::vector<int64_t> kernel = kernel_shape(weights);
    ConvLoops loops{};
    loops.element = compute_element(data.element);
    loops.channels = *weights.shape[0].constant();
    loops.groups = conv.integer("group", 1);
    loops.max_lanes = weight_block;
    loops.inner_products = *inputs;
    loops.products = std::accumulate(kernel.begin(), kernel.end(), *inputs, std::multiplies<>());
    loops.width = estimate(result.shape.back()), loops.open_width = !result.shape.back().constant();
    const Dim height = result.rank() > 3 ? result.shape[result.rank() - 2] : Dim(1);
    loops.height = estimate(height);
    // The rows of a known image may become one row; floats that are widened are copied row by row.
    const bool may_be_row = height.constant() && !loops.open_width && !is_narrow_float(data.element);
    if (may_be_row && keeps_places(read_window(conv, data.shape, kernel)))
        loops.width *= std::exchange(loops.height, 1);
    return loops;
}

/// The number of lanes for sums over input channels, if there are too few output channels to fill vectors; else 0.
int64_t lanes_of_dots(const Node& conv, const Targets& targets) {
    // Unless it is clearly faster, the simpler form is better.
    constexpr double least_gain = 1.1;
    const auto loops = loops_of_dots(conv);
    const auto best = loops ? choose_dots(*loops, loops->inner_products, targets.best) : std::nullopt;
    if (!best) return 0;
    const bool gain = std::ranges::all_of(targets.all, [&](const Target& target) {
        const auto dots = choose_dots_tile(*loops, best->lanes, target);
        return dots && dots->all_cycles * least_gain < conv_cycles(*loops, target);
    });
    return gain ? best->lanes : 0;
}

/// Weights and bias as PackedConv reads them in a form; the bias may be null.
struct DirectOperands {
    std::string form;
    Value *weights, *bias;
};

DirectOperands add_direct_packing(Graph& graph, const Node& conv, const Targets& targets) {
    const Target& target = targets.best;
    Value* weights = conv.inputs.at(1);
    const TensorType& type = weights->checked_type();
    const int64_t channels = *type.shape[0].constant(), group = conv.integer("group", 1);
    const ElementType computed = compute_element(type.element);
    const int lanes = target.is_gpu() ? 1 : target.lanes(computed);
    WeightForm form = weight_form(group, type.shape[1], channels / group, lanes);
    const ElementType element = conv.inputs[0]->checked_type().element;
    if (group > 1 && !is_float(element) && form != WeightForm::depthwise) form = WeightForm::grouped;
    int64_t steps =
        form == WeightForm::dense || form == WeightForm::grouped ? channels_at_once(element, type.shape[1], target) : 1;
    if (const int64_t dots = lanes_of_dots(conv, targets); dots > 1) form = WeightForm::dots, steps = dots;
    DirectOperands direct{std::string(form_name(form)), nullptr, conv.has_input(2) ? conv.inputs[2] : nullptr};
    direct.weights = add_packing(
        graph, &conv, "PackConvWeights", weights,
        {{"form", direct.form}, {"group", group}, {"block", block_of_group(form, channels / group)}, {"steps", steps}});
    const bool rounds_up = form == WeightForm::dense && channels % weight_block != 0;
    if (rounds_up && direct.bias && is_compile_time_constant(direct.bias))
        direct.bias = add_packing(graph, &conv, "PackConvBias", direct.bias, {});
    return direct;
}

void pack_direct(Graph& graph, Node& conv, const Targets& targets) {
    const TensorType type = conv.inputs.at(1)->checked_type();
    const DirectOperands direct = add_direct_packing(graph, conv, targets);
    graph.set_input(&conv, 1, direct.weights);
    if (direct.bias) graph.set_input(&conv, 2, direct.bias);
    read_packed(conv, "PackedConv", type);
    conv.attributes["kernel_shape"] = kernel_shape(type);
    conv.attributes["form"] = direct.form;
}

std::vector<int64_t> as_integers(const PerAxis& numbers) { return {numbers.begin(), numbers.end()}; }

Value* add_winograd_packing(Graph& graph, const Node& conv, const PerAxis& places) {
    Value* weights = conv.inputs.at(1);
    const std::vector<int64_t> kernel = kernel_shape(weights->checked_type());
    const std::vector<int64_t> strides = spatial_attribute(conv, "strides", kernel.size());
    std::map<std::string, Attribute> attributes = {
        {"places", as_integers(places)}, {"kernel_shape", kernel}, {"strides", strides}};
    if (weights->checked_type().element == ElementType::int16) attributes["steps"] = pair;
    return add_packing(graph, &conv, "PackWinogradWeights", weights, std::move(attributes));
}

/// Adds the operands of WinogradConv's alternative for small images.
void add_small_images(Graph& graph, Node& conv, const SmallImages& small, const Targets& targets) {
    DirectOperands operands{};
    if (small.places == PerAxis{1, 1}) {
        operands = add_direct_packing(graph, conv, targets);
        conv.attributes["form"] = operands.form;
    } else {
        operands.weights = add_winograd_packing(graph, conv, small.places);
        conv.attributes["small_places"] = as_integers(small.places);
    }
    conv.attributes["cycles"] =
        std::vector<int64_t>{std::llround(small.small_tile), std::llround(small.large_tile), std::llround(small.start)};
    conv.inputs.resize(WinogradConv::small_bias + 1);
    graph.set_input(&conv, WinogradConv::small_weights, operands.weights);
    if (operands.bias) graph.set_input(&conv, WinogradConv::small_bias, operands.bias);
}

void pack_winograd(Graph& graph, Node& conv, const PerAxis& places) {
    const TensorType type = conv.inputs.at(1)->checked_type();
    graph.set_input(&conv, 1, add_winograd_packing(graph, conv, places));
    read_packed(conv, "WinogradConv", type);
    conv.attributes["kernel_shape"] = kernel_shape(type);
    conv.attributes["places"] = as_integers(places);
}

/// The loops of a convolution whose weights may be transformed. If they aren't constants, that takes longer than
/// Winograd's algorithm saves.
std::optional<WinogradLoops> loops_of_tiles(const Node& conv, const Target& target) {
    const auto loops = is_compile_time_constant(conv.inputs.at(1)) ? winograd_loops(conv) : std::nullopt;
    if (!loops || loops->element != ElementType::int16) return loops;
    const auto data = centred(conv.inputs[0]), weights = centred(conv.inputs[1]);
    return data && weights ? integer_winograd(*data, *weights, *loops, target) : std::nullopt;
}

/// What PackWinogradWeights transforms, other than by places: the bytes, which views of a constant share, their shape
/// and the strides.
using TransformedWeights = std::tuple<const void*, std::vector<int64_t>, std::vector<int64_t>>;

TransformedWeights weights_of(const Node& conv) {
    const Value* weights = conv.inputs.at(1);
    const void* bytes = weights;
    if (weights->constant && weights->constant->data) bytes = weights->constant->data.get();
    std::vector<int64_t> shape = kernel_shape(weights->checked_type());
    std::vector<int64_t> strides = spatial_attribute(conv, "strides", shape.size());
    for (size_t axis = 0; axis < 2; ++axis) shape.push_back(*weights->checked_type().shape[axis].constant());
    return {bytes, std::move(shape), std::move(strides)};
}

/// The convolutions by Winograd's algorithm, with the places of their tiles.
std::map<const Node*, WinogradLoops> choose_tiles(const Graph& graph, const Target& target, const ConvPolicy& policy) {
    struct Sharing {
        std::vector<const Node*> convs;
        std::vector<WinogradLoops> loops;
    };
    std::map<TransformedWeights, Sharing> all;
    for (const auto& node : graph.nodes()) {
        if (!node->domain.empty() || node->op_type != "Conv" || !gains_from_packing(*node)) continue;
        const auto loops = loops_of_tiles(*node, target);
        if (!loops) continue;
        Sharing& sharing = all[weights_of(*node)];
        sharing.convs.push_back(node.get());
        sharing.loops.push_back(*loops);
    }
    std::map<const Node*, WinogradLoops> tiled;
    for (const auto& [weights, sharing] : all) {
        const auto places = choose_places(sharing.loops, policy, target);
        for (size_t i = 0; i < places.size(); ++i) {
            if (places[i]) tiled.emplace(sharing.convs[i], sharing.loops[i].with_places(*places[i]));
        }
    }
    return tiled;
}

/// `tiled` are the convolutions by Winograd's algorithm.
void pack_conv(Graph& graph, Node& conv, const std::map<const Node*, WinogradLoops>& tiled, const Targets& targets,
               const ConvPolicy& policy) {
    if (!gains_from_packing(conv)) return;
    const auto found = tiled.find(&conv);
    if (found == tiled.end()) return pack_direct(graph, conv, targets);
    const WinogradLoops& loops = found->second;
    const auto small = choose_for_small_images(loops, policy, targets.best);
    if (small) add_small_images(graph, conv, *small, targets);
    pack_winograd(graph, conv, places_of_tile(loops.kernel));
}

/// On a GPU, adjacent threads read adjacent columns of B, so a Gemm that transposes B gets it transposed in memory.
void lay_columns(Graph& graph, Node& product) {
    if (product.op_type != "Gemm" || product.integer("transB", 0) == 0) return;
    const std::vector<int64_t> order = {1, 0};
    graph.set_input(&product, 1,
                    add_node(graph, {"Transpose", 13, {product.inputs[1]}, {{"perm", order}}},
                             product.inputs[1]->name + "_columns", &product));
    product.attributes["transB"] = int64_t{0};
}

}  // namespace

bool are_worth_packing(const std::vector<Dim>& image) {
    constexpr int64_t many_pixels = 16;
    int64_t pixels = 1;
    for (size_t axis = 0; axis < image.size(); ++axis)
        pixels *= axis == 1 ? 1 : image[axis].constant().value_or(many_pixels);
    return pixels >= many_pixels;
}

void pack_weights(Graph& graph, const Target& target, const ConvPolicy& policy, std::span<const Target> all) {
    const Targets targets{target, all.empty() ? std::span(&target, 1) : all};
    const std::map<const Node*, WinogradLoops> tiled = choose_tiles(graph, target, policy);
    for (const auto& node : graph.nodes()) {
        if (node->op_type == "PackedMatMulNBits" && !target.is_gpu()) quantise_rows(graph, *node, target);
        if (!node->domain.empty()) continue;
        if (node->op_type == "Conv") pack_conv(graph, *node, tiled, targets, policy);
        const bool is_product = node->op_type == "MatMul" || node->op_type == "Gemm";
        if (is_product) target.is_gpu() ? lay_columns(graph, *node) : pack_matmul(graph, *node, target);
    }
}

}  // namespace onnx2halide
