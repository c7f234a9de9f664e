#include <algorithm>
#include <numeric>

#include "compiler/infer/add_node.h"
#include "compiler/passes/constants.h"
#include "compiler/passes/match.h"
#include "compiler/passes/pack.h"
#include "compiler/passes/passes.h"
#include "ops/conv/conv_transpose.h"
#include "ops/conv/winograd_places.h"
#include "ops/node_generator.h"
#include "ops/quantised/quantised.h"

namespace onnx2halide {

namespace {

using Numbers = std::vector<int64_t>;

/// Some phases of one spatial axis, computed by a convolution over the input's grid. Output element stride * q + phase
/// reads input element q + high - j through tap stride * j + phase - before, if there is such a tap.
struct GridAxis {
    int64_t stride;              // of the transposed convolution
    int64_t first, count;        // the phases
    int64_t window;              // the number of input elements that each phase reads
    int64_t before, after;       // the number of zero taps to add before the first and after the last
    int64_t pad_begin, pad_end;  // of the convolution over the grid
    int64_t surplus;             // the number of computed elements beyond the end of the output
};

std::optional<GridAxis> grid_axis(const ConvTranspose::Axis& axis, int64_t first, int64_t count) {
    const auto pad = axis.pad_begin.constant();
    if (!pad || *pad < 0 || axis.dilation != 1) return std::nullopt;
    const int64_t s = axis.stride;
    // The window contains at least the element at its own position.
    int64_t low = 0, high = 0;
    for (int64_t phase = first; phase < first + count; ++phase) {
        const int64_t first_tap = (phase + *pad) % s, newest = (phase + *pad) / s;
        const int64_t taps = first_tap < axis.kernel ? ceil_div(axis.kernel - first_tap, s) : 1;
        low = std::min(low, newest - taps + 1);
        high = std::max(high, newest);
    }
    const Dim positions = ceil_div(axis.output, s);
    const auto missing = (positions - axis.input).constant(), surplus = (positions * s - axis.output).constant();
    if (!missing || !surplus) return std::nullopt;
    high = std::max(high, -*missing);
    const int64_t window = high - low + 1, before = s * high - *pad;
    return GridAxis{s,    first,           count,   window, before, s * window - axis.kernel - before,
                    -low, *missing + high, *surplus};
}

using Grid = std::vector<GridAxis>;

/// The axes of a transposed convolution, if all can be computed in this way: the weights' shape, pads and
/// differences of sizes must be constant. With `phases`, one per axis, only for these.
std::optional<Grid> grid(const Node& node, const Numbers& phases = {}) {
    if (node.inputs.at(1)->checked_type().elements().constant().value_or(0) == 0) return std::nullopt;
    if (!is_compile_time_constant(node.inputs[1]) && !are_worth_packing(node.inputs[0]->checked_type().shape))
        return std::nullopt;
    Grid grid;
    for (const ConvTranspose::Axis& axis : ConvTranspose(node).axes()) {
        const auto found = phases.empty() ? grid_axis(axis, 0, axis.stride) : grid_axis(axis, phases[grid.size()], 1);
        if (!found) return std::nullopt;
        grid.push_back(*found);
    }
    return grid;
}

int64_t product_of(const Grid& grid, int64_t GridAxis::*member) {
    return std::accumulate(grid.begin(), grid.end(), int64_t{1},
                           [&](int64_t product, const GridAxis& axis) { return product * axis.*member; });
}

int64_t phases_of(const Grid& grid) { return product_of(grid, &GridAxis::count); }

/// The cycles that the convolution over a grid takes for one image on one core, with the algorithm that will be chosen.
double cycles(const Node& node, const Grid& grid, const Target& target, const ConvPolicy& policy) {
    const std::vector<Dim>&shape = node.inputs[0]->checked_type().shape,
          &weights = node.inputs[1]->checked_type().shape;
    const int64_t groups = node.integer("group", 1), inputs = *weights[0].constant() / groups,
                  channels = *weights[1].constant() * phases_of(grid);
    Window window;
    for (const GridAxis& axis : grid) {
        const Dim& input = shape[2 + window.size()];
        const Dim output = input + axis.pad_begin + axis.pad_end - (axis.window - 1);
        window.push_back({axis.window, 1, 1, axis.pad_begin, axis.pad_end, input, output});
    }
    // Weights that are computed at run time are not transformed.
    const bool suits_winograd = is_compile_time_constant(node.inputs[1]) && has_winograd(window, groups, channels);
    // Groups that are computed one by one count as images.
    const WinogradLoops loops(window, suits_winograd ? groups : 1, inputs, channels);
    const auto walk = suits_winograd ? choose_winograd(loops, policy, target) : std::nullopt;
    const double one = walk ? walk->cycles : direct_cycles(loops, policy, target);
    return one * static_cast<double>(groups / loops.groups);
}

/// A grid for each phase.
std::vector<Grid> grids_of_phases(const Node& node, const Grid& whole) {
    std::vector<Grid> parts;
    Numbers phases(whole.size(), 0);
    for (bool is_done = false; !is_done;) {
        parts.push_back(*grid(node, phases));
        is_done = true;
        for (size_t i = phases.size(); i-- > 0 && is_done;) {
            phases[i] = (phases[i] + 1) % whole[i].stride;
            is_done = phases[i] == 0;
        }
    }
    return parts;
}

/// The convolutions that compute a node: one for all phases or, if there are few and it is faster, one for each.
std::vector<Grid> grids(const Node& node, const Target& target, const ConvPolicy& policy) {
    const auto whole = grid(node);
    if (!whole) return {};
    constexpr int64_t most_parts = 16;
    // To start one more kernel; at run time several others make the weights of each.
    const double part_cycles = is_compile_time_constant(node.inputs[1]) ? 2000 : 10000;
    if (phases_of(*whole) > most_parts) return {*whole};
    std::vector<Grid> parts = grids_of_phases(node, *whole);
    double all = 0;
    for (const Grid& part : parts) all += cycles(node, part, target, policy) + part_cycles;
    if (all < cycles(node, *whole, target, policy)) return parts;
    return {*whole};
}

/// The DequantizeLinear that makes a node's weights, if these have a zero point of 0, so that padding them with 0 is
/// right, and one scale in all or per channel; else null.
const Node* dequantisation(const Node& node) {
    const Node* weights = node.inputs.at(1)->producer;
    if (!weights || !is_operator(*weights, "DequantizeLinear") || weights->integer("block_size", 0) != 0)
        return nullptr;
    const bool has_zero_point = weights->has_input(2) && !is_zero(weights->inputs[2]);
    const bool is_by_channel = weights->inputs[1]->checked_type().elements().is(1) || weights->integer("axis", 1) == 1;
    return !has_zero_point && is_by_channel && node.integer("group", 1) == 1 ? weights : nullptr;
}

/// Replaces one ConvTranspose.
class Replacement {
public:
    Replacement(Graph& graph, Node& node, std::vector<Grid> grids)
        : graph_(graph), node_(node), grids_(std::move(grids)), group_(node.integer("group", 1)) {
        const TensorType& weights = node.inputs[1]->checked_type();
        inputs_ = *weights.shape[0].constant() / group_;
        channels_ = *weights.shape[1].constant();
    }

