#include <algorithm>

#include "compiler/infer/add_node.h"
#include "compiler/passes/match.h"
#include "compiler/passes/passes.h"
#include "ops/node_generator.h"

namespace onnx2halide {

namespace {

/// Sets the layout of every value, node by node. Inserts a Relayout where a node needs another layout than the producer
/// of its input has chosen.
class LayoutAssigner {
public:
    LayoutAssigner(Graph& graph, const Target& target) : graph_(graph), target_(target) {}

    void assign() {
        for (Node* node : graph_.snapshot()) visit(*node);
        for (size_t i = 0; i < graph_.outputs.size(); ++i) {
            Value* output = graph_.outputs[i];
            graph_.outputs[i] = in_layout(output, row_major(rank(output)), nullptr);
        }
    }

private:
    void visit(Node& node) {
        if (node.inputs.empty()) return;
        transpose_where_made(node);
        // A Loop may omit its first input.
        if (node.inputs[0] && (becomes_view(node) || copies(node))) return;
        const auto generator = make_generator(node);
        switch (generator->layout_need()) {
        case LayoutNeed::row_major:
            for (size_t i = 0; i < node.inputs.size(); ++i) {
                if (node.inputs[i] && !generator->reads_any_layout(i, target_))
                    convert(node, i, row_major(rank(node.inputs[i])));
            }
            return;
        case LayoutNeed::channels_last:
            if (!generator->reads_any_layout(0, target_)) convert(node, 0, channels_last(rank(node.inputs[0])));
            return set_outputs(node, channels_last(rank(node.inputs[0])));
        case LayoutNeed::any: return follow_inputs(node);
        }
    }

    /// Gives a node's output the layout in which it is a view of the input, if there is one. A Transpose then moves no
    /// elements, nor does a Reshape of pixels to a sequence.
    static bool becomes_view(Node& node) {
        // Symbols that are bound to an output are read when its node has run, as a view's does not.
        if (!node.has_output(0) || !node.outputs[0]->bindings.empty()) return false;
        std::vector<Layout> layouts = {row_major(rank(node.outputs[0])), channels_last(rank(node.outputs[0]))};
        if (const auto order = make_generator(node)->memory_order()) layouts.push_back(*order);
        for (const Layout& layout : layouts) {
            set_outputs(node, layout);
            if (make_generator(node)->is_view()) return true;
        }
        set_outputs(node, layouts[0]);
        return false;
    }

    static bool is_common(const Layout& layout) {
        return layout == row_major(layout.size()) || layout == channels_last(layout.size());
    }

    /// Whether row-major and channels-last are the same order in memory, as for one pixel or one channel.
    static bool is_neutral(const TensorType& type) {
        const auto is_one = [](const Dim& extent) { return extent.is(1); };
        return type.rank() < 3 || is_one(type.shape[1]) ||
               std::all_of(type.shape.begin() + 2, type.shape.end(), is_one);
    }

    /// If a node copies an input whose layout only views have, makes it write the nearest common layout directly.
    static bool copies(Node& node) {
        if (!node.has_output(0) || is_common(node.inputs[0]->type->layout)) return false;
        const auto order = make_generator(node)->memory_order();
        if (!order) return false;
        const Layout wanted = channels_last(order->size());
        set_outputs(node, order->front() == wanted.front() ? wanted : row_major(order->size()));
        return true;
    }

    static bool has(const Value* value, const Layout& layout) {
        return value && rank(value) == layout.size() && value->type->layout == layout;
    }

    /// Whether an input has the shape of the result.
    static bool is_whole(const Node& node, const Value* input) {
        return input && node.has_output(0) && input->type->shape == node.outputs[0]->type->shape;
    }

    /// Whether each element of an input becomes one of the result: whether it has the result's shape or Concat joins
    /// it.
    static bool is_operand(const Node& node, const Value* input) {
        return is_whole(node, input) || (is_operator(node, "Concat") && rank(input) == rank(node.outputs[0]));
    }

    /// Whether a node's result may have a layout that only views have: if it is pointwise, or a Concat whose readers
    /// need no copy then.
    bool takes_orders_of_views(const Node& node) const {
        if (!is_operator(node, "Concat")) return make_generator(node)->is_pointwise();
        const std::vector<Node*>& readers = node.outputs[0]->consumers;
        return !graph_.is_output(node.outputs[0]) &&
               std::all_of(readers.begin(), readers.end(), [](const Node* reader) {
                   return make_generator(*reader)->layout_need() == LayoutNeed::any;
               });
    }

