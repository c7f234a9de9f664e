#include <algorithm>
#include <numeric>

#include "compiler/passes/constants.h"
#include "compiler/passes/new_node.h"
#include "compiler/passes/passes.h"
#include "ops/conv_transpose.h"
#include "ops/node_generator.h"

namespace onnx2halide {

namespace {

using Numbers = std::vector<int64_t>;

/// One spatial axis as a convolution over the input's grid. Output element stride * q + phase reads input elements
/// q + low … q + high, each phase through taps of its own: element q + high - j through tap
/// stride * j + phase - (stride * high - pad).
struct GridAxis {
    int64_t stride, kernel;      // of the transposed convolution
    int64_t window;              // input elements that the phases read in all
    int64_t before;              // taps that are not there before the first one
    int64_t pad_begin, pad_end;  // of the convolution over the grid
    int64_t surplus;             // elements of the last phases that the output does not have
};

std::optional<GridAxis> grid_axis(const ConvTranspose::Axis& axis) {
    const auto pad = axis.pad_begin.constant();
    if (!pad || *pad < 0 || axis.dilation != 1) return std::nullopt;
    const int64_t s = axis.stride;
    int64_t low = 0, high = 0;
    for (int64_t phase = 0; phase < s; ++phase) {
        const int64_t first_tap = (phase + *pad) % s, newest = (phase + *pad) / s;
        const int64_t taps = first_tap < axis.kernel ? ceil_div(axis.kernel - first_tap, s) : 1;
        low = phase == 0 ? newest - taps + 1 : std::min(low, newest - taps + 1);
        high = std::max(high, newest);
    }
    const Dim positions = ceil_div(axis.output, s);
    const auto pad_end = (positions - axis.input + high).constant(), surplus = (positions * s - axis.output).constant();
    if (!pad_end || !surplus || low > 0 || *pad_end < 0) return std::nullopt;
    return GridAxis{s, axis.kernel, high - low + 1, s * high - *pad, -low, *pad_end, *surplus};
}

/// The axes of a transposed convolution that can be computed so: with constant weights and distances that are known.
std::optional<std::vector<GridAxis>> grid(const Node& node) {
    if (node.op_type != "ConvTranspose" || !node.domain.empty() || !is_compile_time_constant(node.inputs.at(1)))
        return std::nullopt;
    if (!node.inputs[1]->checked_type().elements().constant()) return std::nullopt;
    std::vector<GridAxis> axes;
    for (const ConvTranspose::Axis& axis : ConvTranspose(node).axes()) {
        const auto found = grid_axis(axis);
        if (!found) return std::nullopt;
        axes.push_back(*found);
    }
    return axes;
}

/// Replaces one ConvTranspose.
class Replacement {
public:
    Replacement(Graph& graph, Node& node, std::vector<GridAxis> axes)
        : graph_(graph), node_(node), axes_(std::move(axes)), group_(node.integer("group", 1)) {
        const TensorType& weights = node.inputs[1]->checked_type();
        inputs_ = *weights.shape[0].constant() / group_;
        channels_ = *weights.shape[1].constant();
    }

    void insert() {
        std::vector<Value*> inputs = {node_.inputs[0], weights()};
        if (node_.has_input(2)) inputs.push_back(bias());
        Numbers window, pads, strides, surplus;
        for (const GridAxis& axis : axes_) {
            window.push_back(axis.window);
            pads.push_back(axis.pad_begin);
            strides.push_back(axis.stride);
            surplus.push_back(axis.surplus);
        }
        for (const GridAxis& axis : axes_) pads.push_back(axis.pad_end);
        const Numbers ones(axes_.size(), 1);
        Value* phases = add("Conv", 11, std::move(inputs),
                            {{"group", group_},
                             {"kernel_shape", window},
                             {"pads", pads},
                             {"strides", ones},
                             {"dilations", ones},
                             {"auto_pad", std::string("NOTSET")}});
        Node whole = node_;
        whole.domain = "onnx2halide";
        whole.op_type = "PhasesToSpace";
        whole.version = 1;
        whole.attributes = {{"strides", strides}, {"surplus", surplus}, {"group", group_}};
        whole.inputs = {phases};
        graph_.add(std::move(whole), &node_);
        graph_.remove(&node_);
    }

private:
    Value* add(const std::string& type, int version, std::vector<Value*> inputs,
               std::map<std::string, Attribute> attributes = {}) {
        return add_node(graph_, {type, version, std::move(inputs), std::move(attributes)}, node_.name + "_" + type,
                        &node_);
    }

    Value* numbers(const Numbers& elements, const std::string& hint) {
        return add_constant(graph_,
                            make_constant(ElementType::int64, {static_cast<int64_t>(elements.size())}, elements), hint);
    }

    Value* reshaped(Value* value, const Numbers& shape) {
        return add("Reshape", 5, {value, numbers(shape, node_.name + "_shape")});
    }

    /// group · inputs × channels × kernel…, the taps of each axis as window × stride from the last, as
    /// (group · phases · channels) × inputs × window…
    Value* weights() {
        const auto rank = static_cast<int64_t>(axes_.size());
        Numbers pads(2 * (rank + 2), 0), split = {group_, inputs_, channels_}, order = {0}, windows, last, end, back;
        Numbers reversed, shape = {group_ * phases() * channels_, inputs_};
        for (int64_t i = 0; i < rank; ++i) {
            const GridAxis& axis = axes_[i];
            pads[2 + i] = axis.before;
            pads[rank + 4 + i] = axis.stride * axis.window - axis.kernel - axis.before;
            split.insert(split.end(), {axis.window, axis.stride});
            order.push_back(4 + 2 * i);
            windows.push_back(3 + 2 * i);
            shape.push_back(axis.window);
            last.push_back(-1);
            end.push_back(INT64_MIN);
            back.push_back(-1);
        }
        order.insert(order.end(), {2, 1});
        order.insert(order.end(), windows.begin(), windows.end());
        const std::string& name = node_.name;
        Value* value = add("Pad", 13, {node_.inputs[1], numbers(pads, name + "_pads")});
        value = reshaped(value, split);
        value = add("Slice", 13,
                    {value, numbers(last, name + "_starts"), numbers(end, name + "_ends"),
                     numbers(windows, name + "_axes"), numbers(back, name + "_steps")});
        value = add("Transpose", 13, {value}, {{"perm", order}});
        return reshaped(value, shape);
    }

    Value* bias() {
        Value* value = reshaped(node_.inputs[2], {group_, 1, channels_});
        value = add("Expand", 13, {value, numbers({group_, phases(), channels_}, node_.name + "_shape")});
        return reshaped(value, {-1});
    }

    int64_t phases() const {
        return std::accumulate(axes_.begin(), axes_.end(), int64_t{1},
                               [](int64_t count, const GridAxis& axis) { return count * axis.stride; });
    }

    Graph& graph_;
    Node& node_;
    std::vector<GridAxis> axes_;
    int64_t group_, inputs_, channels_;  // channels of a group
};

}  // namespace

void split_phases(Graph& graph) {
    std::vector<std::pair<Node*, std::vector<GridAxis>>> found;
    for (const auto& node : graph.nodes()) {
        if (auto axes = grid(*node)) found.emplace_back(node.get(), std::move(*axes));
    }
    for (auto& [node, axes] : found) Replacement(graph, *node, std::move(axes)).insert();
}

}  // namespace onnx2halide
