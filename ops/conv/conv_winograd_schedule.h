#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ops/conv/winograd_walk.h"
#include "ops/kernel_source.h"

namespace onnx2halide {

/// Schedules a kernel whose anchor is a WinogradConv with tiles of the loops' places: strips of tiles, each with its
/// transformed inputs; within a strip tiles of channels, each with all its products; then the outputs. `terms` are the
/// RVars of a product's terms, innermost first; `weights` is the name of the weights' buffer; `func` maps
/// WinogradConv's roles to the algorithm's Funcs. The kernel's output may be a pool of such windows, which divide the
/// outputs of a tile.
void schedule_winograd(KernelSource& source, const WinogradLoops& loops, const std::vector<std::string>& terms,
                       const std::string& weights, const std::function<std::string(const char*)>& func,
                       const PooledWindow& pooled = {});

}  // namespace onnx2halide
