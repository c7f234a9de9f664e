#include "compiler/build/files.h"

#include <catch2/catch.hpp>

#include <stdexcept>

#include <fmt/format.h>

namespace onnx2halide {

namespace fs = std::filesystem;

TEST_CASE("files are written whole and read whole") {
    const TemporaryFolder folder(fs::temp_directory_path());
    const std::string bytes("a\0b\r\n\xff", 6);
    write_file(folder.path() / "file", "something longer before");
    write_file(folder.path() / "file", bytes);
    CHECK(read_text(folder.path() / "file") == bytes);
    CHECK(std::distance(fs::directory_iterator(folder.path()), {}) == 1);  // no part is left
}

TEST_CASE("a file that cannot be written leaves nothing behind") {
    const TemporaryFolder folder(fs::temp_directory_path());
    const fs::path missing = folder.path() / "missing" / "file";
    CHECK_THROWS_WITH(write_file(missing, "x"), fmt::format("{} cannot be written", missing.string()));
    CHECK_THROWS_WITH(read_text(missing), fmt::format("{} cannot be read", missing.string()));
    CHECK_THROWS_WITH(read_text(folder.path()), fmt::format("{} cannot be read", folder.path().string()));
    CHECK(fs::is_empty(folder.path()));
}

TEST_CASE("a folder that cannot be made") {
    const TemporaryFolder folder(fs::temp_directory_path());
    write_file(folder.path() / "file", "x");
    const fs::path below = folder.path() / "file" / "below";
    CHECK_THROWS_WITH(TemporaryFolder(below), fmt::format("no folder can be made in {}", below.string()));
}

TEST_CASE("a temporary folder goes with everything in it") {
    const TemporaryFolder parent(fs::temp_directory_path());
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
