#include "ops/schedule/read_ahead.h"

#include <algorithm>

#include <fmt/format.h>

#include "ops/schedule/cycles.h"

namespace onnx2halide {

bool is_distant(int64_t bytes, int64_t run_bytes, const Target& target) {
    const bool is_long = run_bytes >= cache_line_bytes && run_bytes <= page_bytes;
    return bytes > target.level2_bytes && is_long;
}

bool prefetches_distant(int64_t bytes, int64_t run_bytes, const Target& target) {
    return !target.follows_runs && is_distant(bytes, run_bytes, target);
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

std::vector<std::string> waited_for(KernelSource& source, const std::vector<Value*>& sums_inputs) {
    std::vector<std::string> operands;
    const TensorType& result = source.outputs().front()->checked_type();
    for (const Value* value : source.inputs()) {
        const TensorType& type = value->checked_type();
        const bool is_of_sums = std::find(sums_inputs.begin(), sums_inputs.end(), value) != sums_inputs.end();
        if (is_of_sums || type.shape != result.shape || type.layout != result.layout) continue;
        int64_t bytes = info(type.element).bytes;
        for (const Dim& extent : type.shape) bytes *= estimate(extent);
        if (bytes > source.target().level2_bytes) operands.push_back(source.name(value));
    }
    return operands;
}

Directives prefetch_next(const std::vector<std::string>& operands, const std::string& loop) {
    Directives directives;
    for (const std::string& operand : operands) directives.push_back(prefetch(operand, loop, "1"));
    return directives;
}

int64_t most_unrolled(int64_t steps, const Target& target) {
    constexpr int64_t of_pairs = 2;
    return steps > 1 && target.adds_pairs_separately() ? of_pairs : unroll_limit;
}

int64_t unrolled_iterations(int64_t length, int64_t most) {
    int64_t iterations = most;
    while (length % iterations != 0) iterations /= 2;
    return iterations;
}

std::string blocks_of(const std::string& channels, int64_t block) {
    return fmt::format("({} + {}) / {}", channels, block - 1, block);
}

}  // namespace onnx2halide
