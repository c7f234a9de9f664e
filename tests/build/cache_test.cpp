#include "compiler/build/cache.h"

#include <catch2/catch.hpp>

#include <chrono>
#include <cstdlib>
#include <set>
#include <thread>

#include "compiler/io/files.h"

namespace onnx2halide {

namespace fs = std::filesystem;

namespace {

/// An environment variable for as long as this object lives.
class Environment {
public:
    Environment(const char* name, const std::string& value) : name_(name) {
        if (const char* old = std::getenv(name)) old_ = old;
        setenv(name, value.c_str(), 1);
    }
    ~Environment() { old_.empty() ? unsetenv(name_) : setenv(name_, old_.c_str(), 1); }
    Environment(const Environment&) = delete;

private:
    const char* name_;
    std::string old_;
};

/// A cache in a folder of its own, and a folder for what comes and goes.
struct Fixture {
    TemporaryFolder folder;
    Environment place{"ONNX2HALIDE_CACHE", (folder.path() / "cache").string()};
    ObjectCache cache;

    void store(const std::string& key, const std::string& content) {
        write_file(folder.path() / "stored", content);
        cache.store(key, folder.path() / "stored");
    }
    std::string fetch(const std::string& key) {
        return cache.fetch(key, folder.path() / "fetched") ? read_text(folder.path() / "fetched") : "none";
    }
    std::set<std::string> files() const {
        std::set<std::string> names;
        for (const auto& entry : fs::recursive_directory_iterator(folder.path() / "cache")) {
            if (entry.is_regular_file()) names.insert(entry.path().filename().string());
        }
        return names;
    }
};

std::string key_of(int i) { return ObjectCache::key("kernel", std::to_string(i)); }

}  // namespace

TEST_CASE("keys tell apart whatever makes an object") {
    const std::string key = ObjectCache::key("kernel x86-64", "text");
    CHECK(key == ObjectCache::key("kernel x86-64", "text"));
    CHECK(key.size() == 64);
    CHECK(key != ObjectCache::key("kernel arm-64", "text"));
    CHECK(key != ObjectCache::key("kernel x86-64", "text "));
    CHECK(ObjectCache::key("a\nb", "c") != ObjectCache::key("a", "b\nc"));
}

TEST_CASE_METHOD(Fixture, "what is stored is fetched") {
    CHECK(fetch(key_of(1)) == "none");
    store(key_of(1), "object");
    CHECK(fetch(key_of(1)) == "object");
    CHECK(fetch(key_of(2)) == "none");
    store(key_of(1), "another");
    CHECK(fetch(key_of(1)) == "another");
    CHECK(files() == std::set<std::string>{key_of(1)});
}

TEST_CASE_METHOD(Fixture, "a file that a killed compiler left half written is fetched by nobody") {
    store(key_of(1), "object");
    const std::string key = key_of(2);
    const fs::path place = folder.path() / "cache" / key.substr(0, 2);
    fs::create_directories(place);
    write_file(place / ("." + key + ".1234.0"), "obj");
    CHECK(fetch(key) == "none");
    const Environment limit("ONNX2HALIDE_CACHE_SIZE", "70");
    ObjectCache().trim();
    CHECK(files().size() == 1);  // such files count and go too
}

TEST_CASE_METHOD(Fixture, "the cache is trimmed to its bound, what was not used for longest first") {
    const auto hours_ago = [&](int hours, const std::string& key) {
        fs::last_write_time(folder.path() / "cache" / key.substr(0, 2) / key,
                            fs::file_time_type::clock::now() - std::chrono::hours(hours));
    };
    for (int i = 1; i <= 4; ++i) {
        store(key_of(i), std::string(100, 'x'));
        hours_ago(10 - i, key_of(i));
    }
    fetch(key_of(1));  // used now
    const Environment limit("ONNX2HALIDE_CACHE_SIZE", "400");
    ObjectCache().trim();
    CHECK(files() == std::set<std::string>{key_of(1), key_of(4)});
    ObjectCache().trim();
    CHECK(files().size() == 2);
}

TEST_CASE_METHOD(Fixture, "other files in the cache's folder are left alone") {
    store(key_of(1), "object");
    const std::string hash(64, 'a');
    const std::set<std::string> others = {"thesis.tex", hash, "0123456789abcdef"};
    for (const std::string& name : others) write_file(folder.path() / "cache" / name, "mine");
    const Environment limit("ONNX2HALIDE_CACHE_SIZE", "0");
    ObjectCache().trim();
    CHECK(files() == others);
}

TEST_CASE_METHOD(Fixture, "a damaged object is not fetched, and replaced") {
    const std::string key = key_of(1);
    const fs::path place = folder.path() / "cache" / key.substr(0, 2) / key;
    store(key, "object");
    const std::string whole = read_text(place);
    for (const std::string& damaged :
         {std::string(), whole.substr(0, 5), whole.substr(1), std::string(whole.size(), '\0')}) {
        write_file(place, damaged);
        CHECK(fetch(key) == "none");
    }
    store(key, "object");
    CHECK(fetch(key) == "object");
}

TEST_CASE("a bound that is no number") {
    const Environment limit("ONNX2HALIDE_CACHE_SIZE", "2G");
    CHECK_THROWS_WITH(ObjectCache(), "ONNX2HALIDE_CACHE_SIZE: '2G', expected a number of bytes");
}

TEST_CASE("a cache that cannot be written to is no fault of the model") {
    const TemporaryFolder folder;
    write_file(folder.path() / "file", "x");
    const Environment place("ONNX2HALIDE_CACHE", (folder.path() / "file").string());
    const ObjectCache cache;
    CHECK_NOTHROW(cache.store(key_of(1), folder.path() / "file"));
    CHECK_FALSE(cache.fetch(key_of(1), folder.path() / "fetched"));
    CHECK_NOTHROW(cache.trim());
}

TEST_CASE_METHOD(Fixture, "many that store and fetch one key see whole objects only") {
    std::vector<std::thread> threads;
    std::atomic<int> bad = 0;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&, t] {
            const fs::path own = folder.path() / std::to_string(t), fetched = folder.path() / (std::to_string(t) + "f");
            write_file(own, std::string(100000, static_cast<char>('a' + t)));
            for (int i = 0; i < 50; ++i) {
                cache.store(key_of(1), own);
                if (!cache.fetch(key_of(1), fetched)) continue;
                const std::string content = read_text(fetched);
                if (content != std::string(100000, content[0])) ++bad;
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(bad == 0);
}

}  // namespace onnx2halide
