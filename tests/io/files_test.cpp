#include "compiler/io/files.h"

#include <catch2/catch.hpp>

#include <stdexcept>

#include <fmt/format.h>

namespace onnx2halide {

namespace fs = std::filesystem;

TEST_CASE("files are written whole and read whole") {
    const TemporaryFolder folder;
    const std::string bytes("a\0b\r\n\xff", 6);
    write_file(folder.path() / "file", "something longer before");
    write_file(folder.path() / "file", bytes);
    CHECK(read_text(folder.path() / "file") == bytes);
    CHECK(std::distance(fs::directory_iterator(folder.path()), {}) == 1);  // no part is left
}

TEST_CASE("a file that cannot be written leaves nothing behind") {
    const TemporaryFolder folder;
    const fs::path missing = folder.path() / "missing" / "file";
    CHECK_THROWS_WITH(write_file(missing, "x"),
                      fmt::format("{} cannot be written: No such file or directory", missing.string()));
    CHECK_THROWS_WITH(read_text(missing),
                      fmt::format("{} cannot be read: No such file or directory", missing.string()));
    CHECK_THROWS_WITH(read_text(folder.path()),
                      fmt::format("{} cannot be read: Is a directory", folder.path().string()));
    CHECK_THROWS_WITH(write_file(folder.path(), "x"),
                      fmt::format("{} cannot be written: Is a directory", folder.path().string()));
    CHECK(fs::is_empty(folder.path()));
}

TEST_CASE("a folder that cannot be made") {
    const TemporaryFolder folder;
    write_file(folder.path() / "file", "x");
    const fs::path below = folder.path() / "file" / "below";
    CHECK_THROWS_WITH(TemporaryFolder(below),
                      fmt::format("{} cannot be made a folder: Not a directory", below.string()));
}

TEST_CASE("a temporary folder goes with everything in it") {
    const TemporaryFolder parent;
    fs::path path;
    {
        const TemporaryFolder folder(parent.path() / "made" / "on demand");
        path = folder.path();
        fs::create_directories(path / "deep" / "er");
        write_file(path / "deep" / "file", "x");
        CHECK(fs::is_directory(path));
        CHECK(TemporaryFolder(path.parent_path()).path() != path);
    }
    CHECK_FALSE(fs::exists(path));
}

}  // namespace onnx2halide
