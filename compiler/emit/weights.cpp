#include <cstring>

#include <fmt/format.h>

#include "compiler/build/sha256.h"
#include "compiler/emit/emit.h"

namespace onnx2halide {

std::string emit_weights(const Program& program) {
    std::string bytes(program.weight_bytes, '\0');
    for (const Storage& storage : program.storages) {
        if (storage.place != Place::weight) continue;
        const auto& data = *storage.root->constant->data;
        std::memcpy(bytes.data() + storage.offset, data.data(), data.size());
    }
    return bytes;
}

std::string weights_id(const std::string& weights) {
    return sha256(weights).substr(0, 32);
}

std::string emit_weights_object(const std::string& name, const std::filesystem::path& weights, int64_t bytes) {
    std::string path;
    for (const char character : std::filesystem::absolute(weights).string()) {
        if (character == '"' || character == '\\') path += '\\';
        path += character;
    }
    return fmt::format(R"(    .section .rodata
    .balign 64
    .globl {0}_weights
    .hidden {0}_weights
    .type {0}_weights, @object
{0}_weights:
    .incbin "{1}", 0, {2}
    .size {0}_weights, {2}
    .section .note.GNU-stack, "", @progbits
)",
                       name, path, bytes);
}

}  // namespace onnx2halide
