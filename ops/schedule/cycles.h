#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "compiler/graph/dim.h"
#include "ops/schedule/target.h"

// What the estimates for schedules share: extents, and times in cycles of one core.
namespace onnx2halide {

/// Typical heights and widths of images, and numbers of frames or tokens of sequences.
constexpr int64_t usual_extent = 512;
/// An extent for estimates; for an open one, a typical size: that of dims of the model's inputs is `usual`.
int64_t estimate(const Dim& extent, int64_t usual = usual_extent);
/// What an open extent of this estimate is for images of the usual sizes.
std::vector<int64_t> usual_extents(int64_t estimate);

constexpr int64_t cache_line_bytes = 64;
/// The stride at which addresses conflict: a load waits for an earlier store to the same offset in another page, and
/// such addresses map to the same set of the nearest cache.
constexpr int64_t page_bytes = 4096;
constexpr int64_t level1_bytes = 32 << 10, level3_bytes = 16 << 20;  // of caches; the second level is the target's
// Bytes per cycle that one core reads. They differ by about a factor of two between machines, their ratios by less.
// From memory: the target's.
constexpr double level2_rate = 24, level3_rate = 12;
/// Whether so many elements, so many bytes apart, evict each other from the first-level cache, which holds 8 lines
/// whose addresses are equal modulo a page.
bool conflict_in_level1(int64_t bytes_apart, int64_t elements);
/// The rate at which so many bytes, read again and again, come from the nearest cache that holds them all.
double read_rate(int64_t bytes, const Target& target);

constexpr double addition_cycles = 4;           // latency of an addition to a sum
constexpr double task_overhead = 300;           // cycles to hand a task to a thread
constexpr double copy_cycles = 0.3;             // per input element, edges included
constexpr double least_parallel_cycles = 6000;  // below which tasks are not worth it

/// The cycles of one step of a tile's reduction, at so many multiply-adds per cycle. Of two tiles with equally many
/// sums, the one with fewer loads is faster. `fetch_cycles`, which it takes to fetch operands from a farther cache,
/// overlap with the arithmetic.
double step_cycles(const Target& target, int sums, int loads, double multiply_adds, double fetch_cycles = 0);

/// How well machines with few and with many threads are used: a sum over thread counts, weighted by how common they
/// are, of the ideal time (`cycles`, that of one thread at best, divided by the threads) to the time
/// `cycles_on(threads)`.
double use_of_threads(double cycles, const std::function<double(int threads)>& cycles_on);

/// Equal tasks, and the cycles of each, with its overhead.
struct Tasks {
    int64_t count;
    double cycles;
};

/// Into strips of how many tiles, `most` or fewer, a row of `tiles` is divided so that threads are used best, if
/// `tasks_of` are the tasks that strips of that many make, and all take `cycles` on one thread at best. Of strips that
/// are as good, the longest.
int64_t best_strip(int64_t tiles, int64_t most, double cycles, const std::function<Tasks(int64_t strip)>& tasks_of);

}  // namespace onnx2halide
