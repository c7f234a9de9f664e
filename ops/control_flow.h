#pragma once

#include <vector>

#include "compiler/graph/graph.h"

namespace onnx2halide {

/// How the values of a Loop or Scan correspond to those of its body, in the order of the operator's inputs and outputs.
struct Repetition {
    Graph* body;
    bool is_loop;                // a Loop, whose body also takes the turn and a condition, and returns a condition
    Value *count, *condition;    // of a Loop: how often, and whether at all; null where omitted
    std::vector<Value*> states;  // what the first turn takes
    std::vector<Value*> state_inputs;   // as what the body takes them
    std::vector<Value*> state_outputs;  // what the next turn takes instead
    std::vector<Value*> state_results;  // what the last turn leaves; null where nobody asks
    std::vector<Value*> scans;          // along whose axis 0 a Scan goes
    std::vector<Value*> scan_inputs;    // their slices
    std::vector<bool> scan_backwards;
    std::vector<Value*> slices;         // what a turn adds …
    std::vector<Value*> slice_results;  // … to a result along axis 0; null where nobody asks
    std::vector<bool> slice_backwards;
    std::vector<Value*> captures;      // of the graph around …
    std::vector<Value*> captured;      // … and as what the body reads them
    Value* turn = nullptr;             // of a Loop's body
    Value* condition_input = nullptr;  // likewise
    Value* condition_output = nullptr;

    explicit Repetition(const Node& node);
};

/// How often a Scan's body runs: as often as its inputs have slices.
Dim scan_turns(const Repetition& scan);

/// Whether a node runs graphs: If, Loop, Scan.
bool is_control_flow(const Node& node);
/// Whether it runs one graph again and again: Loop, Scan.
bool is_repetition(const Node& node);

}  // namespace onnx2halide
