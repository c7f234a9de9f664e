#pragma once

#include <memory>
#include <vector>

#include "compiler/graph/graph.h"

namespace onnx2halide {

/// The part of a graph that depends on constants only, as a graph of its own, which the compiler builds and runs once.
struct FoldProgram {
    std::unique_ptr<Graph> graph;
    std::vector<const Value*> arguments;  // constants of the main graph, for the inputs of `graph`
    std::vector<Value*> results;          // values of the main graph, for its outputs
};

/// Moves every node whose inputs are all constant out of the graph. `graph` of the result is null where there is none.
/// Call set_results before anything asks for the constants.
FoldProgram cut_fold_program(Graph& graph);

/// A node and all that it follows from, which stay where they are, for its results. `graph` of the result is null where
/// they do not follow from constants, or no program can have them.
FoldProgram copy_fold_program(Node& node);

/// Makes the results constants of the main graph.
void set_results(FoldProgram& program, std::vector<Constant> constants);

}  // namespace onnx2halide
