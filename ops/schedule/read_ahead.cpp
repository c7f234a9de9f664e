#include "ops/schedule/read_ahead.h"

#include <fmt/format.h>

#include "ops/schedule/cycles.h"

namespace onnx2halide {

bool is_distant(int64_t bytes, int64_t run_bytes, const Target& target) {
    const bool is_long = run_bytes >= cache_line_bytes && run_bytes <= page_bytes;
    return !target.follows_runs && bytes > target.level2_bytes && is_long;
}

bool hides_next_weights(int64_t items, int64_t weight_bytes) {
    constexpr int64_t few_items = 4;
    return items > few_items && weight_bytes > 2 * level1_bytes;
}

std::string prefetch(const std::string& buffer, const std::string& loop, const std::string& iterations) {
    return fmt::format("prefetch({0}, {1}, {1}, {2}, PrefetchBoundStrategy::NonFaulting)", buffer, loop, iterations);
}

std::string prefetch(const std::string& buffer, const std::string& loop, const std::string& items, int64_t elements,
                     int64_t iterations) {
    return prefetch(buffer, loop, fmt::format("{} * {} / {}", items, elements, iterations));
}

int64_t unrolled_iterations(int64_t length) {
    int64_t iterations = unroll_limit;
    while (length % iterations != 0) iterations /= 2;
    return iterations;
}

std::string blocks_of(const std::string& channels, int64_t block) {
    return fmt::format("({} + {}) / {}", channels, block - 1, block);
}

}  // namespace onnx2halide
