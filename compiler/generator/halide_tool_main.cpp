// Work of Halide's that needs a process of its own:
//
//     halide_tool runtime FOLDER
//
// writes FOLDER/runtime-TARGET.o, Halide's runtime for this machine's target without its features. The build of the
// compiler runs it, so that compilations need not make one.
//
//     halide_tool archive TARGET ARCHIVE MEMBER...
//
// writes a static library of object files in the working folder. Halide changes the working folder meanwhile, which is
// that of all threads of a process.

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "Halide.h"

namespace {

void write_runtime(const std::string& folder) {
    const Halide::Target host = Halide::get_host_target(), target(host.os, host.arch, host.bits);
    Halide::compile_standalone_runtime(folder + "/runtime-" + target.to_string() + ".o", target);
}

}  // namespace

int main(int argc, char** argv) {
    const std::vector<std::string> words(argv + 1, argv + argc);
    try {
        if (words.size() == 2 && words[0] == "runtime") {
            write_runtime(words[1]);
        } else if (words.size() > 3 && words[0] == "archive") {
            Halide::create_static_library({words.begin() + 3, words.end()}, Halide::Target(words[1]), words[2]);
        } else {
            std::fprintf(stderr, "usage: halide_tool runtime FOLDER | archive TARGET ARCHIVE MEMBER...\n");
            return 2;
        }
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
