#pragma once

#include <memory>
#include <vector>

#include "compiler/graph/graph.h"

namespace onnx2halide {

/// The part of a graph that depends on constants only, as a graph of its own, which the compiler builds and runs.
struct FoldProgram {
    std::unique_ptr<Graph> graph;
    std::vector<const Value*> arguments;  // constants of the main graph, for the inputs of `graph`
    std::vector<Value*> results;          // values of the main graph, for its outputs
};

/// Moves every node that depends on constants only out of the graph and its subgraphs. The result's `graph` is null if
/// there are none. The constants must be set by set_results before anything reads them.
FoldProgram cut_fold_program(Graph& graph);

/// A program that computes the outputs of one node: copies of the node and of all that it depends on. The result's
/// `graph` is null if these do not depend on constants only, or include nodes that a fold program cannot run.
FoldProgram copy_fold_program(Node& node);

/// Makes the results constants of the main graph.
void set_results(FoldProgram& program, std::vector<Constant> constants);

}  // namespace onnx2halide
