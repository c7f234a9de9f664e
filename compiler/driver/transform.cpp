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
std::vector<std::vector<const Node*>> kernels_of(const Graph& graph, const Target& target) {
    std::vector<std::vector<const Node*>> kernels;
    for (const Group& group : cut_groups(graph, Grouping::fused, target)) kernels.push_back(group.nodes);
    return kernels;
}

/// Bytes of the weights of a graph and of the graphs inside it.
int64_t weight_bytes(Graph& graph) { return constant_elements(graph) * static_cast<int64_t>(sizeof(float)); }

/// The target that decides how convolutions and products compute. Several targets share the packed weights, so the best
/// one decides; but weights are packed in quads of bytes only if every target multiplies those, as the others would
/// have to take them apart.
Target deciding(const std::vector<Target>& targets) {
    Target best = targets.front();
    for (const Target& target : targets) best.quad_rate = std::min(best.quad_rate, target.quad_rate);
    return best;
}

/// The passes that make a graph faster; each finds what those before it have brought together.
void rewrite(Graph& graph, const std::vector<Target>& targets, const ConvPolicy& policy, bool is_whole) {
    const Target target = deciding(targets);
    // Pads belong to convolutions before anything asks what these read.
    fuse_pad(graph);

    // Quantised nodes: those that dequantise reach the products, and transposed convolutions become convolutions, so
    // that use_integer_products finds both. What stays is float from here on.
    move_quantisation(graph);
    split_quantised_phases(graph, target, policy);
    use_integer_products(graph, target, policy);

    // Fewer nodes. Scales that are folded into weights no longer separate a convolution from its activation; the other
    // passes recognise nodes as exporters write them, which no later pass preserves.
    trim_conv_taps(graph);
    rewrite_group_normalisation(graph, target);
    fuse_channel_scales(graph);
    // Scales that follow a sum of branches belong to the convolution that replaces it, which may be a branch itself.
    while (merge_parallel_convs(graph)) fuse_channel_scales(graph);
    fuse_standardisation(graph);
    fuse_activations(graph);
    // Scales that divide other constants change the numbers by which these know activations.
    move_quantisation_scales(graph);
    // Over nodes that these have fused.
    hoist_picks(graph);
    find_global_pools(graph);
    average_inputs(graph);

    // Once weights have their final numbers: forms in which they are multiplied fastest. Phases are convolutions, whose
    // weights are packed; bytes are multiplied as they are, so this is decided before they are packed, too.
    split_phases(graph, target, policy);
    sample_inputs(graph, target);
    use_byte_products(graph, target, policy);
    use_float_products(graph, target);
    // Shared weights, from which the passes above may have made several nodes, are packed once.
    merge_duplicates(graph);
    pack_weights(graph, target, policy, targets);
    merge_duplicates(graph);

    // A factor of a product's operand would separate the products of attention, and hide what they repeat.
    scale_products(graph);
    share_heads(graph);
    if (!target.is_gpu()) fuse_attention(graph);

    // Layouts need all kernels' nodes. But for those around broadcast products, views exist only from then on.
    assign_layouts(graph, target);
    reduce_global_pools(graph);
    if (is_whole) return;
    sink_views(graph);
    merge_axes(graph, kernels_of(graph, target), target);
}

}  // namespace

Grouping grouping_of(const CompileOptions& options) {
    if (options.pipeline == Pipeline::whole) return Grouping::whole;
    return options.is_naive() ? Grouping::nodes : Grouping::fused;
}

void transform(Graph& graph, const std::vector<Target>& targets, const CompileOptions& options) {
    if (options.all_values) expose_all_values(graph);
    // Definitions first: all passes see the operators that have kernels.
    for_each_graph(graph, expand_composites);
    for_each_graph(graph, expand_trees);
    for_each_graph(graph, expand_encoders);
    sink_constants(graph);
    const ConvPolicy conv_policy{options.convolution, read_rate(weight_bytes(graph), deciding(targets))};
    for_each_graph(graph, [&](Graph& each) {
        // A repeated operand that is read in its own shape leaves less to compute, and more nodes alike.
        if (!options.is_naive()) {
            skip_repeats(each);
            broadcast_repeats(each);
        }
        prune(each);
        // Before duplicates are merged, as the layers of a DenseNet join what those before them have joined.
        split_concats(each);
        merge_duplicates(each);
        if (!options.is_naive()) rewrite(each, targets, conv_policy, options.pipeline == Pipeline::whole);
        prune(each);
    });
}

void transform_folded(Graph& graph, const std::vector<Target>& targets, const CompileOptions& options) {
    const bool is_whole = options.pipeline == Pipeline::whole;
    // Exporters compute the indices of a slice, whose elements are constants only now.
    if (!options.is_naive()) for_each_graph(graph, replace_boxes);
    // What only indices or replaced data needed would keep other nodes from being fused.
    for_each_graph(graph, prune);
    for_each_graph(graph, flush_subnormals);
    pack_ports(graph);
    copy_outputs(graph, is_whole);
    allow_empty(graph);
    // On a device each tensor has its own handle, so none can be a part of another.
    if (!options.is_naive() && !is_whole && !targets.front().is_gpu())
        place_parts(graph, [&](const Graph& each) { return kernels_of(each, deciding(targets)); });
}

}  // namespace onnx2halide
