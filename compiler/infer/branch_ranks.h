#pragma once

#include "compiler/graph/graph.h"

namespace onnx2halide {

/// The branches of an If as they are before inference.
struct Branches {
    std::shared_ptr<Graph> then_branch, else_branch;
};

/// Whether an output of an If that something reads has another rank in one branch than in the other, or is an optional
/// value in one, as that of an If inside which has two ranks is.
bool has_two_ranks(const Node& node, size_t output);

/// An If whose results have another rank in one branch than in the other is right in ONNX, but no value here has two
/// ranks. Those that the graph returns become optional values, which hold tensors of any rank, of an If that stands
/// behind the node, not inferred yet. False where there are none.
bool return_optional(Graph& graph, const Node& node, const Branches& branches);

/// Of such results that other nodes read, what follows from its results becomes part of both branches, and an If with
/// these, not inferred yet, stands at the graph's end. False where this has happened too often, as each time doubles
/// what follows.
bool take_in_what_follows(Graph& graph, Node& node, const Branches& branches);

/// Whether this If is one with what followed in its branches.
bool has_taken_in(const Node& node);

}  // namespace onnx2halide
