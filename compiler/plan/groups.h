#pragma once

#include <memory>
#include <vector>

#include "compiler/graph/graph.h"
#include "ops/node_generator.h"

namespace onnx2halide {

/// Nodes that become one kernel.
struct Group {
    std::vector<const Node*> nodes;  // in topological order
    /// The node that schedules the kernel: the one that is not pointwise, or the last. Null if the group is the whole
    /// graph.
    const Node* anchor = nullptr;
};

/// Which nodes form a group.
enum class Grouping {
    nodes,  // each node by itself
    fused,  // a node and the pointwise nodes around it
    whole,  // all nodes of the graph
};

/// Cuts the graph into groups, in topological order, as is best for this target. Views, and nodes that have nothing
/// left to do, belong to no group, except that Grouping::whole includes them.
std::vector<Group> cut_groups(const Graph& graph, Grouping grouping, const Target& target);

/// The values of a group that must be stored, in the order of their nodes: those that other groups read or the graph
/// returns, and an input that the anchor keeps (see NodeGenerator::keeps_input).
std::vector<const Value*> escaping_values(const Graph& graph, const Group& group);

}  // namespace onnx2halide
