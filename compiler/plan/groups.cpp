#include "compiler/plan/groups.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

namespace onnx2halide {

namespace {

/// The most nodes of a kernel: Halide's time for one that computes a chain of pointwise nodes grows with the square of
/// their number, to 35 s for 540. More occur where an exporter has unrolled a loop.
constexpr size_t most_nodes = 64;

/// A group that may still grow. Later nodes can be fused with it through `last`, its result, which is null if they
/// cannot.
struct OpenGroup {
    Group group;
    const Value* last = nullptr;
    bool is_pointwise = false;
    bool is_merged = false;  // into another group
};

class GroupCutter {
public:
    GroupCutter(const Graph& graph, const Target& target) : graph_(graph), target_(target) {}

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
        if (generator->is_view() || generator->is_elided()) return;
        const bool can_grow = node.outputs.size() == 1 && generator->is_kernel();
        OpenGroup open{{{}, &node}, can_grow ? node.outputs[0] : nullptr, generator->is_pointwise()};
        open.group.nodes.push_back(&node);
        if (fuse && open.is_pointwise && open.last) absorb_producers(open);
        if (fuse && !open.is_pointwise && generator->is_kernel()) absorb_input(open, *generator);
        if (!open.is_pointwise) loops_.insert(&node);
        groups_.push_back(std::move(open));
        if (groups_.back().last) group_of_[groups_.back().last] = groups_.size() - 1;
    }

    /// Absorbs every pointwise producer, and the last of the others: a kernel has one loop structure. A producer that
    /// is absorbed may allow another one to follow, whose result is now read by nodes of the group only, as when a
    /// Sigmoid and a Mul both read the result of a convolution.
    void absorb_producers(OpenGroup& open) {
        std::vector<const Node*>& members = open.group.nodes;
        while (const auto producer = find_producer(open)) {
            OpenGroup& taken = groups_[*producer];
            if (!taken.is_pointwise) {
                open.group.anchor = taken.group.anchor;
                open.is_pointwise = false;
            }
            members.insert(members.end(), taken.group.nodes.begin(), taken.group.nodes.end());
            taken.is_merged = true;
        }
        std::sort(members.begin(), members.end(), [&](const Node* a, const Node* b) { return order(a) < order(b); });
    }

    /// Absorbs the group that makes input 0, if no other node reads that and the anchor's loops can compute it.
    void absorb_input(OpenGroup& open, const NodeGenerator& generator) {
        const Value* input = open.group.anchor->inputs.empty() ? nullptr : open.group.anchor->inputs[0];
        if (!input || !is_open(*input) || input->consumers.size() != 1) return;
        OpenGroup& taken = groups_[group_of_.at(input)];
        if (taken.group.nodes.size() >= most_nodes) return;
        if (!generator.can_compute_input(*taken.group.anchor, target_)) return;
        std::vector<const Node*>& members = open.group.nodes;
        members.insert(members.begin(), taken.group.nodes.begin(), taken.group.nodes.end());
        taken.is_merged = true;
    }

    /// The index of a group that can be absorbed: a pointwise one, or else the last of the others if the group is still
    /// pointwise.
    std::optional<size_t> find_producer(const OpenGroup& open) {
        std::optional<size_t> last;
        for (const Node* member : open.group.nodes) {
            if (loops_.contains(member)) continue;
            for (const Value* input : member->inputs) {
                if (!input || !can_fuse(*input, open)) continue;
                const size_t producer = group_of_.at(input);
                if (groups_[producer].is_pointwise) return producer;
                if (open.is_pointwise) last = std::max(last.value_or(producer), producer);
            }
        }
        return last;
    }

    /// Whether a value is the result of a group that another may absorb.
    bool is_open(const Value& value) const {
        const auto group = group_of_.find(&value);
        if (group == group_of_.end() || groups_[group->second].is_merged || graph_.is_output(&value)) return false;
        return value.bindings.empty();  // a reader may need the symbols that are bound to the value
    }

    /// Whether it is, and only nodes of `open` read it, each at its own coordinates, and there are not too many nodes.
    bool can_fuse(const Value& value, const OpenGroup& open) const {
        if (!is_open(value)) return false;
        const std::vector<const Node*>& members = open.group.nodes;
        if (groups_[group_of_.at(&value)].group.nodes.size() + members.size() > most_nodes) return false;
        const auto is_other = [&](const Node* consumer) {
            return loops_.contains(consumer) || std::find(members.begin(), members.end(), consumer) == members.end();
        };
        if (std::any_of(value.consumers.begin(), value.consumers.end(), is_other)) return false;
        const TensorType &from = value.checked_type(), &to = open.last->checked_type();
        return from.shape == to.shape && from.layout == to.layout;
    }

    size_t order(const Node* node) {
        if (order_.empty()) {
            for (const auto& each : graph_.nodes()) order_[each.get()] = order_.size();
        }
        return order_.at(node);
    }

    const Graph& graph_;
    const Target& target_;
    std::vector<OpenGroup> groups_;
    std::map<const Value*, size_t> group_of_;
    std::map<const Node*, size_t> order_;
    std::set<const Node*> loops_;  // nodes that are not pointwise, which read elements at other coordinates than theirs
};

}  // namespace

std::vector<Group> cut_groups(const Graph& graph, Grouping grouping, const Target& target) {
    if (grouping != Grouping::whole) return GroupCutter(graph, target).cut(grouping == Grouping::fused);
    Group whole;
    for (const auto& node : graph.nodes()) whole.nodes.push_back(node.get());
    return {whole};
}

std::vector<const Value*> escaping_values(const Graph& graph, const Group& group) {
    std::vector<const Value*> result;
    const auto is_inside = [&](const Node* node) {
        return std::find(group.nodes.begin(), group.nodes.end(), node) != group.nodes.end();
    };
    const Value* kept =
        group.anchor && make_generator(*group.anchor)->keeps_input() ? group.anchor->inputs[0] : nullptr;
    for (const Node* node : group.nodes) {
        for (const Value* output : node->outputs) {
            if (!output) continue;
            const bool is_read_outside = !std::all_of(output->consumers.begin(), output->consumers.end(), is_inside);
            if (output == kept || is_read_outside || graph.is_output(output) ||
                (output->consumers.empty() && node == group.nodes.back()))
                result.push_back(output);
        }
    }
    return result;
}

}  // namespace onnx2halide
