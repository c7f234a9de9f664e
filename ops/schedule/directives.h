#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace onnx2halide {

/// Halide's scheduling directives for one stage, as text: {"reorder(x, y)", "vectorize(x, 16)"}.
using Directives = std::vector<std::string>;

/// Splits a loop of any extent; iterations past its end are guarded.
std::string guarded_split(const std::string& var, const std::string& outer, const std::string& factor);

/// Splits a loop of at least `factor` iterations; the last block is shifted inwards and computes some elements again.
std::string shifted_split(const std::string& var, const std::string& outer, const std::string& factor);

/// Takes loops innermost first and skips empty names.
std::string reorder(std::vector<std::string> loops);

std::string unroll(const std::string& loop);

/// A whole loop as one vector.
std::string vectorize(const std::string& loop);

std::string parallel(const std::string& loop);

std::string compute_at(const std::string& func, const std::string& loop);

/// A parameter that users may set too high, clamped to `most`. (Halide's min of a GeneratorParam returns a dangling
/// reference.)
std::string held(const std::string& param, int64_t most);

/// The smaller of two C++ expressions: `std::min(pixels, strip)`
std::string smaller(const std::string& a, const std::string& b);

Directives joined(Directives first, const Directives& second);

}  // namespace onnx2halide
