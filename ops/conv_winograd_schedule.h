#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ops/kernel_source.h"
#include "ops/winograd_walk.h"

namespace onnx2halide {

/// Schedules a kernel whose anchor is a WinogradConv with tiles of the loops' places: strips of tiles, each with its
/// transformed inputs; in a strip tiles of channels, each with all its products; then the outputs from them. `terms`
/// are the RVars of a product's terms, innermost first; `func` finds the algorithm's Funcs by WinogradConv's roles.
void schedule_winograd(KernelSource& source, const WinogradLoops& loops, const std::vector<std::string>& terms,
                       const std::function<std::string(const char*)>& func);

}  // namespace onnx2halide
