#pragma once

#include <string>
#include <utility>
#include <vector>

#include "Halide.h"

// What lowering passes share.
namespace onnx2halide {

/// The lets around a statement, the outermost first.
using Lets = std::vector<std::pair<std::string, Halide::Expr>>;

/// An expression in terms of loops and arguments only.
Halide::Expr without_lets(Halide::Expr e, const Lets& lets);

/// Prefetches the cache line at so many bytes from a pointer into all caches. Halide's own intrinsic is for data that
/// is used once, and on some processors bypasses the second-level cache. The instruction that an extern function of
/// this name becomes is declared in every module, as Halide's runtime uses it.
Halide::Internal::Stmt prefetched(const Halide::Expr& pointer, const Halide::Expr& bytes);

}  // namespace onnx2halide