    void insert() {
        std::vector<Value*> parts;
        for (const Grid& grid : grids_) parts.push_back(convolution(grid));
        Numbers strides, surplus;
        for (const GridAxis& axis : grids_[0]) {
            strides.push_back(axis.stride);
            surplus.push_back(axis.surplus);
        }
        Node whole = node_;
        whole.become("PhasesToSpace");
        // The channels of one convolution for all phases are ordered by group; those of several are ordered by phase.
        whole.attributes = {{"strides", strides}, {"surplus", surplus}, {"group", parts.size() == 1 ? group_ : 1}};
        whole.inputs = {parts.size() == 1 ? parts[0] : add("Concat", 13, parts, {{"axis", int64_t{1}}})};
        graph_.add(std::move(whole), &node_);
        graph_.remove(&node_);
    }

private:
    Value* convolution(const Grid& grid) {
        std::vector<Value*> inputs = {node_.inputs[0], weights(grid)};
        if (node_.has_input(2)) inputs.push_back(by_phase(node_.inputs[2], grid));
        Numbers window, pads;
        for (const GridAxis& axis : grid) {
            window.push_back(axis.window);
            pads.push_back(axis.pad_begin);
        }
        for (const GridAxis& axis : grid) pads.push_back(axis.pad_end);
        const Numbers ones(grid.size(), 1);
        return add("Conv", 11, std::move(inputs),
                   {{"group", group_},
                    {"kernel_shape", window},
                    {"pads", pads},
                    {"strides", ones},
                    {"dilations", ones},
                    {"auto_pad", std::string("NOTSET")}});
    }

