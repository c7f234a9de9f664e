// Makes Halide's runtime for some targets when the compiler is built, so that no model's compilation has to:
//
//     make_runtimes FOLDER TARGET ...
//
// leaves FOLDER/runtime-TARGET.o, with `host` resolved.

#include <cstdio>
#include <string>

#include "Halide.h"

int main(int argc, char** argv) {
    if (argc < 3) {
        std::fprintf(stderr, "usage: make_runtimes FOLDER TARGET ...\n");
        return 2;
    }
    for (int i = 2; i < argc; ++i) {
        const Halide::Target target(argv[i]);
        Halide::compile_standalone_runtime(std::string(argv[1]) + "/runtime-" + target.to_string() + ".o", target);
    }
}
