#include <algorithm>
#include <map>
#include <memory>

#include "compiler/passes/new_node.h"
#include "compiler/passes/passes.h"
#include "ops/conv_packed.h"

namespace onnx2halide {

namespace {

/// The shape with all spatial elements along the last axis.
std::vector<Dim> one_row(std::vector<Dim> shape) {
    for (size_t i = 2; i + 1 < shape.size(); ++i) {
        shape.back() *= shape[i];
        shape[i] = 1;
    }
    return shape;
}

/// The node that gives an image this shape in its own memory.
NewNode view(Value* image, const std::vector<Dim>& shape) {
    std::vector<int64_t> spatial;
    for (size_t i = 2; i < shape.size(); ++i) spatial.push_back(shape[i].constant().value());
    return {"ReshapeImage", 1, {image}, {{"spatial", spatial}}, "onnx2halide"};
}

class Flattener {
public:
    Flattener(Graph& graph, const Target& target) : graph_(graph), target_(target) {}

    void flatten(const std::vector<const Node*>& kernel) {
        if (const Node* conv = gaining_conv(kernel)) flatten(kernel, conv);
    }

private:
    /// The convolution of a kernel that is faster over one row, where all else follows it element by element; else
    /// null.
    const Node* gaining_conv(const std::vector<const Node*>& nodes) const {
        const auto found = std::find_if(nodes.begin(), nodes.end(), [&](const Node* node) {
            const auto generator = make_generator(*node);
            const auto* conv = dynamic_cast<const PackedConv*>(generator.get());
            return conv && conv->gains_from_one_row(target_);
        });
        if (found == nodes.end()) return nullptr;
        const TensorType& whole = (*found)->outputs[0]->checked_type();
        const bool all_follow = std::all_of(nodes.begin(), nodes.end(),
                                            [&](const Node* node) { return node == *found || follows(*node, whole); });
        return all_follow ? *found : nullptr;
    }

    static bool is_whole(const TensorType& type, const TensorType& whole) {
        return type.shape == whole.shape && type.layout == whole.layout;
    }

    /// Whether a node computes each element from those at its place and from others that are the same for a whole
    /// image.
    static bool follows(const Node& node, const TensorType& whole) {
        const auto fits = [&](const Value* input) {
            if (!input || is_whole(input->checked_type(), whole)) return true;
            const std::vector<Dim>& shape = input->checked_type().shape;
            const size_t spatial = std::min(shape.size(), whole.rank() - 2);
            return std::all_of(shape.end() - spatial, shape.end(), [](const Dim& extent) { return extent.is(1); });
        };
        return make_generator(node)->is_pointwise() && node.outputs.size() == 1 &&
               is_whole(node.outputs[0]->checked_type(), whole) &&
               std::all_of(node.inputs.begin(), node.inputs.end(), fits);
    }

    void flatten(const std::vector<const Node*>& nodes, const Node* conv) {
        const TensorType whole = conv->outputs[0]->checked_type();
        for (const Node* node : nodes) {
            for (size_t i = 0; i < node->inputs.size(); ++i) {
                Value* input = node->inputs[i];
                if (!input || is_made_by(nodes, *input)) continue;
                const bool is_image = node == conv ? i == 0 : is_whole(input->checked_type(), whole);
                if (is_image) graph_.set_input(node->outputs[0]->producer, i, flat(input));
            }
        }
        for (const Node* node : nodes) node->outputs[0]->type->shape = one_row(whole.shape);
        Value* last = nodes.back()->outputs[0];
        Value* image = add_behind(graph_, *last->producer, view(nullptr, whole.shape), last->name + "_image");
        image->type->layout = whole.layout;
        flat_[image] = last;
    }

    static bool is_made_by(const std::vector<const Node*>& nodes, const Value& value) {
        return std::find(nodes.begin(), nodes.end(), value.producer) != nodes.end();
    }

    /// The same memory as one row.
    Value* flat(Value* image) {
        const auto [place, is_new] = flat_.try_emplace(image, nullptr);
        if (is_new) {
            const TensorType type = image->checked_type();
            const NewNode row = view(image, one_row(type.shape));
            place->second = add_node(graph_, row, image->name + "_row", graph_.after(image->producer));
            place->second->type->layout = type.layout;
        }
        return place->second;
    }

    Graph& graph_;
    const Target& target_;
    std::map<Value*, Value*> flat_;  // views as one row, by image
};

}  // namespace

void flatten_images(Graph& graph, const std::vector<std::vector<const Node*>>& kernels, const Target& target) {
    Flattener flattener(graph, target);
    for (const std::vector<const Node*>& kernel : kernels) flattener.flatten(kernel);
}

}  // namespace onnx2halide
