#include <algorithm>
#include <cmath>

#include "compiler/passes/passes.h"

namespace onnx2halide {

namespace {

/// Elements before each spatial axis, then those after each, as in the attribute `pads` of Conv and the pools.
using SpatialPads = std::vector<int64_t>;

/// The padding that a constant-mode Pad adds to spatial axes.
struct PadEffect {
    SpatialPads pads;
    double filling = 0;
};

/// The integers of an input, or nullopt if inference does not know all of them as numbers.
std::optional<std::vector<int64_t>> known_numbers(const Value* value) {
    if (!value || !value->known) return std::nullopt;
    std::vector<int64_t> numbers;
    for (const Dim& dim : value->known->integers) {
        if (!dim.constant()) return std::nullopt;
        numbers.push_back(*dim.constant());
    }
    return numbers;
}

/// The element that a Pad fills with: an attribute before opset 11, an input since then, 0 by default.
std::optional<double> filling(const Node& pad) {
    if (pad.version < 11) return pad.real("value", 0.0f);
    if (!pad.has_input(2)) return 0;
    // Inference does not track -inf, which the input of a MaxPool is padded with.
    const auto& constant = pad.inputs[2]->constant;
    if (constant && is_float(constant->element) && constant->elements() == 1) return constant->reals()[0];
    const auto& known = pad.inputs[2]->known;
    if (!known || known->reals.size() != 1) return std::nullopt;
    return known->reals[0];
}

std::optional<PadEffect> effect(const Node& pad) {
    if (pad.op_type != "Pad" || !pad.domain.empty() || pad.string("mode", "constant") != "constant" || pad.has_input(3))
        return std::nullopt;
    const auto pads = pad.version < 11 ? std::optional(pad.integers(pad.version < 2 ? "paddings" : "pads"))
                                       : known_numbers(pad.inputs[1]);
    const auto fill = filling(pad);
    const size_t rank = pad.inputs[0]->checked_type().rank();
    if (!pads || !fill || rank < 3 || pads->size() != 2 * rank) return std::nullopt;
    if (std::any_of(pads->begin(), pads->end(), [](int64_t count) { return count < 0; })) return std::nullopt;
    PadEffect result{{}, *fill};
    for (const size_t side : {size_t{0}, rank}) {
        if ((*pads)[side] != 0 || (*pads)[side + 1] != 0) return std::nullopt;
        result.pads.insert(result.pads.end(), pads->begin() + side + 2, pads->begin() + side + rank);
    }
    return result;
}

/// The pads of a node if those of a Pad before it are added.
SpatialPads with_pads(const Node& node, const SpatialPads& added) {
    SpatialPads pads = node.integers("pads", SpatialPads(added.size(), 0));
    for (size_t i = 0; i < added.size(); ++i) pads[i] += added[i];
    return pads;
}

/// Whether every window of a pool has elements besides padding. Dilated windows may skip them.
bool has_elements(const Node& pool, const SpatialPads& pads) {
    const SpatialPads kernel = pool.integers("kernel_shape"),
                      dilations = pool.integers("dilations", SpatialPads(kernel.size(), 1));
    for (size_t i = 0; i < pads.size(); ++i) {
        const size_t axis = i % kernel.size();
        if (pads[i] > 0 && (dilations[axis] != 1 || pads[i] >= kernel[axis])) return false;
    }
    return true;
}

/// Whether a node that reads a padded input can pad by itself: it must fill with the same element, and count the
/// padding in averages. A pool with ceil_mode cannot, as the last window must not start in its own padding; nor can a
/// MaxPool with indices, which are positions in its input, or with windows of padding alone.
bool can_pad(const Node& node, double fill, const SpatialPads& added) {
    if (!node.domain.empty() || node.string("auto_pad", "NOTSET") != "NOTSET") return false;
    if (node.op_type == "Conv") return fill == 0;
    if (node.integer("ceil_mode", 0) != 0) return false;
    if (node.op_type == "MaxPool")
        return fill == -INFINITY && !node.has_output(1) && has_elements(node, with_pads(node, added));
    return node.op_type == "AveragePool" && fill == 0 && node.integer("count_include_pad", 0) == 1;
}

void fuse(Graph& graph, Node& pad, Node& consumer, const SpatialPads& added) {
    consumer.attributes["pads"] = with_pads(consumer, added);
    graph.set_input(&consumer, 0, pad.inputs[0]);
}

}  // namespace

void fuse_pad(Graph& graph) {
    for (const auto& node : graph.nodes()) {
        Node* producer = node->inputs.empty() || !node->inputs[0] ? nullptr : node->inputs[0]->producer;
        if (!producer) continue;
        const auto padding = effect(*producer);
        if (padding && can_pad(*node, padding->filling, padding->pads)) fuse(graph, *producer, *node, padding->pads);
    }
}

}  // namespace onnx2halide