    /// The layout for a node that works in any: channels last if any input has that, otherwise the layout that its
    /// inputs share, otherwise row-major. Only inputs with the result's shape count, if there are any.
    Layout layout_of_inputs(const Node& node) const {
        const size_t result_rank = node.has_output(0) ? rank(node.outputs[0]) : 0;
        const Layout last = channels_last(result_rank);
        const bool has_whole = std::any_of(node.inputs.begin(), node.inputs.end(), [&](const Value* input) {
            return is_whole(node, input) && !input->is_constant();
        });
        const auto has_channels_last = [&](const Value* input) {
            return has(input, last) && (is_whole(node, input) || (!has_whole && !is_neutral(*input->type)));
        };
        if (std::any_of(node.inputs.begin(), node.inputs.end(), has_channels_last)) return last;
        if (is_operand(node, node.inputs[0]) && takes_orders_of_views(node)) {
            const Layout& first = node.inputs[0]->type->layout;
            const auto agrees = [&](const Value* input) { return !is_operand(node, input) || has(input, first); };
            if (std::all_of(node.inputs.begin(), node.inputs.end(), agrees)) return first;
        }
        return row_major(result_rank);
    }

    void follow_inputs(Node& node) {
        const Layout wanted = layout_of_inputs(node);
        const auto generator = make_generator(node);
        for (size_t i = 0; i < node.inputs.size(); ++i) {
            const Value* input = node.inputs[i];
            if (!input || (!is_common(input->type->layout) && generator->reads_any_layout(i, target_))) continue;
            // Small operands, such as a bias per channel, can be read in any layout at no cost.
            if (is_whole(node, input) || (is_operand(node, input) && !is_neutral(*input->type))) {
                convert(node, i, wanted);
            } else if (!is_common(input->type->layout)) {
                convert(node, i, row_major(rank(input)));
            }
        }
        set_outputs(node, wanted);
    }

    static void set_outputs(Node& node, const Layout& layout) {
        for (Value* output : node.outputs) {
            if (output && rank(output) == layout.size()) output->type->layout = layout;
        }
    }

    void convert(Node& node, size_t i, const Layout& layout) {
        Value* input = node.inputs[i];
        if (!input) return;
        Value* converted = in_layout(input, layout, &node);
        if (converted != input) graph_.set_input(&node, i, converted);
    }

    Value* in_layout(Value* value, const Layout& layout, const Node* before) {
        if (value->type->layout == layout) return value;
        if (is_written_in(value, layout)) {
            value->type->layout = layout;
            return value;
        }
        const auto [place, is_new] = converted_.try_emplace({value, layout}, nullptr);
        if (is_new) {
            NewNode relayout{
                "Relayout", 1, {value}, {{"layout", std::vector<int64_t>(layout.begin(), layout.end())}}, own_domain};
            place->second =
                add_node(graph_, relayout,
                         value->name + (layout == row_major(layout.size()) ? "_row_major" : "_channels_last"), before);
            place->second->type->layout = layout;
        }
        return place->second;
    }

    /// Makes a product in attention write the heads of each row side by side, as the Transpose that follows requires.
    void transpose_where_made(const Node& node) const {
        if (node.op_type != "Transpose" || !node.domain.empty()) return;
        Value* input = node.inputs[0];
        const std::vector<int64_t> order = node.integers("perm", {});
        const Layout layout(order.rbegin(), order.rend());
        if (layout.size() == rank(input) && is_written_in(input, layout)) input->type->layout = layout;
    }

    bool is_written_in(const Value* value, const Layout& layout) const {
        return is_read_once(value) && value->producer && make_generator(*value->producer)->writes(layout, target_);
    }

    bool is_read_once(const Value* value) const {
        return static_cast<int64_t>(value->consumers.size()) +
                   std::count(graph_.outputs.begin(), graph_.outputs.end(), value) ==
               1;
    }

    static size_t rank(const Value* value) { return value ? value->checked_type().rank() : 0; }

    Graph& graph_;
    const Target& target_;
    std::map<std::pair<Value*, Layout>, Value*> converted_;
};

}  // namespace

void assign_layouts(Graph& graph, const Target& target) { LayoutAssigner(graph, target).assign(); }

}  // namespace onnx2halide
