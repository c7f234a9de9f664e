#pragma once

namespace onnx2halide {

/// From now on, what is freed is kept for what is allocated next: a large model's weights are allocated several times,
/// and most of what that costs are the page faults of fresh memory.
void keep_freed_memory();

/// Gives what has been freed back to the system.
void return_freed_memory();

}  // namespace onnx2halide
