#include <algorithm>
#include <optional>

#include "compiler/graph/error.h"
#include "compiler/infer/add_node.h"
#include "compiler/passes/passes.h"

namespace onnx2halide {

namespace {

/// Where updates go: from which element on along each axis of data, and the axis of the updates that runs along it, or
/// -1 if none does.
struct Box {
    std::vector<int64_t> starts, axes;
};

/// Indices as ScatterND has them: for each update its coordinates along the first axes of data.
class Indices {
public:
    Indices(const Constant& constant, const std::vector<Dim>& data)
        : elements_(constant.as<int64_t>()), extents_(constant.shape), data_(data) {
        width_ = extents_.back();
        extents_.pop_back();
    }

    /// The box that the updates fill in memory order; nullopt if they do not, or if an index is out of range.
    std::optional<Box> box() const {
        if (elements_.empty()) return {};
        Box box{std::vector<int64_t>(width_), std::vector<int64_t>(width_, -1)};
        for (int64_t i = 0; i < width_; ++i) box.starts[i] = coordinate(0, i);
        int64_t stride = 1, after = width_;
        for (size_t axis = extents_.size(); axis-- > 0; stride *= extents_[axis]) {
            if (extents_[axis] == 1) continue;
            // The only coordinate that the next update along the axis has one more of.
            int64_t own = 0;
            while (own < after && coordinate(stride, own) == box.starts[own]) ++own;
            if (own == after) return {};
            box.axes[own] = static_cast<int64_t>(axis);
            after = own;
        }
        return covers(box) ? std::optional(box) : std::nullopt;
    }

    /// Whether the updates are a sizeable part of the data. Reading the indices of others hardly matters, and models
    /// that write one part of a tensor after the other would have a kernel for each: ReplaceBox has fixed places.
    bool are_many() const {
        constexpr int64_t most_parts = 16;
        int64_t places = 1;
        for (int64_t i = 0; i < width_; ++i) places *= *data_[i].constant();
        return std::ssize(elements_) / width_ * most_parts >= places;
    }

private:
    std::span<const int64_t> elements_;
    std::vector<int64_t> extents_;  // of the updates' first axes
    std::vector<Dim> data_;
    int64_t width_;

    int64_t coordinate(int64_t update, int64_t axis) const {
        const int64_t index = elements_[update * width_ + axis];
        return index < 0 ? index + *data_[axis].constant() : index;
    }

    bool covers(const Box& box) const {
        std::vector<int64_t> at(extents_.size());
        const auto updates = static_cast<int64_t>(elements_.size()) / width_;
        for (int64_t update = 0; update < updates; ++update) {
            for (int64_t i = 0; i < width_; ++i) {
                const int64_t place = box.starts[i] + (box.axes[i] < 0 ? 0 : at[box.axes[i]]);
                if (coordinate(update, i) != place || place < 0 || place >= *data_[i].constant()) return false;
            }
            for (size_t axis = at.size(); axis-- > 0;) {
                if (++at[axis] < extents_[axis]) break;
                at[axis] = 0;
            }
        }
        return true;
    }
};

/// Whether the updates are known to have the shape that fits; if not, ScatterND says so when the model runs.
bool has_expected_shape(const TensorType& updates, const Constant& indices, const TensorType& data) {
    std::vector<Dim> expected(indices.shape.begin(), indices.shape.end() - 1);
    expected.insert(expected.end(), data.shape.begin() + indices.shape.back(), data.shape.end());
    return updates.shape == expected;
}

bool has_known_indices(const Node& node) {
    if (node.op_type != "ScatterND" || !node.domain.empty() || node.string("reduction", "none") != "none") return false;
    const TensorType &data = node.inputs[0]->checked_type(), &updates = node.inputs[2]->checked_type();
    const Value &indices = *node.inputs[1], &result = *node.outputs[0];
    // Sizes may depend on a result whose elements are known.
    if (result.known || result.tracked || !result.bindings.empty()) return false;
    // The elements of a folded constant lie in the layout of its value; `inspect` does not compute them.
    if (!indices.constant || indices.constant->type() != indices.checked_type()) return false;
    if (indices.constant->elements() * int64_t{sizeof(int64_t)} != std::ssize(*indices.constant->data)) return false;
    return indices.constant->element == ElementType::int64 && data.is_row_major() && updates.is_row_major() &&
           node.outputs[0]->checked_type().is_row_major() &&
           std::all_of(data.shape.begin(), data.shape.end(), [](const Dim& extent) { return extent.constant(); }) &&
           has_expected_shape(updates, *indices.constant, data);
}

/// Whether nothing of the data is left.
bool is_whole(const Box& box, const TensorType& data, const TensorType& updates) {
    for (size_t i = 0; i < box.axes.size(); ++i) {
        const Dim extent = box.axes[i] < 0 ? Dim(1) : updates.shape[box.axes[i]];
        if (prove_equal(extent, data.shape[i]) != Proof::yes) return false;
    }
    return true;
}

void replace(Graph& graph, Node& node, Box box) {
    Value *data = node.inputs[0], *updates = node.inputs[2];
    const TensorType &type = data->checked_type(), &new_type = updates->checked_type();
    const auto indexed = static_cast<int64_t>(node.inputs[1]->checked_type().rank()) - 1;
    for (size_t i = box.axes.size(); i < type.rank(); ++i) {
        box.axes.push_back(indexed + static_cast<int64_t>(i - box.starts.size()));
    }
    box.starts.resize(type.rank(), 0);
    Value* result = nullptr;
    if (!is_whole(box, type, new_type)) {
        const NewNode replaced{
            "ReplaceBox", 1, {data, updates}, {{"starts", box.starts}, {"axes", box.axes}}, own_domain};
        result = add_node(graph, replaced, node.name, &node);
    } else if (new_type.shape == type.shape) {
        result = updates;
    } else {
        result = add_node(graph, view(updates, type), node.name, &node);
    }
    graph.replace_uses(node.outputs[0], result);
    graph.remove(&node);
}

}  // namespace

void replace_boxes(Graph& graph) {
    std::vector<Node*> found;
    for (const auto& node : graph.nodes()) {
        if (has_known_indices(*node)) found.push_back(node.get());
    }
    for (Node* node : found) {
        const Indices indices(*node->inputs[1]->constant, node->inputs[0]->checked_type().shape);
        const auto box = indices.box();
        if (box && indices.are_many()) replace(graph, *node, *box);
    }
}

}  // namespace onnx2halide
