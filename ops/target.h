#pragma once

#include <string>

#include "compiler/graph/error.h"
#include "compiler/graph/tensor_type.h"

namespace onnx2halide {

/// What schedules need to know of the machine that runs the kernels, read from a Halide target string.
struct Target {
    std::string text;       // x86-64-linux-avx2-fma, `host` resolved
    int vector_bytes = 16;  // of one register
    int vector_registers = 16;
    int multiply_adds = 2;  // of whole registers, that begin in a cycle
    enum class Gpu { none, opencl, cuda } gpu = Gpu::none;

    /// Elements of a type in one register, 1 or more.
    int lanes(ElementType type) const;
    bool is_gpu() const { return gpu != Gpu::none; }

    /// Throws CompileError for a text that Halide does not know.
    static Target parse(const std::string& text);
};

}  // namespace onnx2halide
