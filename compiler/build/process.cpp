#include "compiler/build/process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "compiler/io/interrupt.h"

extern char** environ;

namespace onnx2halide {

namespace {

/// Starts a program whose stdout and stderr go to `output`, in a process group of its own, so that the processes that
/// it starts can be ended with it. If `folder` is empty, it runs in this process's.
pid_t start(const std::vector<std::string>& command, const std::filesystem::path& folder, int output) {
    std::vector<char*> arguments;
    for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, output, 1);
    posix_spawn_file_actions_adddup2(&actions, output, 2);
    if (!folder.empty()) posix_spawn_file_actions_addchdir_np(&actions, folder.c_str());
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&attributes, &none);
    pid_t child = 0;
    const std::lock_guard guard(leftovers().lock);
    const int error = posix_spawnp(&child, arguments[0], &actions, &attributes, arguments.data(), environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    if (error != 0) throw std::runtime_error(fmt::format("{} cannot be started: {}", command[0], std::strerror(error)));
    leftovers().process_groups.insert(child);
    return child;
}

/// Waits for a program to end and returns its status as waitpid() does.
int finish(pid_t child) {
    // Until it is reaped, no other process can get its number, which a signal would end.
    siginfo_t info;
    while (waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT) < 0 && errno == EINTR) {
    }
    const std::lock_guard guard(leftovers().lock);
    leftovers().process_groups.erase(child);
    int status = 0;
    waitpid(child, &status, 0);
    return status;
}

}  // namespace

ProcessResult run_process(const std::vector<std::string>& command, const std::filesystem::path& folder) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
    pid_t child = 0;
    try {
        child = start(command, folder, ends[1]);
    } catch (...) {
        close(ends[0]);
        close(ends[1]);
        throw;
    }
    close(ends[1]);
    ProcessResult result;
    char buffer[4096];
    for (;;) {
        const ssize_t count = read(ends[0], buffer, sizeof buffer);
        if (count > 0)
            result.output.append(buffer, static_cast<size_t>(count));
        else if (count == 0 || errno != EINTR)
            break;
    }
    close(ends[0]);
    const int status = finish(child);
    result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return result;
}

void run_or_throw(const std::vector<std::string>& command, const std::filesystem::path& folder) {
    const ProcessResult result = run_process(command, folder);
    if (result.status != 0)
        throw std::runtime_error(fmt::format("{} failed:\n{}", fmt::join(command, " "), result.output));
}

void run_parallel(int jobs, size_t count, const std::function<void(size_t)>& task) {
    std::atomic<size_t> next = 0;
    std::exception_ptr failure;
    std::mutex lock;
    const auto work = [&] {
        for (size_t i = next++; i < count; i = next++) {
            try {
                task(i);
            } catch (...) {
                const std::lock_guard guard(lock);
                if (!failure) failure = std::current_exception();
            }
        }
    };
    std::vector<std::thread> threads;
    for (size_t i = 1; i < count && i < static_cast<size_t>(jobs); ++i) threads.emplace_back(work);
    work();
    for (std::thread& thread : threads) thread.join();
    if (failure) std::rethrow_exception(failure);
}

}  // namespace onnx2halide
