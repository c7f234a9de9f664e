// Writes a static library of object files in the working folder:
//
//     static_library TARGET ARCHIVE MEMBER...
//
// Halide changes the working folder meanwhile, which is that of all threads of a process, so it has a process of its
// own.

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "Halide.h"

int main(int argc, char** argv) {
    const std::vector<std::string> words(argv + 1, argv + argc);
    if (words.size() < 3) {
        std::fprintf(stderr, "usage: static_library TARGET ARCHIVE MEMBER...\n");
        return 2;
    }
    try {
        Halide::create_static_library({words.begin() + 2, words.end()}, Halide::Target(words[0]), words[1]);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
