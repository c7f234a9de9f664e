#pragma once

#include <vector>

#include "compiler/graph/graph.h"

namespace onnx2halide {

/// How the values of a Loop or Scan correspond to its body's values, in the order of the operator's inputs and outputs.
struct Repetition {
    Graph* body;
    bool is_loop;  // Loop: the body also takes the iteration number and a condition, and returns a condition
    Value *count, *condition;           // of a Loop: the trip count and the first condition; null if omitted
    std::vector<Value*> states;         // what the first iteration takes
    std::vector<Value*> state_inputs;   // the body's inputs for them
    std::vector<Value*> state_outputs;  // what the next iteration takes instead
    std::vector<Value*> state_results;  // what the last iteration leaves; null if unused
    std::vector<Value*> scans;          // what a Scan slices along axis 0
    std::vector<Value*> scan_inputs;    // the body's inputs for the slices
    std::vector<bool> scan_backwards;
    std::vector<Value*> slices;         // what each iteration appends …
    std::vector<Value*> slice_results;  // … to a result along axis 0; null if unused
    std::vector<bool> slice_backwards;
    std::vector<Value*> captures;      // values of the enclosing graph …
    std::vector<Value*> captured;      // … and the body's values for them
    Value* turn = nullptr;             // a Loop's body's input for the iteration number
    Value* condition_input = nullptr;  // likewise
    Value* condition_output = nullptr;

    explicit Repetition(const Node& node);
};

/// The trip count of a Scan: the number of its inputs' slices.
Dim scan_trip_count(const Repetition& scan);

/// Whether a node runs subgraphs: If, Loop, Scan.
bool is_control_flow(const Node& node);
/// Whether it runs one subgraph repeatedly: Loop, Scan.
bool is_repetition(const Node& node);

}  // namespace onnx2halide
