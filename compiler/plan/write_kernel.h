#pragma once

#include <string>
#include <vector>

#include "compiler/plan/groups.h"
#include "ops/kernel_source.h"

namespace onnx2halide {

/// The class `name` of a group's kernel, whose results `escaping` leave it. Throws CompileError, which names the node,
/// for one that has no algorithm for its types or the target.
KernelSource write_kernel(const Group& group, const std::vector<const Value*>& escaping, const Target& target,
                          const std::string& name, KernelSource::Naming naming);

}  // namespace onnx2halide
