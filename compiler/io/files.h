#pragma once

#include <filesystem>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace onnx2halide {

/// A file or folder that cannot be read, written or made. The text names it, what failed and the system's reason.
class FileError : public std::runtime_error {
public:
    /// `what` is such as "cannot be read".
    FileError(const std::filesystem::path& path, std::string_view what, const std::string& reason);
    const std::string& reason() const { return reason_; }

private:
    std::string reason_;
};

/// An exception's text; those of the standard library about files read like a FileError.
std::string message_of(const std::exception& error);

/// Returns the whole file. Throws FileError if it cannot be read.
std::string read_text(const std::filesystem::path& path);

/// Returns the headers (.h) of a folder, concatenated in the order of their names. Throws FileError if one cannot be
/// read.
std::string read_headers(const std::filesystem::path& folder);

/// Writes a file under another name and renames it, so that readers never see half of it. Throws FileError if it cannot
/// be written.
void write_file(const std::filesystem::path& path, std::string_view content);
/// The same of content in parts.
void write_file(const std::filesystem::path& path, std::span<const std::string_view> parts);

/// Moves a file so that readers of `to` see the old file or the new one, complete. The original may remain.
void move_file(const std::filesystem::path& from, const std::filesystem::path& to);

/// A folder that is removed with everything in it when this object is destroyed.
class TemporaryFolder {
public:
    /// Makes one in $TMPDIR or /tmp, with an absolute path. Throws UsageError if $TMPDIR is not a folder.
    TemporaryFolder();
    /// Makes one in `parent`, which is made if it is missing. Throws FileError if that fails.
    explicit TemporaryFolder(const std::filesystem::path& parent);
    ~TemporaryFolder();
    TemporaryFolder(const TemporaryFolder&) = delete;
    const std::filesystem::path& path() const { return path_; }

private:
    std::filesystem::path path_;
};

}  // namespace onnx2halide
