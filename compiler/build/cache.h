#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace onnx2halide {

/// Built objects, keyed by the hash of everything that they depend on, in the user's cache folder ($ONNX2HALIDE_CACHE,
/// else $XDG_CACHE_HOME/onnx2halide, else ~/.cache/onnx2halide). Files appear complete or not at all, so any number of
/// compilers may share the folder. What was made when onnx2halide was built is found in a folder of its own.
class ObjectCache {
public:
    /// Throws UsageError if $ONNX2HALIDE_CACHE_SIZE is not a number.
    ObjectCache();

    /// The key of an object of this kind, made of this text by this version of the compiler and of Halide.
    static std::string key(const std::string& kind, const std::string& text);

    /// Copies the object to `to` and marks it as used. Returns false if there is none, or if it is damaged.
    bool fetch(const std::string& key, const std::filesystem::path& to) const;
    /// Stores a copy of a file. Does nothing if the cache cannot be written.
    void store(const std::string& key, const std::filesystem::path& from) const;
    /// Removes the least recently used entries, which include the Python package's, until they take at most
    /// $ONNX2HALIDE_CACHE_SIZE bytes (default: 2 GiB). Leaves other files in the folder alone.
    void trim() const;

private:
    std::filesystem::path folder_;
    uintmax_t size_limit_;
};

}  // namespace onnx2halide
