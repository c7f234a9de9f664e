#include "compiler/io/files.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <set>

#include <fmt/format.h>

#include "compiler/graph/error.h"
#include "compiler/io/interrupt.h"

namespace onnx2halide {

namespace fs = std::filesystem;

namespace {

/// A file of C's library, which, unlike a stream, says why it fails.
using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

std::error_code last_error() { return {errno, std::generic_category()}; }

std::error_code write_parts(const fs::path& path, std::span<const std::string_view> parts) {
    File file(std::fopen(path.c_str(), "wb"), std::fclose);
    bool is_written = file != nullptr;
    for (const std::string_view part : parts)
        is_written = is_written && std::fwrite(part.data(), 1, part.size(), file.get()) == part.size();
    is_written = is_written && std::fclose(file.release()) == 0;
    return is_written ? std::error_code() : last_error();
}

fs::path temporary_root() {
    std::error_code error;
    fs::path root = fs::temp_directory_path(error);
    if (error) throw UsageError("TMPDIR: '{}', expected a folder: {}", std::getenv("TMPDIR"), error.message());
    return root;
}

}  // namespace

FileError::FileError(const fs::path& path, std::string_view what, const std::string& reason)
    : std::runtime_error(fmt::format("{} {}: {}", path.string(), what, reason)), reason_(reason) {}

std::string message_of(const std::exception& error) {
    const auto* about_file = dynamic_cast<const fs::filesystem_error*>(&error);
    if (!about_file) return error.what();
    const fs::path& path = about_file->path2().empty() ? about_file->path1() : about_file->path2();
    return fmt::format("{}: {}", path.string(), about_file->code().message());
}

std::string read_text(const fs::path& path) {
    std::error_code error;
    const uintmax_t size = fs::file_size(path, error);
    if (error) throw FileError(path, "cannot be read", error.message());
    File file(std::fopen(path.c_str(), "rb"), std::fclose);
    std::string text(file ? size : 0, '\0');
    if (!file || std::fread(text.data(), 1, size, file.get()) != size)
        throw FileError(path, "cannot be read", last_error().message());
    return text;
}

std::string read_headers(const fs::path& folder) {
    std::set<fs::path> headers;
    for (const auto& file : fs::directory_iterator(folder)) {
        if (file.path().extension() == ".h") headers.insert(file.path());
    }
    std::string text;
    for (const fs::path& header : headers) text += read_text(header);
    return text;
}

void move_file(const fs::path& from, const fs::path& to) {
    std::error_code error;
    fs::rename(from, to, error);
    if (error) write_file(to, read_text(from));  // they are on different file systems
}

void write_file(const fs::path& path, std::string_view content) { write_file(path, std::span(&content, 1)); }

void write_file(const fs::path& path, std::span<const std::string_view> parts) {
    static std::atomic<unsigned> counter = 0;
    const fs::path unfinished =
        path.parent_path() / fmt::format(".{}.{}.{}", path.filename().string(), getpid(), counter++);
    std::error_code error = write_parts(unfinished, parts);
    if (!error) fs::rename(unfinished, path, error);
    if (!error) return;
    std::error_code ignored;
    fs::remove(unfinished, ignored);
    throw FileError(path, "cannot be written", error.message());
}

TemporaryFolder::TemporaryFolder() : TemporaryFolder(fs::absolute(temporary_root())) {}

TemporaryFolder::TemporaryFolder(const fs::path& parent) {
    std::error_code error;
    fs::create_directories(parent, error);
    if (error) throw FileError(parent, "cannot be made a folder", error.message());
    std::string name = (parent / "onnx2halide-XXXXXX").string();
    const std::lock_guard guard(leftovers().lock);
    if (!mkdtemp(name.data())) throw FileError(parent, "cannot be written to", last_error().message());
    path_ = name;
    leftovers().folders.insert(path_);
}

TemporaryFolder::~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
    const std::lock_guard guard(leftovers().lock);
    leftovers().folders.erase(path_);
}

}  // namespace onnx2halide
