#pragma once

#include "compiler/graph/graph.h"

namespace onnx2halide {

/// The branches of an If as they are before inference.
struct Branches {
    std::shared_ptr<Graph> then_branch, else_branch;
};

/// Whether an output of an If that something reads has another rank in one branch than in the other.
bool has_two_ranks(const Node& node, size_t output);

/// An If whose results have another rank in one branch than in the other is right in ONNX, but no value here has two
/// ranks. What follows from its results becomes part of both branches, and an If with these, not inferred yet, stands
/// at the graph's end. False where that cannot be: such a result is the graph's own, or this has happened too often, as
/// each time doubles what follows.
bool take_in_what_follows(Graph& graph, Node& node, const Branches& branches);

/// Whether this If is one with what followed in its branches.
bool has_taken_in(const Node& node);

}  // namespace onnx2halide
