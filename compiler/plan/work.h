#pragma once

#include "compiler/plan/program.h"

namespace onnx2halide {

/// What one run of a step does: its floating-point operations, a multiply-add counting two, and the bytes of the
/// tensors that it reads and writes.
struct Work {
    Dim flops, bytes_read, bytes_written;
};

Work work_of(const Step& step);

}  // namespace onnx2halide
