#include "compiler/driver/transform.h"

#include <algorithm>
#include <iterator>

#include "compiler/infer/infer.h"
#include "compiler/passes/pack.h"
#include "compiler/passes/passes.h"

namespace onnx2halide {

namespace {

/// Makes every node's results outputs under their own names, in the graph's order, so that each can be compared.
void expose_all_values(Graph& graph) {
    std::erase_if(graph.outputs, [](const Value* output) { return output->producer != nullptr; });
    for (const auto& node : graph.nodes()) {
        std::copy_if(node->outputs.begin(), node->outputs.end(), std::back_inserter(graph.outputs),
                     [](const Value* output) { return output != nullptr; });
    }
    graph.output_names.clear();
    for (const Value* output : graph.outputs) graph.output_names.push_back(output->name);
}

/// The nodes of each kernel.
std::vector<std::vector<const Node*>> kernels_of(const Graph& graph) {
    std::vector<std::vector<const Node*>> kernels;
    for (const Group& group : cut_groups(graph, Grouping::fused)) kernels.push_back(group.nodes);
    return kernels;
}

/// Bytes of the weights of a graph and of the graphs inside it.
int64_t weight_bytes(Graph& graph) {
    int64_t elements = 0;
    for_each_graph(graph, [&](const Graph& each) { elements += each.constant_elements(); });
    return elements * static_cast<int64_t>(sizeof(float));
}

/// The target that decides how convolutions and products compute. Several targets share the packed weights, so the best
/// one decides; but weights are packed in quads of bytes only if every target multiplies those, as the others would
/// have to take them apart.
Target deciding(const std::vector<Target>& targets) {
    Target best = targets.front();
    for (const Target& target : targets) best.quad_rate = std::min(best.quad_rate, target.quad_rate);
    return best;
}

}  // namespace

Grouping grouping_of(const CompileOptions& options) {
    if (options.pipeline == Pipeline::whole) return Grouping::whole;
    return options.is_naive() ? Grouping::nodes : Grouping::fused;
}

void transform(Graph& graph, const std::vector<Target>& targets, const CompileOptions& options) {
    const Target target = deciding(targets);
    const bool is_whole = options.pipeline == Pipeline::whole;
    if (options.all_values) expose_all_values(graph);
    for_each_graph(graph, expand_composites);
    for_each_graph(graph, expand_trees);
    for_each_graph(graph, expand_encoders);
    sink_constants(graph);
    const ConvPolicy conv_policy{options.convolution, read_rate(weight_bytes(graph))};
    for_each_graph(graph, [&](Graph& each) {
        if (!options.is_naive()) skip_repeats(each);
        prune(each);
        merge_duplicates(each);
        if (!options.is_naive()) {
            fuse_pad(each);
            move_quantisation(each);
            split_quantised_phases(each, target, conv_policy);
            use_integer_products(each, target, conv_policy);
            trim_conv_taps(each);
            fuse_channel_scales(each);
            fuse_standardisation(each);
            fuse_activations(each);
            split_phases(each, target, conv_policy);
            use_byte_products(each, target);
            pack_weights(each, target, conv_policy);
            scale_products(each);
            if (!target.is_gpu()) fuse_attention(each);
            assign_layouts(each, target);
            reduce_planes(each);
            if (!is_whole) sink_views(each);
            if (!is_whole) merge_axes(each, kernels_of(each), target);
        }
        prune(each);
    });
}

void transform_folded(Graph& graph, const std::vector<Target>& targets, const CompileOptions& options) {
    const bool is_whole = options.pipeline == Pipeline::whole;
    pack_ports(graph);
    copy_outputs(graph, is_whole);
    allow_empty(graph);
    // On a device each tensor has its own handle, so none can be a part of another.
    if (!options.is_naive() && !is_whole && !targets.front().is_gpu()) place_parts(graph, kernels_of);
}

}  // namespace onnx2halide
