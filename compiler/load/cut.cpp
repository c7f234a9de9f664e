#include "compiler/load/cut.h"

#include <algorithm>
#include <set>
#include <vector>

#include "compiler/graph/error.h"
#include "compiler/load/subgraphs.h"

namespace onnx2halide {

namespace {

/// The outputs of the node of this name, else the value of this name.
std::vector<std::string> new_outputs(const onnx::GraphProto& graph, const std::string& until) {
    std::vector<std::string> outputs;
    for (const auto& node : graph.node()) {
        if (node.name() == until)
            std::copy_if(node.output().begin(), node.output().end(), std::back_inserter(outputs),
                         [](const auto& name) { return !name.empty(); });
    }
    if (!outputs.empty()) return outputs;
    for (const auto& node : graph.node()) {
        if (std::find(node.output().begin(), node.output().end(), until) != node.output().end()) return {until};
    }
    throw CompileError("--until {}: no node has this name, and none makes a value of this name", until);
}

}  // namespace

void cut_graph(onnx::GraphProto& graph, const std::string& until) {
    const std::vector<std::string> outputs = new_outputs(graph, until);
    std::set<std::string> needed(outputs.begin(), outputs.end());
    std::vector<onnx::NodeProto> kept;
    // Nodes are in topological order, so one pass from the end finds all that the outputs depend on.
    for (auto node = graph.node().rbegin(); node != graph.node().rend(); ++node) {
        if (std::none_of(node->output().begin(), node->output().end(),
                         [&](const auto& name) { return needed.contains(name); }))
            continue;
        add_reads(*node, needed);
        kept.push_back(*node);
    }
    graph.mutable_node()->Assign(std::make_move_iterator(kept.rbegin()), std::make_move_iterator(kept.rend()));
    graph.clear_output();
    for (const std::string& output : outputs) graph.add_output()->set_name(output);
}

}  // namespace onnx2halide
