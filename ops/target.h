#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "compiler/graph/error.h"
#include "compiler/graph/tensor_type.h"

namespace onnx2halide {

/// What schedules need to know of the machine that runs the kernels, read from a Halide target string.
struct Target {
    std::string text;                // x86-64-linux-avx2-fma, `host` resolved
    std::string short_name;          // avx2: the features that none of its others implies; x86_64 where it has none
    std::vector<uint64_t> features;  // with the implied ones, a bit each, as Halide's runtime numbers them
    int vector_bytes = 16;           // of one register
    int vector_registers = 16;
    int multiply_adds = 2;      // of whole registers, that begin in a cycle
    double loads = 2;           // that begin in a cycle
    bool has_masks = false;     // of loads and stores: of vectors that are not full
    int operand_registers = 1;  // in which a multiply-add's operands wait on their way from memory
    // 16-bit integers that are multiplied and added, in pairs, in the time of a float; 0 where pairs gain nothing.
    int pair_rate = 0;
    int quad_rate = 0;  // the same of 8-bit integers, of which one has a sign and one has none, in quads
    enum class Gpu { none, opencl, cuda } gpu = Gpu::none;

    /// Multiply-adds of vectors of so many bytes that begin in a cycle: two at most, where halves of a register count.
    double multiply_adds_of(int bytes) const { return std::min(2.0, double(multiply_adds) * vector_bytes / bytes); }
    /// Elements of a type in one register, 1 or more.
    int lanes(ElementType type) const;
    /// Whether a tile's sums and the vectors that all of them share stay in registers while other operands come by.
    bool fit_in_registers(int sums, int shared) const { return sums + shared + operand_registers <= vector_registers; }
    bool is_gpu() const { return gpu != Gpu::none; }

    /// Throws CompileError for a text that Halide does not know.
    static Target parse(const std::string& text);
};

/// The targets of a list that is separated by commas: instruction sets of one processor, the best first, of which a
/// library takes the first that its machine has. Throws CompileError for a list of which one is never taken.
std::vector<Target> parse_targets(const std::string& list);
/// The list again, with `host` resolved.
std::string targets_text(const std::vector<Target>& targets);

}  // namespace onnx2halide
