#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>

namespace onnx2halide {

/// A file or folder that cannot be read, written or made: which one, what cannot be done, and the system's reason.
class FileError : public std::runtime_error {
public:
    /// `what`: cannot be read
    FileError(const std::filesystem::path& path, std::string_view what, const std::string& reason);
    const std::string& reason() const { return reason_; }

private:
    std::string reason_;
};

/// An exception's text; what the standard library throws about files is put as in FileError.
std::string message_of(const std::exception& error);

/// The whole file. Throws FileError where it cannot be read.
std::string read_text(const std::filesystem::path& path);

/// Every header (.h) of a folder, in the order of their names. Throws FileError where one cannot be read.
std::string read_headers(const std::filesystem::path& folder);

/// Writes a file under another name and renames it, so that nobody sees half of it. Throws FileError where it cannot be
/// written.
void write_file(const std::filesystem::path& path, std::string_view content);

/// Moves a file to where a reader sees the old one or the new one whole. The original may stay.
void move_file(const std::filesystem::path& from, const std::filesystem::path& to);

/// A folder that is removed with everything in it when this object goes.
class TemporaryFolder {
public:
    /// In $TMPDIR or /tmp, with an absolute path. Throws UsageError where $TMPDIR is no folder.
    TemporaryFolder();
    /// In `parent`, which is made if it is missing. Throws FileError where it cannot be made.
    explicit TemporaryFolder(const std::filesystem::path& parent);
    ~TemporaryFolder();
    TemporaryFolder(const TemporaryFolder&) = delete;
    const std::filesystem::path& path() const { return path_; }

private:
    std::filesystem::path path_;
};

}  // namespace onnx2halide
