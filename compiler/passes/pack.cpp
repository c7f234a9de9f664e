#include "compiler/passes/pack.h"

#include <vector>

#include "compiler/passes/constants.h"
#include "compiler/passes/pack_matmul.h"
#include "ops/conv_weights.h"
#include "ops/conv_winograd.h"
#include "ops/node_generator.h"
#include "ops/product.h"

namespace onnx2halide {

namespace {

/// Adds a node of our own domain with one output before `before`, and gives the output its type.
Value* add_packing(Graph& graph, const Node* before, const std::string& op_type, Value* input,
                   std::map<std::string, Attribute> attributes) {
    Value* packed = graph.new_value(input->name + "_packed");
    Node node{packed->name, "onnx2halide", op_type, 1, before->index, std::move(attributes), {input}, {packed}};
    const Node* added = graph.add(std::move(node), before);
    packed->type = make_generator(*added)->infer().at(0);
    return packed;
}

std::vector<int64_t> kernel_shape(const TensorType& weights) {
    std::vector<int64_t> kernel;
    for (size_t i = 2; i < weights.rank(); ++i) kernel.push_back(weights.shape[i].constant().value());
    return kernel;
}

/// Whether a convolution's weights can be packed, and are so once, by the fold program, or used for enough pixels.
bool gains_from_packing(const Node& conv) {
    constexpr int64_t many_pixels = 16;
    const Value* weights = conv.inputs.at(1);
    if (weights->checked_type().elements().constant().value_or(0) == 0) return false;
    if (is_compile_time_constant(weights)) return !is_compile_time_constant(conv.inputs[0]);
    const std::vector<Dim>& shape = conv.outputs.at(0)->checked_type().shape;
    int64_t pixels = 1;
    for (size_t axis = 0; axis < shape.size(); ++axis)
        pixels *= axis == 1 ? 1 : shape[axis].constant().value_or(many_pixels);
    return pixels >= many_pixels;
}

/// `weights` is the type of those that are not packed yet.
void become(Node& conv, const std::string& op_type, const TensorType& weights) {
    conv.origin = conv.label();
    conv.domain = "onnx2halide";
    conv.op_type = op_type;
    conv.version = 1;
    conv.attributes["output_channels"] = *weights.shape[0].constant();
    conv.attributes["inputs_per_group"] = *weights.shape[1].constant();
}

void pack_winograd(Graph& graph, Node& conv, const PerAxis& places_of_tile) {
    Value* weights = conv.inputs.at(1);
    const TensorType& type = weights->checked_type();
    const std::vector<int64_t> kernel = kernel_shape(type), places(places_of_tile.begin(), places_of_tile.end());
    const std::vector<int64_t> strides = spatial_attribute(conv, "strides", kernel.size());
    Value* packed = add_packing(graph, &conv, "PackWinogradWeights", weights,
                                {{"places", places}, {"kernel_shape", kernel}, {"strides", strides}});
    graph.set_input(&conv, 1, packed);
    become(conv, "WinogradConv", type);
    conv.attributes["kernel_shape"] = kernel;
    conv.attributes["places"] = places;
}

void pack_direct(Graph& graph, Node& conv, const Target& target) {
    Value* weights = conv.inputs.at(1);
    const TensorType& type = weights->checked_type();
    const int64_t channels = *type.shape[0].constant(), group = conv.integer("group", 1);
    const ElementType computed = is_narrow_float(type.element) ? ElementType::float32 : type.element;
    const int lanes = target.is_gpu() ? 1 : target.lanes(computed);
    const WeightForm form = weight_form(group, type.shape[1], channels / group, lanes);
    const std::string form_name(name(form));
    const int64_t steps =
        form == WeightForm::dense ? channels_at_once(conv.inputs[0]->checked_type().element, type.shape[1], target) : 1;
    Value* packed = add_packing(
        graph, &conv, "PackConvWeights", weights,
        {{"form", form_name}, {"group", group}, {"block", block_of_group(form, channels / group)}, {"steps", steps}});
    graph.set_input(&conv, 1, packed);
    const bool rounds_up = form == WeightForm::dense && channels % weight_block != 0;
    if (rounds_up && conv.has_input(2) && is_compile_time_constant(conv.inputs[2])) {
        graph.set_input(&conv, 2, add_packing(graph, &conv, "PackConvBias", conv.inputs[2], {}));
    }
    become(conv, "PackedConv", type);
    conv.attributes["kernel_shape"] = kernel_shape(type);
    conv.attributes["form"] = form_name;
}

void pack_conv(Graph& graph, Node& conv, const Target& target, const ConvPolicy& policy) {
    if (!gains_from_packing(conv)) return;
    // Transforming weights takes longer than Winograd's algorithm saves.
    const auto loops = is_compile_time_constant(conv.inputs[1]) ? winograd_loops(conv) : std::nullopt;
    const auto walk = loops ? choose_winograd(*loops, policy, target) : std::nullopt;
    walk ? pack_winograd(graph, conv, walk->places) : pack_direct(graph, conv, target);
}

}  // namespace

void pack_weights(Graph& graph, const Target& target, const ConvPolicy& policy) {
    for (const auto& node : graph.nodes()) {
        if (!node->domain.empty()) continue;
        if (node->op_type == "Conv") pack_conv(graph, *node, target, policy);
        const bool is_product = node->op_type == "MatMul" || node->op_type == "Gemm";
        // On a GPU neighbouring threads read neighbouring columns of B as it is.
        if (is_product && !target.is_gpu()) pack_matmul(graph, *node, target);
    }
}

}  // namespace onnx2halide
