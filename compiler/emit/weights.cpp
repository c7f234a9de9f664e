#include <cstring>

#include <fmt/format.h>

#include "compiler/emit/emit.h"
#include "compiler/emit/template.h"
#include "compiler/io/sha256.h"
#include "ops/names.h"

namespace onnx2halide {

std::string emit_weights(const Program& program) {
    std::string bytes(program.weight_bytes, '\0');
    for (const Storage& storage : program.storages) {
        if (storage.storage_class != StorageClass::weight) continue;
        const auto& data = *storage.root->constant->data;
        std::memcpy(bytes.data() + storage.offset, data.data(), data.size());
    }
    return bytes;
}

std::string weights_id(const std::string& weights) { return sha256(weights).substr(0, 32); }

std::string emit_weights_object(const std::string& name, const std::filesystem::path& weights, int64_t bytes) {
    const std::string path = string_literal(std::filesystem::absolute(weights).string());
    return fill_template("weights.S.in", {{"NAME", name}, {"PATH", path}, {"BYTES", fmt::to_string(bytes)}});
}

}  // namespace onnx2halide
