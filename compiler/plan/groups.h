#pragma once

#include <memory>
#include <vector>

#include "compiler/graph/graph.h"
#include "ops/node_generator.h"

namespace onnx2halide {

/// Nodes that become one kernel.
struct Group {
    std::vector<const Node*> nodes;  // in topological order
    const Node* anchor = nullptr;    // whose schedule the kernel has: the one node that is not pointwise, or the last
};

/// Cuts the graph into groups, in the order in which they can run. Nodes that only rename memory (views) belong to
/// none.
std::vector<Group> cut_groups(const Graph& graph, bool fuse);

/// Values of a group that others read, in the order of their nodes.
std::vector<const Value*> escaping_values(const Graph& graph, const Group& group);

}  // namespace onnx2halide
