#include "compiler/infer/infer_if.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "compiler/graph/box_type.h"
#include "compiler/infer/branch_ranks.h"
#include "compiler/infer/infer.h"
#include "compiler/infer/subgraph.h"

namespace onnx2halide {

namespace {

/// The attribute that says why a branch which the model may not choose does not fit what follows.
constexpr const char* unfit_branch = "unfit_branch";

bool inline_branch(Graph& graph, Node& node, bool condition) {
    const Graph& branch = node.graph(condition ? "then_branch" : "else_branch");
    const std::vector<Value*> captures(node.inputs.begin() + 1, node.inputs.end());
    const std::vector<Value*> results = inline_graph(graph, graph.after(&node), branch, captures);
    for (size_t i = 0; i < node.outputs.size(); ++i) replace(graph, node.outputs[i], results.at(i));
    return true;
}

/// The symbols that nodes of a graph set, also in their subgraphs.
std::set<std::string> symbols_set_in(const Graph& graph) {
    std::set<std::string> symbols;
    for (const auto& node : graph.nodes()) {
        for (const Value* output : node->outputs) {
            for (const Binding& binding : output ? output->bindings : std::vector<Binding>())
                symbols.insert(binding.symbol);
        }
        for (const auto& [name, attribute] : node->attributes) {
            if (const auto* inner = std::get_if<std::shared_ptr<Graph>>(&attribute))
                symbols.merge(symbols_set_in(**inner));
        }
    }
    return symbols;
}

/// The type of a value that is one of two: dims that differ become symbols, as do those that a branch determines.
/// Branches may call different numbers by the same name, since values of both may have it.
TensorType merged(const Node& node, size_t output, const TensorType& a, const TensorType& b) {
    if (const auto box = joined(a, b)) return *box;
    if (a.box || a.element != b.element || a.rank() != b.rank())
        throw CompileError("output {} is {} in then_branch and {} in else_branch, expected the same type and rank",
                           output, a.text(), b.text());
    std::set<std::string> inner = symbols_set_in(node.graph("then_branch"));
    inner.merge(symbols_set_in(node.graph("else_branch")));
    TensorType result = a;
    for (size_t axis = 0; axis < a.rank(); ++axis) {
        const std::set<std::string> used = a.shape[axis].symbols();
        const bool is_outer =
            std::ranges::none_of(used, [&](const std::string& symbol) { return inner.contains(symbol); });
        if (is_outer && a.shape[axis] == b.shape[axis]) continue;
        const auto low = std::min(a.shape[axis].lower_bound().value_or(0), b.shape[axis].lower_bound().value_or(0));
        const auto high = std::max(a.shape[axis].upper_bound().value_or(Dim::unbounded),
                                   b.shape[axis].upper_bound().value_or(Dim::unbounded));
        result.shape[axis] = fresh_symbol(node, fmt::format("output_{}_{}", output, axis), low, high);
    }
    return result;
}

/// Whether a branch consists of one node of this operator.
bool is_only(const Graph& branch, std::string_view op_type) {
    return branch.nodes().size() == 1 && branch.nodes().front()->op_type == op_type;
}

/// Whether an If squeezes an axis in one branch and passes the tensor on in the other. Exporters guard a Squeeze in
/// this way if the axis may have another extent than 1. The ranks differ, and what follows can only work with the
/// first.
bool is_squeeze_guard(const Node& node) {
    const Graph &then_branch = node.graph("then_branch"), &else_branch = node.graph("else_branch");
    return node.outputs.size() == 1 && is_only(then_branch, "Squeeze") && is_only(else_branch, "Identity") &&
           then_branch.outputs[0]->type->rank() != else_branch.outputs[0]->type->rank();
}

/// Replaces an If by one of its branches and a check that fails at run time if the condition chooses the other.
bool require_branch(Graph& graph, Node& node, bool condition, const std::string& unfit) {
    Node require;
    require.name = node.name;
    require.origin = node.label();
    require.domain = own_domain;
    require.op_type = "RequireCondition";
    require.index = node.index;
    require.inputs = {node.inputs[0]};
    require.attributes = {{"condition", int64_t{condition}}, {unfit_branch, unfit}};
    graph.add(std::move(require), &node);
    return inline_branch(graph, node, condition);
}

bool has_two_ranks(const Node& node) {
    for (size_t i = 0; i < node.outputs.size(); ++i) {
        if (has_two_ranks(node, i)) return true;
    }
    return false;
}

/// Infers a branch. Returns why it does not fit what followed the If, which is in the branch now; empty if it does.
std::string infer_branch(const Node& node, Graph& branch) {
    try {
        infer_types(branch);
    } catch (const CompileError& error) {
        if (!has_taken_in(node)) throw;
        return error.what();
    }
    return {};
}

}  // namespace

std::string unfit_branches(Graph& graph) {
    std::string first;
    size_t count = 0;
    for_each_graph(graph, [&](Graph& each) {
        for (const auto& node : each.nodes()) {
            const std::string unfit = node->string(unfit_branch, "");
            if (unfit.empty()) continue;
            if (count++ == 0)
                first = fmt::format("node '{}' (If): {} fails at run time: its results have another rank and do not "
                                    "fit what follows: {}",
                                    node->name, node->integer("condition") != 0 ? "else_branch" : "then_branch", unfit);
        }
    });
    return count > 1 ? fmt::format("{}; and {} more such branches", first, count - 1) : first;
}

bool infer_if(Graph& graph, Node& node) {
    if (node.inputs.empty() || !node.inputs[0]) throw CompileError("input 0 (cond) is missing");
    require_one_element(graph, node, 0, "cond", ElementType::boolean);
    Graph &then_branch = node.graph("then_branch"), &else_branch = node.graph("else_branch");
    for (const Graph* branch : {&then_branch, &else_branch}) {
        if (branch->outputs.size() != node.outputs.size())
            throw CompileError("a branch has {} outputs, expected {}", branch->outputs.size(), node.outputs.size());
    }
    if (const auto condition = known_condition(node.inputs[0])) return inline_branch(graph, node, *condition);
    const Branches pristine{clone(then_branch), clone(else_branch)};
    const std::vector<Value*> captures(node.inputs.begin() + 1, node.inputs.end());
    std::vector<std::string> unfit;
    for (Graph* branch : {&then_branch, &else_branch}) {
        for (size_t i = 0; i < captures.size(); ++i) pass_on(captures[i], branch->inputs.at(i));
        unfit.push_back(infer_branch(node, *branch));
        bind_outside(captures, branch->inputs);
    }
    if (!unfit[0].empty() && !unfit[1].empty())
        throw CompileError(
            "the results of its branches have different ranks, and neither fits what follows: {}; and in else_branch, "
            "{}",
            unfit[0], unfit[1]);
    if (unfit[0] != unfit[1]) return require_branch(graph, node, unfit[0].empty(), unfit[0] + unfit[1]);
    if (is_squeeze_guard(node)) return require_branch(graph, node, true, "");
    if (has_two_ranks(node) && (return_optional(graph, node, pristine) || take_in_what_follows(graph, node, pristine)))
        return true;
    for (size_t i = 0; i < node.outputs.size(); ++i) {
        if (!node.outputs[i]) continue;
        node.outputs[i]->type = merged(node, i, *then_branch.outputs[i]->type, *else_branch.outputs[i]->type);
    }
    return false;
}

}  // namespace onnx2halide
