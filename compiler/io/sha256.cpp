#include "compiler/io/sha256.h"

#include <array>
#include <memory>
#include <stdexcept>

#include <fmt/format.h>
#include <openssl/evp.h>

namespace onnx2halide {

std::string sha256(std::string_view bytes) { return sha256(std::span(&bytes, 1)); }

std::string sha256(std::span<const std::string_view> parts) {
    const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
    unsigned length = 0;
    bool is_done = context && EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr);
    for (const std::string_view part : parts)
        is_done = is_done && EVP_DigestUpdate(context.get(), part.data(), part.size());
    if (!is_done || !EVP_DigestFinal_ex(context.get(), digest.data(), &length))
        throw std::runtime_error("SHA-256 failed");
    std::string hex;
    for (unsigned i = 0; i < length; ++i) hex += fmt::format("{:02x}", digest[i]);
    return hex;
}

}  // namespace onnx2halide
