#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "compiler/infer/add_node.h"
#include "compiler/passes/constants.h"
#include "compiler/passes/match.h"
#include "compiler/passes/passes.h"
#include "ops/conv/conv_operands.h"
#include "ops/pool/pool.h"
#include "ops/schedule/cycles.h"

namespace onnx2halide {

namespace {

using Numbers = std::vector<int64_t>;

/// Output channels from which on the products of an input element take so much longer than to copy it that the copy
/// pays.
constexpr int64_t least_channels = 128;
/// Pixels whose distance is a multiple of this map to few sets of the nearest cache.
constexpr int64_t crowded_bytes = page_bytes / 2;

bool is_single_tap(const WindowAxis& axis) {
    return axis.kernel == 1 && axis.pad_begin.is(0) && axis.pad_end.is(0) && axis.input.constant();
}

/// The strides of a convolution of single pixels that are far apart; empty if a node is no such convolution.
Numbers crowded_strides(const Node& node) {
    if (node.op_type != "Conv" || !node.domain.empty() || node.integer("group", 1) != 1) return {};
    const TensorType &input = node.inputs[0]->checked_type(), &weights = node.inputs.at(1)->checked_type();
    const auto inputs = input.shape.at(1).constant(), outputs = weights.shape.at(0).constant();
    if (input.element != ElementType::float32 || !inputs || !outputs || *outputs < least_channels) return {};
    const Window window = window_of_conv(node);
    if (!std::all_of(window.begin(), window.end(), is_single_tap) || window.back().stride == 1) return {};
    if (*inputs * info(input.element).bytes * window.back().stride % crowded_bytes != 0) return {};
    Numbers strides;
    for (const WindowAxis& axis : window) strides.push_back(axis.stride);
    return strides;
}

/// The strides of the pixels that are all that is read of an image: by a convolution, if it pays to copy them, or by a
/// pool that does nothing else. Empty for other nodes.
Numbers sampling_strides(const Node& node, const Target& target) {
    const auto generator = make_generator(node);
    if (const auto* pool = dynamic_cast<const WindowPool*>(generator.get()))
        return pool->copied_strides().value_or(Numbers());
    return target.is_gpu() ? Numbers() : crowded_strides(node);
}

/// The pixels of an image that windows with these strides start at.
Value* sampled(Graph& graph, Value* image, const Numbers& strides, const Node& before) {
    Numbers starts(strides.size(), 0), ends(strides.size(), std::numeric_limits<int64_t>::max()), axes(strides.size());
    std::iota(axes.begin(), axes.end(), 2);
    const NewNode slice{"Slice",
                        13,
                        {image, add_numbers(graph, starts, "pixels"), add_numbers(graph, ends, "pixels"),
                         add_numbers(graph, axes, "pixels"), add_numbers(graph, strides, "pixels")}};
    return add_node(graph, slice, image->name + "_sampled", &before);
}

}  // namespace

void sample_inputs(Graph& graph, const Target& target) {
    std::vector<std::pair<Node*, Numbers>> found;
    for (const auto& node : graph.nodes()) {
        if (Numbers strides = sampling_strides(*node, target); !strides.empty())
            found.emplace_back(node.get(), strides);
    }
    std::map<std::pair<Value*, Numbers>, Value*> samples;
    for (const auto& [node, strides] : found) {
        Value*& sample = samples[{node->inputs[0], strides}];
        if (!sample) sample = sampled(graph, node->inputs[0], strides, *node);
        if (!is_operator(*node, "Conv")) {
            graph.replace_uses(node->outputs[0], sample);
            graph.remove(node);
            continue;
        }
        graph.set_input(node, 0, sample);
        node->attributes["strides"] = Numbers(strides.size(), 1);
        node->attributes["auto_pad"] = std::string("NOTSET");
    }
}

}  // namespace onnx2halide
