#pragma once

#include <cstdint>
#include <functional>

#include "compiler/graph/dim.h"
#include "ops/target.h"

// What the estimates behind schedules share: extents, and times in cycles of one core.
namespace onnx2halide {

/// An extent for estimates: what an open one may well be.
int64_t estimate(const Dim& extent);

constexpr int64_t cache_line_bytes = 64;
/// From where on places in memory look alike to a core: a read waits for a write that is whole pages before it, and
/// what lies whole pages apart falls into one set of the nearest cache.
constexpr int64_t page_bytes = 4096;
constexpr int64_t level1_bytes = 32 << 10, level2_bytes = 1 << 20, level3_bytes = 16 << 20;  // of caches
// Bytes a cycle that one core reads. They differ by some two times between machines, the ratios less.
constexpr double level2_rate = 24, level3_rate = 12, memory_rate = 5;
/// From where so many bytes stay that are read again and again.
double read_rate(int64_t bytes);

constexpr double addition_cycles = 4;           // from where on a sum can be added to again
constexpr double task_overhead = 300;           // cycles of handing a task to a thread
constexpr double copy_cycles = 0.3;             // of an input element and its edges
constexpr double least_parallel_cycles = 6000;  // below which tasks are not worth it

/// Of one step of a tile's reduction, with so many multiply-adds a cycle.
/// Of tiles with as many sums the one with fewer loads is faster. Operands that take `fetch_cycles` on their way from a
/// farther cache come meanwhile.
double step_cycles(const Target& target, int sums, int loads, double multiply_adds, double fetch_cycles = 0);

/// The sum of how well machines with few and with many threads are used: `cycles_on(threads)` is what takes them, of
/// work that takes one thread `cycles` at best. A machine's share counts by how common it is.
double use_of_threads(double cycles, const std::function<double(int threads)>& cycles_on);

}  // namespace onnx2halide
