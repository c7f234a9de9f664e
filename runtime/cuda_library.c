/* CUDA's driver and its context. These functions replace those of the same names in Halide's runtime. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_graph.h"

typedef int (*module_loader)(void** module, const void* image, unsigned count, int* options, void** values);

static module_loader driver_loader;

/* Halide limits the driver's compiler to 64 registers per thread, too few for a tile of sums and its operands. With 128
 * a block may still have 512 threads. */
static int load_module(void** module, const void* image, unsigned count, int* options, void** values) {
    enum { max_registers = 0 }; /* CU_JIT_MAX_REGISTERS */
    const uintptr_t registers = 128;
    for (unsigned i = 0; i < count; ++i) {
        if (options[i] == max_registers && !getenv("HL_CUDA_JIT_MAX_REGISTERS")) values[i] = (void*)registers;
    }
    return driver_loader(module, image, count, options, values);
}

typedef int (*launcher)(void* function, unsigned x, unsigned y, unsigned z, unsigned threads_x, unsigned threads_y,
                        unsigned threads_z, unsigned shared, void* stream, void** arguments, void** more);

static launcher driver_launcher;

/* The driver refuses a grid of no blocks, as that of a loop over an input without elements is. */
static int launch(void* function, unsigned x, unsigned y, unsigned z, unsigned threads_x, unsigned threads_y,
                  unsigned threads_z, unsigned shared, void* stream, void** arguments, void** more) {
    if (x == 0 || y == 0 || z == 0) return 0;
    return driver_launcher(function, x, y, z, threads_x, threads_y, threads_z, shared, stream, arguments, more);
}

static void* driver_symbol(void* session, const char* name) {
    void* symbol = dlsym(RTLD_DEFAULT, name);
    if (symbol) return symbol;
    void* library = dlopen("libcuda.so.1", RTLD_LAZY);
    if (!library) library = dlopen("libcuda.so", RTLD_LAZY);
    if (!library && session)
        onnx2halide_fail(session, ONNX2HALIDE_FAILED, "CUDA's driver, libcuda.so.1, cannot be loaded");
    return library ? dlsym(library, name) : NULL;
}

/* Halide's version loads only libcuda.so, which comes with the development package; machines that only run programs
 * have libcuda.so.1. */
void* halide_cuda_get_symbol(void* session, const char* name);

void* halide_cuda_get_symbol(void* session, const char* name) {
    void* symbol = driver_symbol(session, name);
    if (symbol && strcmp(name, "cuModuleLoadDataEx") == 0) {
        driver_loader = (module_loader)symbol;
        return (void*)load_module;
    }
    if (symbol && strcmp(name, "cuLaunchKernel") == 0) {
        driver_launcher = (launcher)symbol;
        return (void*)launch;
    }
    return onnx2halide_cuda_memory_function(name, symbol);
}

/* The device's primary context, which is also that of the program's other CUDA code: all models share it, and none
 * needs one of its own. HL_GPU_DEVICE is the number of the device, 0 by default. */
int halide_cuda_acquire_context(void* session, void** context, int create);

static int retain_context(void* session, void** context) {
    typedef int (*init)(unsigned);
    typedef int (*get_device)(int*, int);
    typedef int (*retain)(void**, int);
    const init cuInit = (init)halide_cuda_get_symbol(session, "cuInit");
    const get_device cuDeviceGet = (get_device)halide_cuda_get_symbol(session, "cuDeviceGet");
    const retain cuDevicePrimaryCtxRetain = (retain)halide_cuda_get_symbol(session, "cuDevicePrimaryCtxRetain");
    if (!cuInit || !cuDeviceGet || !cuDevicePrimaryCtxRetain) return halide_error_code_symbol_not_found;
    const int number = halide_get_gpu_device(session);
    int device, status = cuInit(0);
    if (status == 0) status = cuDeviceGet(&device, number < 0 ? 0 : number);
    if (status == 0) status = cuDevicePrimaryCtxRetain(context, device);
    if (status == 0) return 0;
    if (session)
        onnx2halide_fail(session, ONNX2HALIDE_FAILED, "CUDA has no device %d that can be used: its error %d",
                         number < 0 ? 0 : number, status);
    return halide_error_code_gpu_device_error;
}

int halide_cuda_acquire_context(void* session, void** context, int create) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static void* primary;
    int status = 0;
    pthread_mutex_lock(&lock);
    if (!primary && create) status = retain_context(session, &primary);
    *context = primary;
    pthread_mutex_unlock(&lock);
    return status;
}
