#include <algorithm>

#include <fmt/format.h>

#include "compiler/emit/emit.h"
#include "compiler/emit/template.h"
#include "compiler/io/sha256.h"
#include "ops/names.h"

namespace onnx2halide {

std::vector<std::string_view> emit_weights(const Program& program) {
    static constexpr char zeros[64] = {};
    std::vector<const Storage*> weights;
    for (const Storage& storage : program.storages) {
        if (storage.storage_class == StorageClass::weight) weights.push_back(&storage);
    }
    std::ranges::sort(weights, {}, &Storage::offset);
    std::vector<std::string_view> parts;
    int64_t end = 0;
    const auto fill_to = [&](int64_t offset) {
        for (; end < offset; end += static_cast<int64_t>(parts.back().size()))
            parts.emplace_back(zeros, std::min<size_t>(sizeof zeros, static_cast<size_t>(offset - end)));
    };
    for (const Storage* weight : weights) {
        if (weight->offset < end) continue;  // equal to the one before
        const std::vector<std::byte>& data = *weight->root->constant->data;
        fill_to(weight->offset);
        parts.emplace_back(reinterpret_cast<const char*>(data.data()), data.size());
        end += static_cast<int64_t>(data.size());
    }
    fill_to(program.weight_bytes);
    return parts;
}

std::string weights_id(const std::vector<std::string_view>& weights) { return sha256(weights).substr(0, 32); }

std::string emit_weights_object(const std::string& name, const std::filesystem::path& weights, int64_t bytes) {
    const std::string path = string_literal(std::filesystem::absolute(weights).string());
    return fill_template("weights.S.in", {{"NAME", name}, {"PATH", path}, {"BYTES", fmt::to_string(bytes)}});
}

}  // namespace onnx2halide
