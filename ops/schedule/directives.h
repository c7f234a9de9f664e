#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace onnx2halide {

/// Halide's scheduling directives for one stage, as text: {"reorder(x, y)", "vectorize(x, 16)"}.
using Directives = std::vector<std::string>;

/// Splits a loop into blocks of `factor` iterations, the last of which is as this strategy says: `RoundUp`.
std::string split(const std::string& var, const std::string& outer, const std::string& factor, std::string_view tail);

/// Splits a loop of any extent; iterations past its end are guarded.
std::string guarded_split(const std::string& var, const std::string& outer, const std::string& factor);

/// Splits a loop of at least `factor` iterations; the last block is shifted inwards and computes some elements again.
std::string shifted_split(const std::string& var, const std::string& outer, const std::string& factor);

/// Takes loops innermost first and skips empty names.
std::string reorder(std::vector<std::string> loops);

std::string unroll(const std::string& loop);
/// One directive per loop.
Directives unroll_all(const std::vector<std::string>& loops);

/// A whole loop as one vector.
std::string vectorize(const std::string& loop);

/// A loop of any extent in vectors of so many elements; those past its end are guarded.
std::string guarded_vectors(const std::string& loop, const std::string& lanes);

std::string parallel(const std::string& loop);

/// Keeps a loop whose last iterations are shorter or guarded in one piece: Halide would copy what is inside for those
/// without guards, which pays only where guards are many.
std::string keep_whole(const std::string& loop);
/// What schedules say of such loops.
constexpr const char* whole_comment =
    "// The last tiles end the loop earlier: a copy of it for the others is no faster.";

std::string compute_at(const std::string& func, const std::string& loop);

/// The most elements of a Func that are needed at once along a dimension, where Halide derives no constant.
std::string bound_storage(const std::string& var, const std::string& elements);
/// What schedules say of such bounds.
constexpr const char* bounds_comment = "// Its size is bounded by a constant: no run allocates it.";
/// The same for several dimensions, of which those of a single element need no bound.
Directives bound_storage(std::span<const std::string> vars, const std::vector<int64_t>& elements);

/// Rounds a Func's extent along a dimension in memory up to a multiple of so many elements.
std::string align_storage(const std::string& var, const std::string& elements);

/// A parameter that users may set too high, clamped to `most`. (Halide's min of a GeneratorParam returns a dangling
/// reference.)
std::string held(const std::string& param, int64_t most);

/// The smaller of two C++ expressions: `std::min(pixels, strip)`
std::string smaller(const std::string& a, const std::string& b);

// Lists of directives or of loops.
void append(std::vector<std::string>& list, const std::vector<std::string>& more);
std::vector<std::string> joined(std::vector<std::string> first, const std::vector<std::string>& second);
std::vector<std::string> joined(std::initializer_list<std::vector<std::string>> lists);

}  // namespace onnx2halide
