#pragma once

#include <cstdint>
#include <string>

#include "ops/directives.h"

namespace onnx2halide {

/// An operand of sums that does not fit in the second-level cache and is read in place. Each item of a tile, a pixel or
/// a row, has a run of contiguous elements for its products; the runs of neighbours follow each other.
struct DistantOperand {
    std::string name;      // of the buffer; empty if there is no such operand
    int64_t distance = 0;  // the stride between the runs of neighbouring items, in elements
};

/// Whether an operand of so many bytes, with runs of so many, is distant and worth prefetching: its runs are longer
/// than cache lines, but not pages, along which hardware prefetchers see what comes next.
bool is_distant(int64_t bytes, int64_t run_bytes);

/// The iterations of the loop over a run, of so many elements, that read one cache line; fewer if these do not divide
/// the run.
int64_t turns_of_line(int64_t run, int element_bytes);

/// Directives for the sums of a tile with so many items ("14"), whose innermost loop runs over the runs: unroll the
/// iterations that read a cache line, and prefetch the corresponding line of the next tile. Hardware prefetchers do not
/// predict the interleaved reads of so many items, and if all lines were requested at once, most would have to wait.
Directives read_ahead(const DistantOperand& operand, const std::string& loop, int64_t turns, const std::string& items);

}  // namespace onnx2halide
