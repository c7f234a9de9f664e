#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace onnx2halide {

/// Built objects by the hash of all that made them, in the user's cache folder ($ONNX2HALIDE_CACHE, else
/// $XDG_CACHE_HOME/onnx2halide, else
/// ~/.cache/onnx2halide). Files appear whole or not at all, so any number of compilers may share it.
class ObjectCache {
public:
    /// Throws UsageError where $ONNX2HALIDE_CACHE_SIZE is no number.
    ObjectCache();

    /// The key of an object that these texts make.
    static std::string key(const std::string& kind, const std::string& text);

    /// Copies the object to `to` and marks it as used. False where there is none.
    bool fetch(const std::string& key, const std::filesystem::path& to) const;
    /// Keeps a copy of a file.
    void store(const std::string& key, const std::filesystem::path& from) const;
    /// Removes what was not used for longest until the folder holds at most $ONNX2HALIDE_CACHE_SIZE bytes (2 GiB).
    void trim() const;

private:
    std::filesystem::path place(const std::string& key) const { return folder_ / key.substr(0, 2) / key; }
    std::filesystem::path folder_;
    uintmax_t size_limit_;
};

}  // namespace onnx2halide
