// Makes the runtime for this machine's kind of processor, with and without a GPU, in the cache. The build of the
// compiler runs this with a cache of its own, in which every compilation looks, too.

#include <algorithm>
#include <cstdio>
#include <exception>
#include <thread>

#include <Halide.h>

#include "compiler/build/runtime_objects.h"
#include "compiler/driver/options.h"
#include "compiler/io/files.h"

using namespace onnx2halide;

int main() {
    try {
        const Halide::Target host = Halide::get_host_target();
        const std::string processor = Halide::Target(host.os, host.arch, host.bits).to_string();
        const int parallel = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
        for (const char* gpu : {"", "-opencl", "-cuda"}) {
            const TemporaryFolder objects;
            build_runtime({CompileOptions().cc, processor + gpu, objects.path(), parallel});
        }
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
