#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "compiler/graph/error.h"
#include "compiler/graph/tensor_type.h"

namespace onnx2halide {

/// What schedules need to know about the machine that runs the kernels, from a Halide target string.
struct Target {
    std::string text;                // x86-64-linux-avx2-fma, `host` resolved
    std::string short_name;          // avx2: the features that no other one implies; x86_64 if there are none
    std::vector<uint64_t> features;  // including implied ones, as a bit set with the numbers of Halide's runtime
    int vector_bytes = 16;           // of one register
    int vector_registers = 16;
    int multiply_adds = 2;  // of whole registers, started per cycle
    double loads = 2;       // started per cycle
    // Of the second-level cache: half of this on x86 without AVX-512, such as Zen 2 and 3.
    int64_t level2_bytes = 1 << 20;
    // Bytes per cycle that one core reads from memory: fewer on x86 without AVX-512 (measured on Zen 3: 12 GB/s).
    double memory_rate = 7;
    // Whether hardware prefetchers follow runs that are shorter than pages by themselves, once a run is begun.
    bool follows_runs = false;
    bool has_masks = false;     // whether loads and stores of partial vectors can be masked
    int operand_registers = 1;  // that hold a multiply-add's operands on their way from memory
    // The number of 16-bit integers multiplied and added, in pairs, in the time of a float; 0 if pairs are no faster.
    int pair_rate = 0;
    int quad_rate = 0;                 // the same for quads of 8-bit integers, one operand unsigned, the other signed
    bool multiplies_matrices = false;  // whether instructions multiply matrices of bytes (AMX)
    enum class Gpu { none, opencl, cuda } gpu = Gpu::none;

    /// Multiply-adds of vectors of so many bytes, started per cycle: of half registers twice as many, but at most two.
    double multiply_adds_of(int bytes) const { return std::min(2.0, double(multiply_adds) * vector_bytes / bytes); }
    /// Elements of a type in one register; at least 1.
    int lanes(ElementType type) const;
    /// Whether a tile's sums, and the vectors that all of them share, stay in registers while other operands pass.
    bool fit_in_registers(int sums, int shared) const { return sums + shared + operand_registers <= vector_registers; }
    bool is_gpu() const { return gpu != Gpu::none; }
    /// Whether a product of pairs is added to a sum by an instruction of its own.
    bool adds_pairs_separately() const { return pair_rate == 1; }

    /// Throws CompileError for a text that Halide does not accept.
    static Target parse(const std::string& text);
};

/// The targets of a comma-separated list: instruction sets of one processor, best first, of which a library uses the
/// first that its machine supports. Throws CompileError if one of them can never be chosen.
std::vector<Target> parse_targets(const std::string& list);
/// The list as text, with `host` resolved.
std::string targets_text(const std::vector<Target>& targets);

}  // namespace onnx2halide
