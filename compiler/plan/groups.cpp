#include "compiler/plan/groups.h"

#include <algorithm>
#include <map>

namespace onnx2halide {

namespace {

/// A group while it grows: `last` is its only result that a later node may be fused with.
struct OpenGroup {
    Group group;
    const Value* last = nullptr;
    bool is_pointwise = false;
    bool is_merged = false;  // into another group
};

class GroupCutter {
public:
    explicit GroupCutter(const Graph& graph) : graph_(graph) {}

    std::vector<Group> cut(bool fuse) {
        for (const auto& node : graph_.nodes()) add(*node, fuse);
        std::vector<Group> result;
        for (const OpenGroup& open : groups_) {
            if (!open.is_merged) result.push_back(open.group);
        }
        return result;
    }

private:
    void add(const Node& node, bool fuse) {
        const auto generator = make_generator(node);
        if (generator->is_view()) return;
        OpenGroup open{{{}, &node}, node.outputs.size() == 1 ? node.outputs[0] : nullptr, generator->is_pointwise()};
        if (fuse && open.is_pointwise && open.last) absorb_producers(node, open);
        open.group.nodes.push_back(&node);
        groups_.push_back(std::move(open));
        if (groups_.back().last) group_of_[groups_.back().last] = groups_.size() - 1;
    }

    /// Takes in every pointwise producer, and of the others the last one that runs: two loop structures do not make one
    /// kernel.
    void absorb_producers(const Node& node, OpenGroup& open) {
        std::vector<size_t> producers;
        for (const Value* input : node.inputs) {
            if (input && can_fuse(*input, node) &&
                std::find(producers.begin(), producers.end(), group_of_.at(input)) == producers.end()) {
                producers.push_back(group_of_.at(input));
            }
        }
        std::sort(producers.begin(), producers.end());
        bool has_anchor = false;
        for (size_t i = producers.size(); i-- > 0;) {
            OpenGroup& producer = groups_[producers[i]];
            if (!producer.is_pointwise && has_anchor) continue;
            if (!producer.is_pointwise) {
                has_anchor = true;
                open.group.anchor = producer.group.anchor;
                open.is_pointwise = false;
            }
            open.group.nodes.insert(open.group.nodes.begin(), producer.group.nodes.begin(), producer.group.nodes.end());
            producer.is_merged = true;
        }
        std::sort(open.group.nodes.begin(), open.group.nodes.end(),
                  [&](const Node* a, const Node* b) { return order(a) < order(b); });
    }

    /// Whether a value is the whole result of a group and only this node reads it, element by element.
    bool can_fuse(const Value& value, const Node& node) const {
        const auto group = group_of_.find(&value);
        if (group == group_of_.end() || groups_[group->second].is_merged || graph_.is_output(&value)) return false;
        const auto is_other = [&](const Node* consumer) { return consumer != &node; };
        if (std::any_of(value.consumers.begin(), value.consumers.end(), is_other)) return false;
        const TensorType &from = value.checked_type(), &to = node.outputs[0]->checked_type();
        return from.shape == to.shape && from.layout == to.layout;
    }

    size_t order(const Node* node) {
        if (order_.empty()) {
            for (const auto& each : graph_.nodes()) order_[each.get()] = order_.size();
        }
        return order_.at(node);
    }

    const Graph& graph_;
    std::vector<OpenGroup> groups_;
    std::map<const Value*, size_t> group_of_;
    std::map<const Node*, size_t> order_;
};

}  // namespace

std::vector<Group> cut_groups(const Graph& graph, bool fuse) { return GroupCutter(graph).cut(fuse); }

std::vector<const Value*> escaping_values(const Graph& graph, const Group& group) {
    std::vector<const Value*> result;
    const auto is_inside = [&](const Node* node) {
        return std::find(group.nodes.begin(), group.nodes.end(), node) != group.nodes.end();
    };
    for (const Node* node : group.nodes) {
        for (const Value* output : node->outputs) {
            if (!output) continue;
            const bool is_read = !std::all_of(output->consumers.begin(), output->consumers.end(), is_inside);
            if (is_read || graph.is_output(output) || (output->consumers.empty() && node == group.nodes.back()))
                result.push_back(output);
        }
    }
    return result;
}

}  // namespace onnx2halide
