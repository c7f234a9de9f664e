// Makes Halide's runtime for this machine's kind when the compiler is built, so that no model's compilation has to:
//
//     make_runtime FOLDER
//
// leaves FOLDER/runtime-TARGET.o, of a target without features.

#include <cstdio>
#include <string>

#include "Halide.h"

int main(int argc, char** argv) {
    if (argc != 2) {
        std::fprintf(stderr, "usage: make_runtime FOLDER\n");
        return 2;
    }
    const Halide::Target host = Halide::get_host_target(), target(host.os, host.arch, host.bits);
    Halide::compile_standalone_runtime(std::string(argv[1]) + "/runtime-" + target.to_string() + ".o", target);
}
