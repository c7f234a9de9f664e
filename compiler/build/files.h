#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace onnx2halide {

/// The whole file. Throws std::runtime_error where it cannot be read.
std::string read_text(const std::filesystem::path& path);

/// Writes a file under another name and renames it, so that nobody sees half of it. Throws std::runtime_error where it
/// cannot be written.
void write_file(const std::filesystem::path& path, std::string_view content);

/// Moves a file to where a reader sees the old one or the new one whole. The original may stay.
void move_file(const std::filesystem::path& from, const std::filesystem::path& to);

/// A folder that is removed with everything in it when this object goes.
class TemporaryFolder {
public:
    /// Below `parent`, which is made if it is missing.
    explicit TemporaryFolder(const std::filesystem::path& parent);
    ~TemporaryFolder();
    TemporaryFolder(const TemporaryFolder&) = delete;
    const std::filesystem::path& path() const { return path_; }

private:
    std::filesystem::path path_;
};

}  // namespace onnx2halide
