#include "ops/schedule/cycles.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>

namespace onnx2halide {

int64_t estimate(const Dim& extent, int64_t usual) {
    std::map<std::string, Dim> sizes;
    for (const std::string& symbol : extent.symbols()) sizes.emplace(symbol, usual);
    const int64_t size = extent.substitute(sizes).constant().value_or(usual),
                  least = std::max<int64_t>(1, extent.lower_bound().value_or(1));
    // For a constant, both bounds are the constant.
    return std::max(least, std::min(size, extent.upper_bound().value_or(size)));
}

std::vector<int64_t> usual_extents(int64_t estimate) {
    std::vector<int64_t> extents;
    for (const int64_t size : {224, 320, 416, 512, 640}) extents.push_back(ceil_div(estimate * size, usual_extent));
    return extents;
}

bool conflict_in_level1(int64_t bytes_apart, int64_t elements) {
    constexpr int64_t ways = 8;
    if (bytes_apart % cache_line_bytes != 0) return false;
    return elements > ways * page_bytes / std::gcd(bytes_apart, page_bytes);
}

double read_rate(int64_t bytes, const Target& target) {
    return bytes <= target.level2_bytes ? level2_rate : bytes <= level3_bytes ? level3_rate : target.memory_rate;
}

double step_cycles(const Target& target, int sums, int loads, double multiply_adds, double fetch_cycles) {
    return std::max({sums / multiply_adds, loads / target.loads, fetch_cycles, addition_cycles}) + 0.02 * loads;
}

double use_of_threads(double cycles, const std::function<double(int threads)>& cycles_on) {
    constexpr struct { int threads, weight; } machines[] = {{1, 8}, {2, 8}, {4, 4}, {8, 3}, {16, 2}, {32, 1}, {64, 1}};
    double use = 0;
    for (const auto& [threads, weight] : machines) use += weight * cycles / threads / cycles_on(threads);
    return use;
}

int64_t best_strip(int64_t tiles, int64_t most, double cycles, const std::function<Tasks(int64_t strip)>& tasks_of) {
    constexpr double hardly = 1.001;
    int64_t best = most;
    double best_use = 0;
    for (int64_t strip = most; strip >= 1; --strip) {
        // As many strips, but a shorter last one, gain nothing.
        if (strip != ceil_div(tiles, ceil_div(tiles, strip))) continue;
        const Tasks tasks = tasks_of(strip);
        const double use = use_of_threads(
            cycles, [&](int threads) { return static_cast<double>(ceil_div(tasks.count, threads)) * tasks.cycles; });
        if (use <= best_use * hardly) continue;
        best_use = use;
        best = strip;
    }
    return best;
}

}  // namespace onnx2halide
