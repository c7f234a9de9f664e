#pragma once

#include <string>
#include <vector>

#include "compiler/graph/graph.h"

namespace onnx2halide {

/// How the values of a Loop or Scan correspond to its body's values, in the order of the operator's inputs and outputs.
struct Repetition {
    /// A loop-carried value.
    struct State {
        Value* initial;  // the node's input
        Value* input;    // the body's input: what an iteration takes
        Value* output;   // the body's output: what the next iteration takes
        Value* result;   // the node's output: what the last iteration leaves; null if unused
    };
    /// A tensor of which each iteration of a Scan takes a slice along axis 0.
    struct ScanInput {
        Value* whole;  // the node's input
        Value* slice;  // the body's input
        bool is_backwards;
    };
    /// A tensor to which each iteration appends a slice along axis 0.
    struct ScanOutput {
        Value* slice;  // the body's output
        Value* whole;  // the node's output; null if unused
        bool is_backwards;
    };
    /// A value of the enclosing graph that the body reads.
    struct Capture {
        Value* outer;  // the node's input
        Value* inner;  // the body's input
    };

    Graph* body;
    bool is_loop;                       // else a Scan
    Value* trip_count = nullptr;        // of a Loop, null if omitted
    Value* condition = nullptr;         // of a Loop, null if omitted: whether the first iteration runs
    Value* iteration_number = nullptr;  // a Loop's body's input
    Value* condition_input = nullptr;   // a Loop's body's input, which is always true
    Value* condition_output = nullptr;  // a Loop's body's output: whether the next iteration runs
    std::vector<State> states;
    std::vector<ScanInput> scan_inputs;
    std::vector<ScanOutput> scan_outputs;
    std::vector<Capture> captures;

    /// Throws CompileError if the node, its attributes and its body disagree on the number of values.
    explicit Repetition(const Node& node);
};

/// The trip count of a Scan: the number of its inputs' slices.
Dim scan_trip_count(const Repetition& scan);

/// Whether a node runs subgraphs: If, Loop, Scan.
bool is_control_flow(const Node& node);
/// Whether it runs one subgraph repeatedly: Loop, Scan.
bool is_repetition(const Node& node);

/// The name of a symbol that an If, Loop or Scan sets at run time, possibly many times: Loop_5_iteration
std::string own_symbol_name(const Node& node, const std::string& role);

}  // namespace onnx2halide
