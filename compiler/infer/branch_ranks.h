#pragma once

#include "compiler/graph/graph.h"

namespace onnx2halide {

/// The branches of an If as they were before inference.
struct Branches {
    std::shared_ptr<Graph> then_branch, else_branch;
};

/// Whether an output of an If, unless it is omitted, has different ranks in the two branches or is optional in only one
/// of them. It is optional in a branch if it comes from an inner If that has two ranks itself.
bool has_two_ranks(const Node& node, size_t output);

/// ONNX allows the results of an If to have different ranks in the two branches, but a Value has one rank. This makes
/// such results that the graph returns optional values, which hold tensors of any rank: it adds, after the node,
/// another If that returns them and is still to be inferred. Returns whether there were any.
bool return_optional(Graph& graph, const Node& node, const Branches& branches);

/// Handles such results that other nodes read: all nodes that depend on the If move into both of its branches, and a
/// new If with these branches, still to be inferred, is added at the end of the graph. Returns false if no node depends
/// on the If, or if this has happened too often already, as each time duplicates the dependent nodes.
bool take_in_what_follows(Graph& graph, Node& node, const Branches& branches);

/// Whether this If was made by take_in_what_follows.
bool has_taken_in(const Node& node);

}  // namespace onnx2halide
