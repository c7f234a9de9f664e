#include "ops/schedule/directives.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace onnx2halide {

std::string split(const std::string& var, const std::string& outer, const std::string& factor, std::string_view tail) {
    return fmt::format("split({0}, {1}, {0}, {2}, TailStrategy::{3})", var, outer, factor, tail);
}

std::string guarded_split(const std::string& var, const std::string& outer, const std::string& factor) {
    return split(var, outer, factor, "GuardWithIf");
}

std::string shifted_split(const std::string& var, const std::string& outer, const std::string& factor) {
    return split(var, outer, factor, "ShiftInwards");
}

std::string reorder(std::vector<std::string> loops) {
    std::erase(loops, "");
    return fmt::format("reorder({})", fmt::join(loops, ", "));
}

std::string unroll(const std::string& loop) { return fmt::format("unroll({})", loop); }

Directives unroll_all(const std::vector<std::string>& loops) {
    Directives directives;
    for (const std::string& loop : loops) directives.push_back(unroll(loop));
    return directives;
}

std::string vectorize(const std::string& loop) { return fmt::format("vectorize({})", loop); }

std::string keep_whole(const std::string& loop) { return fmt::format("partition({}, Partition::Never)", loop); }

std::string guarded_vectors(const std::string& loop, const std::string& lanes) {
    return fmt::format("vectorize({}, {}, TailStrategy::GuardWithIf)", loop, lanes);
}

std::string parallel(const std::string& loop) { return fmt::format("parallel({})", loop); }

std::string compute_at(const std::string& func, const std::string& loop) {
    return fmt::format("compute_at({}, {})", func, loop);
}

std::string bound_storage(const std::string& var, const std::string& elements) {
    return fmt::format("bound_storage({}, {})", var, elements);
}

Directives bound_storage(std::span<const std::string> vars, const std::vector<int64_t>& elements) {
    Directives directives;
    for (size_t i = 0; i < elements.size(); ++i) {
        if (elements[i] > 1) directives.push_back(bound_storage(vars[i], std::to_string(elements[i])));
    }
    return directives;
}

std::string align_storage(const std::string& var, const std::string& elements) {
    return fmt::format("align_storage({}, {})", var, elements);
}

std::string held(const std::string& param, int64_t most) { return fmt::format("std::min<int>({}, {})", param, most); }

std::string smaller(const std::string& a, const std::string& b) { return fmt::format("std::min({}, {})", a, b); }

void append(std::vector<std::string>& list, const std::vector<std::string>& more) {
    list.insert(list.end(), more.begin(), more.end());
}

std::vector<std::string> joined(std::vector<std::string> first, const std::vector<std::string>& second) {
    append(first, second);
    return first;
}

std::vector<std::string> joined(std::initializer_list<std::vector<std::string>> lists) {
    std::vector<std::string> all;
    for (const auto& list : lists) append(all, list);
    return all;
}

}  // namespace onnx2halide
