#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace onnx2halide {

/// Halide's scheduling calls on one stage, as text: {"reorder(x, y)", "vectorize(x, 16)"}.
using Directives = std::vector<std::string>;

/// Splits a loop of any extent; what lies behind its end is left out.
std::string guarded_split(const std::string& var, const std::string& outer, const std::string& factor);

/// Splits a loop of `factor` turns or more; the last ones are shifted inwards, and compute some elements again.
std::string shifted_split(const std::string& var, const std::string& outer, const std::string& factor);

/// Loops innermost first; those without a name are none.
std::string reorder(std::vector<std::string> loops);

std::string unroll(const std::string& loop);

std::string compute_at(const std::string& func, const std::string& loop);

/// A parameter that a person may set too high, held to what there is. (Halide's min of a GeneratorParam returns a
/// reference to a number that is gone by then.)
std::string held(const std::string& param, int64_t most);

/// `std::min(pixels, strip)`: of two C++ expressions
std::string smaller(const std::string& a, const std::string& b);

Directives joined(Directives first, const Directives& second);

}  // namespace onnx2halide
