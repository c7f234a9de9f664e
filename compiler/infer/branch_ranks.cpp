#include "compiler/infer/branch_ranks.h"

#include <algorithm>
#include <map>
#include <set>

#include "compiler/graph/box_type.h"
#include "compiler/graph/new_node.h"

namespace onnx2halide {

namespace {

/// Attributes of an If: whether dependent nodes have moved into its branches, and how often it has itself been moved
/// into the branches of another.
constexpr const char *took_in = "took_in", *times = "times_taken_in";
constexpr int64_t most_times = 5;

bool contains(const std::vector<Value*>& values, const Value* value) {
    return std::find(values.begin(), values.end(), value) != values.end();
}

/// The element type of a tensor or of the item of a box.
ElementType item_of(const TensorType& type) { return type.box ? type.box->item.element : type.element; }

/// An If to replace another one, with the same inputs, but no outputs and attributes yet.
Node in_place_of(const Node& node) {
    Node whole;
    whole.name = node.name;
    whole.op_type = node.op_type;
    whole.version = node.version;
    whole.index = node.index;
    whole.inputs = node.inputs;
    return whole;
}

/// The nodes that depend on the outputs of this one, in topological order.
std::vector<Node*> followers(const Graph& graph, const Node& node) {
    std::set<const Value*> made(node.outputs.begin(), node.outputs.end());
    made.erase(nullptr);
    std::vector<Node*> result;
    for (const auto& each : graph.nodes()) {
        const auto is_made = [&](const Value* input) { return made.contains(input); };
        if (each.get() == &node || std::none_of(each->inputs.begin(), each->inputs.end(), is_made)) continue;
        result.push_back(each.get());
        made.insert(each->outputs.begin(), each->outputs.end());
        made.erase(nullptr);
    }
    return result;
}

/// Adds the outputs of these nodes that are outputs of the graph.
void add_results(const Graph& graph, const std::vector<Node*>& nodes, std::vector<Value*>& results) {
    for (const Node* node : nodes) {
        for (Value* output : node->outputs) {
            if (output && graph.is_output(output)) results.push_back(output);
        }
    }
}

/// The values that nodes read, each once, except those in `given` and those that the nodes themselves make.
std::vector<Value*> inputs_of(const std::vector<Node*>& nodes, const std::vector<Value*>& given) {
    std::set<const Value*> made(given.begin(), given.end());
    std::vector<Value*> inputs;
    for (const Node* node : nodes) {
        for (Value* input : node->inputs) {
            if (input && !made.contains(input) && !contains(inputs, input)) inputs.push_back(input);
        }
        made.insert(node->outputs.begin(), node->outputs.end());
    }
    return inputs;
}

/// A copy of a branch of `node`, followed by copies of `nodes`, which depend on its outputs and on `captures`. Returns
/// the values that correspond to `results`.
std::shared_ptr<Graph> extended(const Graph& original, const Node& node, const std::vector<Node*>& nodes,
                                const std::vector<Value*>& captures, const std::vector<Value*>& results) {
    std::shared_ptr<Graph> branch = clone(original);
    std::map<const Value*, Value*> copies;
    for (size_t i = 0; i < node.outputs.size(); ++i) copies[node.outputs[i]] = branch->outputs.at(i);
    for (size_t i = 0; i < branch->inputs.size(); ++i) copies[node.inputs.at(1 + i)] = branch->inputs[i];
    for (const Value* capture : captures) {
        branch->inputs.push_back(branch->new_value(capture->name));
        copies[capture] = branch->inputs.back();
    }
    copy_nodes(*branch, nodes, copies);
    branch->outputs.clear();
    branch->output_names.clear();
    for (const Value* result : results) {
        branch->outputs.push_back(copies.at(result));
        branch->output_names.push_back(result->name);
    }
    return branch;
}

/// A copy of a branch in which these outputs become optional values that are present. An optional value replaces its
/// output or, if that is in `kept`, is added after the other outputs.
std::shared_ptr<Graph> with_boxes(const Graph& original, const std::vector<size_t>& outputs,
                                  const std::set<size_t>& kept) {
    std::shared_ptr<Graph> branch = clone(original);
    for (const size_t i : outputs) {
        Value* result = branch->outputs.at(i);
        Value* box = insert_node(*branch, {"Optional", 15, {result}}, result->name + "_optional", nullptr);
        if (kept.contains(i)) {
            branch->outputs.push_back(box);
            branch->output_names.push_back(box->name);
        } else {
            branch->outputs[i] = box;
        }
    }
    return branch;
}

}  // namespace

bool has_two_ranks(const Node& node, size_t output) {
    const TensorType &a = node.graph("then_branch").outputs.at(output)->checked_type(),
                     &b = node.graph("else_branch").outputs.at(output)->checked_type();
    if (!node.outputs[output]) return false;
    if (item_of(a) != item_of(b)) return false;
    if (!a.box && !b.box) return a.rank() != b.rank();
    return (!a.box && is_optional(b)) || (is_optional(a) && !b.box);
}

bool return_optional(Graph& graph, const Node& node, const Branches& branches) {
    std::vector<size_t> returned;
    std::set<size_t> read;
    Node whole = in_place_of(node);
    whole.outputs = node.outputs;
    whole.attributes = node.attributes;
    for (size_t i = 0; i < node.outputs.size(); ++i) {
        Value* output = node.outputs[i];
        if (!output || !graph.is_output(output) || !has_two_ranks(node, i)) continue;
        Value* box = graph.new_value(output->name + "_optional");
        std::replace(graph.outputs.begin(), graph.outputs.end(), output, box);
        returned.push_back(i);
        if (output->consumers.empty()) {
            whole.outputs[i] = box;
        } else {
            whole.outputs.push_back(box);
            read.insert(i);
        }
    }
    if (returned.empty()) return false;
    whole.attributes["then_branch"] = with_boxes(*branches.then_branch, returned, read);
    whole.attributes["else_branch"] = with_boxes(*branches.else_branch, returned, read);
    graph.add(std::move(whole), graph.after(&node));
    return true;
}

bool take_in_what_follows(Graph& graph, Node& node, const Branches& branches) {
    std::vector<Value*> results;
    for (size_t i = 0; i < node.outputs.size(); ++i) {
        if (!node.outputs[i] || !graph.is_output(node.outputs[i])) continue;
        results.push_back(node.outputs[i]);
    }
    const int64_t taken = node.integer(times, 0);
    const std::vector<Node*> nodes = followers(graph, node);
    if (taken == most_times || nodes.empty()) return false;
    for (Node* follower : nodes) {
        if (follower->op_type == "If") follower->attributes[times] = follower->integer(times, 0) + 1;
    }

    std::vector<Value*> given = node.outputs;
    given.insert(given.end(), node.inputs.begin() + 1, node.inputs.end());
    const std::vector<Value*> captures = inputs_of(nodes, given);
    add_results(graph, nodes, results);
    Node whole = in_place_of(node);
    whole.inputs.insert(whole.inputs.end(), captures.begin(), captures.end());
    whole.outputs = results;
    whole.attributes = {{"then_branch", extended(*branches.then_branch, node, nodes, captures, results)},
                        {"else_branch", extended(*branches.else_branch, node, nodes, captures, results)},
                        {"captures", static_cast<int64_t>(whole.inputs.size()) - 1},
                        {took_in, int64_t{1}},
                        {times, taken}};
    for (auto follower = nodes.rbegin(); follower != nodes.rend(); ++follower) graph.remove(*follower);
    if (!results.empty()) graph.add(std::move(whole));
    return true;
}

bool has_taken_in(const Node& node) { return node.integer(took_in, 0) != 0; }

}  // namespace onnx2halide
