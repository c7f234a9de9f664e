#include "compiler/build/cache.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <fmt/format.h>
#include <HalideRuntime.h>

#include "compiler/graph/error.h"
#include "compiler/io/files.h"
#include "compiler/io/sha256.h"
#include "onnx2halide_paths.h"

namespace onnx2halide {

namespace fs = std::filesystem;

namespace {

fs::path cache_folder() {
    if (const char* own = std::getenv("ONNX2HALIDE_CACHE"); own && *own) return own;
    if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg && *xdg) return fs::path(xdg) / "onnx2halide";
    if (const char* home = std::getenv("HOME"); home && *home) return fs::path(home) / ".cache" / "onnx2halide";
    return fs::temp_directory_path() / fmt::format("onnx2halide-{}", getuid());
}

uintmax_t size_limit() {
    const char* text = std::getenv("ONNX2HALIDE_CACHE_SIZE");
    if (!text || !*text) return uintmax_t{2} << 30;
    const char* end = text + std::strlen(text);
    uintmax_t bytes = 0;
    const auto parsed = std::from_chars(text, end, bytes);
    if (parsed.ec != std::errc() || parsed.ptr != end)
        throw UsageError("ONNX2HALIDE_CACHE_SIZE: '{}', expected a number of bytes", text);
    return bytes;
}

constexpr size_t hash_length = 64;  // of a SHA-256 in hexadecimal

bool is_hexadecimal(std::string_view text) {
    return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

/// Whether a file is an entry of a cache, of this class or of the Python package: `ab/HASH`, `ab/HASH.NAME.so`, or part
/// of one, `ab/.HASH.PID.0`. A folder that a person names as the cache may hold other files.
bool is_entry(const fs::path& path) {
    const std::string name = path.filename();
    const std::string hash = name.substr(name.starts_with('.') ? 1 : 0, hash_length);
    return hash.size() == hash_length && is_hexadecimal(hash) && path.parent_path().filename() == hash.substr(0, 2);
}

fs::path path_of(const fs::path& folder, const std::string& key) { return folder / key.substr(0, 2) / key; }

/// Copies an entry to `to`, and returns whether it is there and not damaged.
bool copy_entry(const fs::path& entry, const fs::path& to) {
    std::error_code error;
    if (!fs::exists(entry, error)) return false;
    try {
        const std::string stored = read_text(entry);
        if (stored.size() < hash_length) return false;
        const size_t length = stored.size() - hash_length;
        const std::string_view content = std::string_view(stored).substr(0, length);
        // A machine that lost power may have kept a file's name and size, but not its content.
        if (std::string_view(stored).substr(length) != sha256(content)) return false;
        write_file(to, content);
        return true;
    } catch (const FileError&) {
        return false;
    }
}

}  // namespace

ObjectCache::ObjectCache() : folder_(cache_folder()), size_limit_(size_limit()) {}

std::string ObjectCache::key(const std::string& kind, const std::string& text) {
    return sha256(fmt::format("{}\n{}.{}.{}\n{} {}\n{}", ONNX2HALIDE_VERSION, HALIDE_VERSION_MAJOR,
                              HALIDE_VERSION_MINOR, HALIDE_VERSION_PATCH, kind.size(), kind, text));
}

bool ObjectCache::fetch(const std::string& key, const fs::path& to) const {
    const fs::path own = path_of(folder_, key);
    if (!copy_entry(own, to)) return copy_entry(path_of(ONNX2HALIDE_GENERATORS_DIR "/objects", key), to);
    std::error_code error;
    fs::last_write_time(own, fs::file_time_type::clock::now(), error);
    return true;
}

void ObjectCache::store(const std::string& key, const fs::path& from) const {
    // A cache that cannot be written is not the model's fault: the next compilation builds the object again.
    try {
        fs::create_directories(path_of(folder_, key).parent_path());
        const std::string content = read_text(from);
        write_file(path_of(folder_, key), content + sha256(content));
    } catch (const std::exception&) {
    }
}

void ObjectCache::trim() const {
    struct Entry {
        fs::file_time_type used;
        uintmax_t size;
        fs::path path;
    };
    std::vector<Entry> entries;
    uintmax_t total = 0;
    std::error_code error;
    for (auto entry = fs::recursive_directory_iterator(folder_, error);
         !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
        std::error_code vanished;
        if (!entry->is_regular_file(vanished) || !is_entry(entry->path())) continue;
        const Entry found{entry->last_write_time(vanished), entry->file_size(vanished), entry->path()};
        if (vanished) continue;  // another compiler is trimming, too
        total += found.size;
        entries.push_back(found);
    }
    if (total <= size_limit_) return;
    std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.used < b.used; });
    for (const Entry& entry : entries) {
        if (total <= size_limit_) return;
        fs::remove(entry.path, error);
        total -= entry.size;
    }
}

}  // namespace onnx2halide
