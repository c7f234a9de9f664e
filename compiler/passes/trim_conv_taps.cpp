#include <algorithm>

#include "compiler/infer/add_node.h"
#include "compiler/passes/constants.h"
#include "compiler/passes/passes.h"
#include "ops/conv/conv_operands.h"

namespace onnx2halide {

namespace {

using Numbers = std::vector<int64_t>;

/// The taps along one axis that read an input element, not padding, for some output element.
struct Taps {
    int64_t first, count;
};

/// Returns all taps if sizes are not constant, or if the remaining pads would be negative.
Taps useful_taps(const WindowAxis& axis) {
    const Taps all{0, axis.kernel};
    const auto input = axis.input.constant(), output = axis.output.constant(), pad = axis.pad_begin.constant();
    if (!input || !output || !pad || !axis.pad_end.constant() || *input < 1 || *output < 1) return all;
    const auto first_place = [&](int64_t tap) { return tap * axis.dilation - *pad; };
    int64_t first = 0, end = axis.kernel;
    while (first < end && first_place(first) + (*output - 1) * axis.stride < 0) ++first;
    while (end > first && first_place(end - 1) >= *input) --end;
    const bool is_padded =
        *pad >= first * axis.dilation && *axis.pad_end.constant() >= (axis.kernel - end) * axis.dilation;
    return first < end && is_padded ? Taps{first, end - first} : all;
}

void trim(Graph& graph, Node& conv) {
    Numbers kernel, starts, ends, axes, pads, pads_behind;
    const Window window = window_of_conv(conv);
    bool is_trimmed = false;
    for (size_t i = 0; i < window.size(); ++i) {
        const Taps taps = useful_taps(window[i]);
        const int64_t behind = window[i].kernel - taps.first - taps.count;
        is_trimmed = is_trimmed || taps.count < window[i].kernel;
        kernel.push_back(taps.count);
        starts.push_back(taps.first);
        ends.push_back(taps.first + taps.count);
        axes.push_back(static_cast<int64_t>(i) + 2);
        pads.push_back(window[i].pad_begin.constant().value_or(0) - taps.first * window[i].dilation);
        pads_behind.push_back(window[i].pad_end.constant().value_or(0) - behind * window[i].dilation);
    }
    if (!is_trimmed) return;
    const NewNode slice{"Slice",
                        13,
                        {conv.inputs[1], add_numbers(graph, starts, "taps"), add_numbers(graph, ends, "taps"),
                         add_numbers(graph, axes, "taps")}};
    graph.set_input(&conv, 1, add_node(graph, slice, conv.inputs[1]->name + "_trimmed", &conv));
    pads.insert(pads.end(), pads_behind.begin(), pads_behind.end());
    conv.attributes["kernel_shape"] = kernel;
    conv.attributes["pads"] = pads;
    conv.attributes["auto_pad"] = std::string("NOTSET");
}

/// Whether taps of a node may be removed: its weights and the size of the image must be constant.
bool can_trim(const Node& node) {
    if (node.op_type != "Conv" || !node.domain.empty() || !is_compile_time_constant(node.inputs.at(1))) return false;
    const std::vector<Dim>& image = node.inputs[0]->checked_type().shape;
    return node.inputs[1]->checked_type().elements().constant() &&
           std::all_of(image.begin() + 2, image.end(), [](const Dim& extent) { return extent.constant(); });
}

}  // namespace

void trim_conv_taps(Graph& graph) {
    std::vector<Node*> found;
    for (const auto& node : graph.nodes()) {
        if (can_trim(*node)) found.push_back(node.get());
    }
    for (Node* conv : found) trim(graph, *conv);
}

}  // namespace onnx2halide
