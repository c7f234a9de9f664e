#include "compiler/build/process.h"

#include <catch2/catch.hpp>

#include <atomic>
#include <set>
#include <stdexcept>
#include <thread>

namespace onnx2halide {

TEST_CASE("a program's status and all that it prints come back") {
    const struct {
        std::vector<std::string> command;
        int status;
        std::string output;
    } rows[] = {
        {{"true"}, 0, ""},
        {{"sh", "-c", "echo one; echo two >&2; exit 3"}, 3, "one\ntwo\n"},
        {{"sh", "-c", "printf '%s' \"$1\"", "sh", "a b \"c\" $d"}, 0, "a b \"c\" $d"},  // no shell in between
        {{"sh", "-c", "kill -9 $$"}, 128 + 9, ""},
        {{"cat"}, 0, ""},  // nothing to read
        {{"sh", "-c", "head -c 200000 /dev/zero | tr '\\0' x"}, 0, std::string(200000, 'x')},
    };
    for (const auto& row : rows) {
        const ProcessResult result = run_process(row.command);
        CHECK(result.status == row.status);
        CHECK(result.output == row.output);
    }
}

TEST_CASE("a program runs where it is told to") {
    CHECK(run_process({"pwd"}, "/usr").output == "/usr\n");
    CHECK(run_process({"pwd"}).output == std::filesystem::current_path().string() + "\n");
    CHECK_THROWS_WITH(run_process({"pwd"}, "/usr/no such folder"), "pwd cannot be started: No such file or directory");
}

TEST_CASE("a program that is not there") {
    CHECK_THROWS_WITH(run_process({"no-such-program"}), "no-such-program cannot be started: No such file or directory");
}

TEST_CASE("a program that fails tells its command and its output") {
    CHECK_NOTHROW(run_or_throw({"true"}));
    CHECK_THROWS_WITH(run_or_throw({"sh", "-c", "echo why; exit 1"}), "sh -c echo why; exit 1 failed:\nwhy\n");
}

TEST_CASE("tasks run once each, on at most so many threads") {
    for (const int jobs : {1, 3, 50}) {
        std::atomic<int> running = 0, most = 0;
        std::vector<std::atomic<int>> runs(20);
        run_parallel(jobs, runs.size(), [&](size_t i) {
            const int now = ++running;
            for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
            }
            ++runs[i];
            std::this_thread::yield();
            --running;
        });
        for (const auto& count : runs) CHECK(count == 1);
        CHECK(most <= jobs);
    }
    run_parallel(4, 0, [](size_t) { FAIL("no task is there to run"); });
}

TEST_CASE("the first exception of a task is thrown when all have ended") {
    std::atomic<int> ended = 0;
    CHECK_THROWS_WITH(run_parallel(2, 10,
                                   [&](size_t i) {
                                       ++ended;
                                       if (i == 3) throw std::runtime_error("task 3");
                                   }),
                      "task 3");
    CHECK(ended == 10);
}

}  // namespace onnx2halide
