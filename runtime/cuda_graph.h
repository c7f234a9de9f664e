/* Kernels on CUDA that are launched together. */
#ifndef ONNX2HALIDE_CUDA_GRAPH_H
#define ONNX2HALIDE_CUDA_GRAPH_H

#include "device.h"

/* What takes the place of a function of the driver that gives memory or frees it; other symbols stay. */
void* onnx2halide_cuda_memory_function(const char* name, void* symbol);

extern const onnx2halide_recorder onnx2halide_cuda_recorder;

/* A kernel that the graph launches is not launched by itself. */
#undef STEP
#define STEP(kernel, ...)                                                                                              \
    do {                                                                                                               \
        if (session->launches != ONNX2HALIDE_REPLAYED) NAMED_STEP(#kernel, kernel##_kernel(session, __VA_ARGS__));     \
    } while (0)

#endif
