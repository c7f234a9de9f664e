#pragma once

#include "compiler/graph/graph.h"

namespace onnx2halide {

/// Scan (8) goes over the sequences of a batch, each as long as an input says. Makes of it a Scan (9) over the batch,
/// whose body is a Scan (9) over one sequence. What a result has behind a sequence's end, which ONNX leaves open, is 0.
void split_off_batch(Node& node);

}  // namespace onnx2halide
