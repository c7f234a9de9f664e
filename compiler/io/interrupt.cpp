#include "compiler/io/interrupt.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <thread>

namespace onnx2halide {

namespace fs = std::filesystem;

namespace {

/// The signals that end us, without those that our parent, such as nohup, has told us to ignore.
sigset_t signals_to_heed() {
    sigset_t signals;
    sigemptyset(&signals);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
        struct sigaction action;
        if (sigaction(signal, nullptr, &action) == 0 && action.sa_handler != SIG_IGN) sigaddset(&signals, signal);
    }
    return signals;
}

bool has_ended(pid_t child) {
    siginfo_t info{};
    return waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT | WNOHANG) != 0 || info.si_pid != 0;
}

/// Ends processes. C compilers remove their temporary files upon SIGTERM, for which they get some seconds.
void end_processes(const std::set<pid_t>& groups) {
    using namespace std::chrono_literals;
    for (const pid_t group : groups) kill(-group, SIGTERM);
    const auto deadline = std::chrono::steady_clock::now() + 5s;
    while (!std::all_of(groups.begin(), groups.end(), has_ended) && std::chrono::steady_clock::now() < deadline)
        std::this_thread::sleep_for(5ms);
    for (const pid_t group : groups) kill(-group, SIGKILL);
}

[[noreturn]] void end(int signal) {
    Leftovers& left = leftovers();
    left.lock.lock();  // never unlocked, so that nothing new is started
    end_processes(left.process_groups);
    for (const fs::path& folder : left.folders) {
        // Other threads may still write into it.
        std::error_code error;
        for (int attempt = 0; attempt < 100 && fs::exists(folder, error); ++attempt) fs::remove_all(folder, error);
    }
    _exit(128 + signal);
}

}  // namespace

Leftovers& leftovers() {
    static auto* const left = new Leftovers;  // outlives static objects that hold folders
    return *left;
}

void end_tidily_on_signals() {
    const sigset_t signals = signals_to_heed();
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    // A signal handler must not remove folders, so a thread waits for the signals.
    std::thread([signals] {
        int signal = 0;
        while (sigwait(&signals, &signal) != 0) {
        }
        end(signal);
    }).detach();
}

}  // namespace onnx2halide
