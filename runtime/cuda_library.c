/* Finds CUDA's driver, in place of the function of the same name in Halide's runtime, which asks for libcuda.so alone:
 * that comes with what builds programs, and machines that only run them have libcuda.so.1. */
#define _GNU_SOURCE
#include <dlfcn.h>

#include "session.h"

void* halide_cuda_get_symbol(void* session, const char* name);

void* halide_cuda_get_symbol(void* session, const char* name) {
    void* symbol = dlsym(RTLD_DEFAULT, name);
    if (symbol) return symbol;
    void* library = dlopen("libcuda.so.1", RTLD_LAZY);
    if (!library) library = dlopen("libcuda.so", RTLD_LAZY);
    if (!library && session)
        onnx2halide_fail(session, ONNX2HALIDE_FAILED, "CUDA's driver, libcuda.so.1, cannot be loaded");
    return library ? dlsym(library, name) : NULL;
}
