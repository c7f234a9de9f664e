#include "compiler/build/files.h"

#include <unistd.h>

#include <atomic>
#include <fstream>
#include <stdexcept>

#include <fmt/format.h>

namespace onnx2halide {

namespace fs = std::filesystem;

std::string read_text(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    std::error_code error;
    const uintmax_t size = fs::file_size(path, error);
    if (!file || error) throw std::runtime_error(fmt::format("{} cannot be read", path.string()));
    std::string text(size, '\0');
    file.read(text.data(), static_cast<std::streamsize>(size));
    if (static_cast<uintmax_t>(file.gcount()) != size)
        throw std::runtime_error(fmt::format("{} cannot be read", path.string()));
    return text;
}

void move_file(const fs::path& from, const fs::path& to) {
    std::error_code error;
    fs::rename(from, to, error);
    if (error) write_file(to, read_text(from));  // from another file system
}

void write_file(const fs::path& path, std::string_view content) {
    static std::atomic<unsigned> counter = 0;
    const fs::path part = path.parent_path() / fmt::format(".{}.{}.{}", path.filename().string(), getpid(), counter++);
    {
        std::ofstream file(part, std::ios::binary);
        file.write(content.data(), static_cast<std::streamsize>(content.size()));
        file.flush();
        if (!file) {
            std::error_code ignored;
            fs::remove(part, ignored);
            throw std::runtime_error(fmt::format("{} cannot be written", path.string()));
        }
    }
    fs::rename(part, path);
}

TemporaryFolder::TemporaryFolder(const fs::path& parent) {
    std::error_code error;
    fs::create_directories(parent, error);
    std::string name = (parent / "onnx2halide-XXXXXX").string();
    if (error || !mkdtemp(name.data()))
        throw std::runtime_error(fmt::format("no folder can be made in {}", parent.string()));
    path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
}

}  // namespace onnx2halide
