#pragma once

#include <memory>
#include <vector>

#include "compiler/graph/graph.h"
#include "ops/node_generator.h"

namespace onnx2halide {

/// Nodes that become one kernel.
struct Group {
    std::vector<const Node*> nodes;  // in topological order
    /// Whose schedule the kernel has: the one node that is not pointwise, or the last. None where it is the whole
    /// graph.
    const Node* anchor = nullptr;
};

/// What becomes one group.
enum class Grouping {
    nodes,  // each node
    fused,  // a node and the pointwise nodes around it
    whole,  // the graph
};

/// Cuts the graph into groups, in the order in which they can run. Nodes that only rename memory (views), and those for
/// which nothing is left to do, belong to none, but to the whole graph.
std::vector<Group> cut_groups(const Graph& graph, Grouping grouping);

/// Values of a group that others read or that it keeps whole, in the order of their nodes.
std::vector<const Value*> escaping_values(const Graph& graph, const Group& group);

}  // namespace onnx2halide
