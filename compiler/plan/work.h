#pragma once

#include "compiler/plan/program.h"

namespace onnx2halide {

/// The work of one execution of a step: floating-point operations, where a multiply-add counts as two, and the bytes of
/// the tensors that it reads and writes.
struct Work {
    Dim flops, bytes_read, bytes_written;
};

Work work_of(const Step& step);

}  // namespace onnx2halide