    Value* add(const std::string& type, int version, std::vector<Value*> inputs,
               std::map<std::string, Attribute> attributes = {}) {
        return add_node(graph_, {type, version, std::move(inputs), std::move(attributes)}, node_.name + "_" + type,
                        &node_);
    }

    Value* reshaped(Value* value, const Numbers& shape) {
        return add("Reshape", 5, {value, add_numbers(graph_, shape, node_.name + "_shape")});
    }

    /// Rearranges the weights: from (group · inputs) × channels × kernel…, with the taps of each axis reversed and
    /// split into window × stride, to (group · phases · channels) × inputs × window….
    Value* weights(const Grid& grid) {
        const auto rank = static_cast<int64_t>(grid.size());
        Numbers pads(2 * (rank + 2), 0), split = {group_, inputs_, channels_}, order = {0}, windows;
        Numbers axes, starts, ends, steps, shape = {group_ * phases_of(grid) * channels_, inputs_};
        for (int64_t i = 0; i < rank; ++i) {
            const GridAxis& axis = grid[i];
            pads[2 + i] = axis.before;
            pads[rank + 4 + i] = axis.after;
            split.insert(split.end(), {axis.window, axis.stride});
            axes.insert(axes.end(), {3 + 2 * i, 4 + 2 * i});
            starts.insert(starts.end(), {-1, axis.first});
            ends.insert(ends.end(), {INT64_MIN, axis.first + axis.count});
            steps.insert(steps.end(), {-1, 1});
            order.push_back(4 + 2 * i);
            windows.push_back(3 + 2 * i);
            shape.push_back(axis.window);
        }
        order.insert(order.end(), {2, 1});
        order.insert(order.end(), windows.begin(), windows.end());
        const std::string& name = node_.name;
        const Node* integers = dequantisation(node_);
        Value* value = integers ? integers->inputs[0] : node_.inputs[1];
        value = add("Pad", 13, {value, add_numbers(graph_, pads, name + "_pads")});
        value = reshaped(value, split);
        value = add("Slice", 13,
                    {value, add_numbers(graph_, starts, name + "_starts"), add_numbers(graph_, ends, name + "_ends"),
                     add_numbers(graph_, axes, name + "_axes"), add_numbers(graph_, steps, name + "_steps")});
        value = reshaped(add("Transpose", 13, {value}, {{"perm", order}}), shape);
        if (!integers) return value;
        Value* scale = integers->inputs[1];
        if (!scale->checked_type().elements().is(1)) scale = by_phase(scale, grid);
        return add("DequantizeLinear", 13, {value, scale}, {{"axis", int64_t{0}}});
    }

    /// Repeats a vector with an element per output channel so that it has one per channel of the convolution.
    Value* by_phase(Value* channels, const Grid& grid) {
        Value* value = reshaped(channels, {group_, 1, channels_});
        value = add("Expand", 13,
                    {value, add_numbers(graph_, {group_, phases_of(grid), channels_}, node_.name + "_shape")});
        return reshaped(value, {-1});
    }

    Graph& graph_;
    Node& node_;
    std::vector<Grid> grids_;
    int64_t group_, inputs_, channels_;  // channels of a group
};

/// Splits the nodes that fulfil a condition.
template <typename Condition>
void split(Graph& graph, const Target& target, const ConvPolicy& policy, Condition is_wanted) {
    std::vector<std::pair<Node*, std::vector<Grid>>> found;
    for (const auto& node : graph.nodes()) {
        if (!is_operator(*node, "ConvTranspose") || !is_wanted(*node)) continue;
        if (auto parts = grids(*node, target, policy); !parts.empty()) found.emplace_back(node.get(), std::move(parts));
    }
    for (auto& [node, parts] : found) Replacement(graph, *node, std::move(parts)).insert();
}

}  // namespace

void split_quantised_phases(Graph& graph, const Target& target, const ConvPolicy& policy) {
    split(graph, target, policy, dequantisation);
}

void split_phases(Graph& graph, const Target& target, const ConvPolicy& policy) {
    split(graph, target, policy, [](const Node&) { return true; });
}

}  // namespace onnx2halide
