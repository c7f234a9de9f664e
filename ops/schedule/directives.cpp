#include "ops/schedule/directives.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace onnx2halide {

std::string guarded_split(const std::string& var, const std::string& outer, const std::string& factor) {
    return fmt::format("split({0}, {1}, {0}, {2}, TailStrategy::GuardWithIf)", var, outer, factor);
}

std::string shifted_split(const std::string& var, const std::string& outer, const std::string& factor) {
    return fmt::format("split({0}, {1}, {0}, {2}, TailStrategy::ShiftInwards)", var, outer, factor);
}

std::string reorder(std::vector<std::string> loops) {
    std::erase(loops, "");
    return fmt::format("reorder({})", fmt::join(loops, ", "));
}

std::string unroll(const std::string& loop) { return fmt::format("unroll({})", loop); }

std::string vectorize(const std::string& loop) { return fmt::format("vectorize({})", loop); }

std::string parallel(const std::string& loop) { return fmt::format("parallel({})", loop); }

std::string compute_at(const std::string& func, const std::string& loop) {
    return fmt::format("compute_at({}, {})", func, loop);
}

std::string held(const std::string& param, int64_t most) { return fmt::format("std::min<int>({}, {})", param, most); }

std::string smaller(const std::string& a, const std::string& b) { return fmt::format("std::min({}, {})", a, b); }

Directives joined(Directives first, const Directives& second) {
    first.insert(first.end(), second.begin(), second.end());
    return first;
}

}  // namespace onnx2halide
