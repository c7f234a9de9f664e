#include "ops/read_ahead.h"

#include <fmt/format.h>

#include "ops/cycles.h"

namespace onnx2halide {

bool is_distant(int64_t bytes, int64_t run_bytes) {
    constexpr int64_t page_bytes = 4096;
    return bytes > level2_bytes && run_bytes >= cache_line_bytes && run_bytes <= page_bytes;
}

int64_t turns_of_line(int64_t run, int element_bytes) {
    int64_t turns = cache_line_bytes / element_bytes;
    while (run % turns != 0) turns /= 2;
    return turns;
}

Directives read_ahead(const DistantOperand& operand, const std::string& loop, int64_t turns, const std::string& items) {
    // The address of the next tile follows from this one's, even past the end, where the prefetch has no effect.
    return {fmt::format("unroll({}, {})", loop, turns),
            fmt::format("prefetch({0}, {1}, {1}, {2} * {3} / {4}, PrefetchBoundStrategy::NonFaulting)", operand.name,
                        loop, items, operand.distance, turns)};
}

}  // namespace onnx2halide
