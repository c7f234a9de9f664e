#include <algorithm>
#include <map>
#include <optional>

#include "compiler/infer/add_node.h"
#include "compiler/passes/passes.h"
#include "ops/elementwise/elementwise.h"
#include "ops/reduce/reduce_node.h"

namespace onnx2halide {

namespace {

/// Axes of a kernel's result that are merged into the last of them; the others then have one element.
using Run = AxisRun;

std::vector<Dim> merged(std::vector<Dim> shape, const Run& run) {
    for (size_t i = run.first; i < run.last; ++i) {
        shape[run.last] *= shape[i];
        shape[i] = 1;
    }
    return shape;
}

class AxisMerger {
public:
    AxisMerger(Graph& graph, const Target& target) : graph_(graph), target_(target) {}

    void merge(const std::vector<const Node*>& kernel) {
        for (const Node* node : kernel) {
            merge_reduced(kernel, *node);
            const auto run = make_generator(*node)->axes_gaining_as_one(target_);
            if (!run) continue;
            const TensorType& whole = node->outputs[0]->checked_type();
            const bool all_follow = std::all_of(kernel.begin(), kernel.end(), [&](const Node* other) {
                return other == node || follows(*other, whole, *run);
            });
            if (all_follow) merge_run(kernel, node, *run);
            return;
        }
        if (const auto run = innermost_run(kernel)) merge_run(kernel, nullptr, *run);
    }

private:
    /// Makes a reduction of another kernel's result read adjacent axes as one.
    void merge_reduced(const std::vector<const Node*>& kernel, const Node& node) {
        const auto generator = make_generator(node);
        const auto* reduction = dynamic_cast<const ReduceNode*>(generator.get());
        if (!reduction || is_made_by(kernel, *node.inputs[0])) return;
        const Layout run = reduction->gaining_run(target_);
        if (run.empty()) return;
        TensorType type = node.inputs[0]->checked_type();
        for (size_t i = 1; i < run.size(); ++i) {
            type.shape[run[0]] *= type.shape[run[i]];
            type.shape[run[i]] = 1;
        }
        graph_.set_input(node.outputs[0]->producer, 0, viewed(node.inputs[0], type));
    }

    /// The innermost axes of a kernel of pointwise nodes, if vectors would end with the last of them and all operands
    /// go along them alike. Of extents that are known the schedule makes one loop itself.
    std::optional<Run> innermost_run(const std::vector<const Node*>& kernel) const {
        const auto generator = make_generator(*kernel.back());
        if (target_.is_gpu() || !dynamic_cast<const Elementwise*>(generator.get())) return std::nullopt;
        const TensorType& whole = kernel.back()->outputs[0]->checked_type();
        if (whole.rank() < 2 || !whole.is_row_major()) return std::nullopt;
        std::optional<Run> run;
        const size_t last = whole.rank() - 1;
        Dim extent = whole.shape[last];
        for (size_t first = last; first-- > 0;) {
            // Rows that fill vectors gain nothing.
            if (floor_mod(extent, target_.lanes(whole.element)).is(0)) break;
            const bool all_follow = std::all_of(kernel.begin(), kernel.end(), [&](const Node* node) {
                return follows(*node, whole, {first, last});
            });
            if (!all_follow) break;
            if (!whole.shape[first].is(1) && !extent.is(1)) run = Run{first, last};
            extent *= whole.shape[first];
        }
        const bool is_known = extent.constant().has_value();
        return is_known ? std::nullopt : run;
    }

    static bool has_run(const TensorType& type, const TensorType& whole, const Run& run) {
        return type.rank() == whole.rank() && type.layout == whole.layout &&
               std::equal(type.shape.begin() + run.first, type.shape.begin() + run.last + 1,
                          whole.shape.begin() + run.first);
    }

    /// Whether a node computes each element from those at the same coordinates and from operands that are constant
    /// along the run.
    static bool follows(const Node& node, const TensorType& whole, const Run& run) {
        const TensorType& result = node.outputs.at(0)->checked_type();
        const auto generator = make_generator(node);
        if (!generator->is_pointwise() || generator->depends_on_index() || node.outputs.size() != 1 ||
            result.shape != whole.shape || result.layout != whole.layout)
            return false;
        for (size_t i = 0; i < node.inputs.size(); ++i) {
            if (node.inputs[i] && !fits(node.inputs[i]->checked_type(), generator->first_axis(i), whole, run))
                return false;
        }
        return true;
    }

    /// Whether an operand, whose first axis corresponds to axis `first` of the whole, has all axes of the run or is
    /// constant along them.
    static bool fits(const TensorType& operand, size_t first, const TensorType& whole, const Run& run) {
        if (has_run(operand, whole, run)) return true;
        for (size_t axis = std::max(run.first, first); axis <= run.last && axis < first + operand.rank(); ++axis) {
            if (!operand.shape[axis - first].is(1)) return false;
        }
        return true;
    }

    /// Merges the axes of a run in all values of a kernel. `anchor` is the node that is not pointwise, of which only
    /// some inputs have these axes; null if there is none.
    void merge_run(const std::vector<const Node*>& nodes, const Node* anchor, const Run& run) {
        const TensorType whole = nodes.back()->outputs[0]->checked_type();
        for (const Node* node : nodes) {
            for (size_t i = 0; i < node->inputs.size(); ++i) {
                Value* input = node->inputs[i];
                if (!input || is_made_by(nodes, *input)) continue;
                const bool has_axes = node == anchor
                                          ? std::find(run.operands.begin(), run.operands.end(), i) != run.operands.end()
                                          : has_run(input->checked_type(), whole, run);
                const int shift = node == anchor ? run.shift : 0;
                if (has_axes)
                    graph_.set_input(node->outputs[0]->producer, i,
                                     merged_view(input, {run.first + shift, run.last + shift}));
            }
        }
        Value* last = nodes.back()->outputs[0];
        const TensorType type = last->checked_type();
        for (const Node* node : nodes) node->outputs[0]->type->shape = merged(whole.shape, run);
        Value* apart = add_after(graph_, *last->producer, view(nullptr, type), last->name + "_merged");
        // The model's name stays with the model's shape, as run-time messages refer to both.
        std::swap(last->name, apart->name);
        // A later kernel that merges the same axes reads the merged value directly.
        merged_[{apart, shape_text(last->type->shape)}] = last;
    }

    static bool is_made_by(const std::vector<const Node*>& nodes, const Value& value) {
        return std::find(nodes.begin(), nodes.end(), value.producer) != nodes.end();
    }

    /// A view of a value in which the axes of a run are one.
    Value* merged_view(Value* value, const Run& run) {
        TensorType type = value->checked_type();
        type.shape = merged(type.shape, run);
        return viewed(value, type);
    }

    Value* viewed(Value* value, const TensorType& type) {
        const auto [place, is_new] = merged_.try_emplace({value, shape_text(type.shape)}, nullptr);
        if (is_new)
            place->second = add_node(graph_, view(value, type), value->name + "_merged", graph_.after(value->producer));
        return place->second;
    }

    Graph& graph_;
    const Target& target_;
    std::map<std::pair<Value*, std::string>, Value*> merged_;  // views, by value and shape
};

}  // namespace

void merge_axes(Graph& graph, const std::vector<std::vector<const Node*>>& kernels, const Target& target) {
    AxisMerger merger(graph, target);
    for (const std::vector<const Node*>& kernel : kernels) merger.merge(kernel);
}

}  // namespace onnx2halide
