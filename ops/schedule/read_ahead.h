#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ops/kernel_source.h"
#include "ops/schedule/directives.h"
#include "ops/schedule/target.h"

namespace onnx2halide {

/// Unrolled iterations of a loop of sums: enough to hide the loop's overhead, and few enough that the sums stay in
/// registers beside a prefetch.
constexpr int64_t unroll_limit = 4;

/// An operand of sums that does not fit in the second-level cache and is read in place. Each item of a tile, a pixel or
/// a row, has a run of contiguous elements for its products; the runs of neighbours follow each other.
struct DistantOperand {
    std::string name;      // of the buffer; empty if there is no such operand
    int64_t distance = 0;  // the stride between the runs of neighbouring items, in elements
};

/// Whether an operand of so many bytes, with runs of so many, is distant: the second-level cache does not hold it, and
/// its runs are longer than cache lines, but not pages, along which hardware prefetchers see what comes next.
bool is_distant(int64_t bytes, int64_t run_bytes, const Target& target);

/// Whether a distant operand that is read once or a few times is worth prefetching: not on a target that follows runs.
bool prefetches_distant(int64_t bytes, int64_t run_bytes, const Target& target);

/// Whether to prefetch the weights of the next tile of channels or columns during the sums for so many items (pixels or
/// rows): these would otherwise wait for weights that come from memory or a far cache, one tile's after another's. Few
/// items are bound by memory anyway, and hardware prefetchers follow their reads; few weights, of so many bytes, are
/// soon in a near cache.
bool hides_next_weights(int64_t items, int64_t weight_bytes);

/// The directive that prefetches what a loop reads of a buffer so many iterations ("14 * 8") later. The address follows
/// from this iteration's, even past the end, where other weights follow or the prefetch has no effect.
std::string prefetch(const std::string& buffer, const std::string& loop, const std::string& iterations);

/// The same, so many items or blocks ("14") later, each of which takes so many elements of the loop before `iterations`
/// of its iterations were unrolled into one.
std::string prefetch(const std::string& buffer, const std::string& loop, const std::string& items, int64_t elements,
                     int64_t iterations);

/// Operands of the epilogue of sums that are as large as the kernel's result, such as residuals, and more than the
/// second-level cache holds: a tile's sums would wait for them. `sums_inputs` are what the sums themselves are computed
/// from.
std::vector<std::string> waited_for(KernelSource& source, const std::vector<Value*>& sums_inputs);

/// Directives that prefetch what the next tile reads of these operands, `loop` being the one over tiles.
Directives prefetch_next(const std::vector<std::string>& operands, const std::string& loop);

/// How many iterations of a loop of sums, each of so many steps at once, may be unrolled into one. The compiler adds up
/// integers of unrolled iterations before it adds them to a sum: more of them would not stay in registers.
int64_t most_unrolled(int64_t steps, const Target& target);

/// The iterations of a loop of sums, of a positive length, that are unrolled into one: up to `most`.
int64_t unrolled_iterations(int64_t length, int64_t most = unroll_limit);

/// The blocks in which weights are stored that a tile of so many channels ("lanes * vectors") covers, as text.
std::string blocks_of(const std::string& channels, int64_t block);

}  // namespace onnx2halide
