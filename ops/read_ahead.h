#pragma once

#include <cstdint>
#include <string>

#include "ops/directives.h"

namespace onnx2halide {

/// An operand of sums that lies farther away than the second cache and is read there. Each of a tile's items, a pixel
/// or a row, has a run of elements for its products; the runs of neighbours follow each other.
struct DistantOperand {
    std::string name;      // of the buffer; empty where there is no such operand
    int64_t distance = 0;  // from an item's run to that of the next, in elements
};

/// Whether an operand of so many bytes with runs of so many is distant, and worth to be asked for: in runs of cache
/// lines, but no pages, along which processors see what comes.
bool is_distant(int64_t bytes, int64_t run_bytes);

/// Turns of the loop over a run, of so many elements, in which a cache line is read; fewer where these do not divide
/// it.
int64_t turns_of_line(int64_t run, int element_bytes);

/// For the sums of a tile with so many items ("14"), whose innermost loop goes over the runs: unrolls what reads a
/// cache line, and with each asks for that of the next tile. Processors do not foresee what so many items read one
/// beside the other, and of all lines asked for at once most would wait.
Directives read_ahead(const DistantOperand& operand, const std::string& loop, int64_t turns, const std::string& items);

}  // namespace onnx2halide
