#include <catch2/catch.hpp>

#include <unistd.h>

#include <chrono>
#include <random>

#include "compiler/driver/inspect.h"
#include "compiler/graph/error.h"
#include "compiler/io/files.h"
#include "onnx2halide_paths.h"

namespace onnx2halide {

namespace fs = std::filesystem;

namespace {

using Clock = std::chrono::steady_clock;

/// A model's bytes, a few of which are changed, removed, duplicated or copied from elsewhere.
std::string mutated(std::string bytes, std::mt19937& random) {
    const auto below = [&](size_t end) { return end == 0 ? 0 : random() % end; };
    const size_t changes = 1 + below(6);
    for (size_t i = 0; i < changes && !bytes.empty(); ++i) {
        const size_t at = below(bytes.size()), length = 1 + below(std::min<size_t>(16, bytes.size() - at));
        static constexpr unsigned char edges[] = {0, 1, 2, 7, 8, 0x10, 0x7f, 0x80, 0xff};
        switch (below(7)) {
        case 0: bytes[at] = static_cast<char>(random()); break;
        case 1: bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8))); break;
        case 2: bytes[at] = static_cast<char>(edges[below(std::size(edges))]); break;
        case 3: bytes.erase(at, length); break;
        case 4: bytes.insert(at, bytes.substr(below(bytes.size()), length)); break;
        case 5: bytes.resize(at); break;
        default: bytes.replace(at, length, bytes.substr(below(bytes.size()), length));
        }
    }
    return bytes;
}

/// Whether a model is either inspected or rejected with a message; any other exception is passed on.
bool is_refused(const fs::path& model) {
    try {
        inspect(model, {});
        return false;
    } catch (const CompileError& error) {
        return true;
    }
}

/// The models to start from: small ones, in which most bytes matter, more often than the large one.
std::vector<std::string> seeds() {
    std::vector<std::string> models;
    std::vector<fs::path> files;
    for (const auto& file : fs::directory_iterator(ONNX2HALIDE_SOURCE_DIR "/tests/load/seeds"))
        files.push_back(file.path());
    std::sort(files.begin(), files.end());
    for (const fs::path& file : files) models.push_back(read_text(file));
    models.push_back(read_text(ONNX2HALIDE_SOURCE_DIR "/scripts/digits/digits.onnx"));
    return models;
}

}  // namespace

TEST_CASE("every mutated model is inspected or rejected with a message") {
    const char* seconds = std::getenv("ONNX2HALIDE_FUZZ_SECONDS");
    const char* seed = std::getenv("ONNX2HALIDE_FUZZ_SEED");
    const auto end = Clock::now() + std::chrono::seconds(seconds ? std::stoi(seconds) : 15);
    const std::vector<std::string> models = seeds();
    const TemporaryFolder folder;
    const fs::path file = folder.path() / "fuzz.onnx";
    unsigned number = seed ? static_cast<unsigned>(std::stoul(seed)) : 0;
    size_t refused = 0, tried = 0;
    for (; Clock::now() < end; ++number, ++tried) {
        std::mt19937 random(number);
        const std::string bytes = mutated(models[random() % models.size()], random);
        write_file(file, bytes);
        INFO("ONNX2HALIDE_FUZZ_SEED=" << number);
        alarm(30);  // a hang ends the test
        REQUIRE_NOTHROW(refused += is_refused(file));
        alarm(0);
    }
    CHECK(tried > 0);
    WARN(tried << " models, of which " << refused << " were refused");
}

}  // namespace onnx2halide
