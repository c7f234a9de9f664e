#pragma once

#include <string>
#include <vector>

#include "compiler/plan/groups.h"
#include "ops/kernel_source.h"

namespace onnx2halide {

/// Writes the class `name` for the kernel of a group, whose outputs are `escaping`. Throws CompileError, which names
/// the node, if a node has no algorithm for its types or for the target.
KernelSource write_kernel(const Group& group, const std::vector<const Value*>& escaping, const Target& target,
                          const std::string& name, KernelSource::Naming naming);

}  // namespace onnx2halide
