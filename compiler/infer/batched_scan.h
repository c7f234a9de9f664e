#pragma once

#include "compiler/graph/graph.h"

namespace onnx2halide {

/// Rewrites a Scan (8), which goes over a batch of sequences whose lengths are an input, as a Scan (9) over the batch
/// whose body is a Scan (9) over one sequence. Results are 0 after the end of a sequence; ONNX leaves them open.
void split_off_batch(Node& node);

}  // namespace onnx2halide
