/* CUDA graphs: a session records its kernel launches once and replays them as one. */
#ifndef ONNX2HALIDE_CUDA_GRAPH_H
#define ONNX2HALIDE_CUDA_GRAPH_H

#include "device.h"

/* Returns the replacement of a driver function that allocates or frees memory; returns other symbols unchanged. */
void* onnx2halide_cuda_memory_function(const char* name, void* symbol);

extern const onnx2halide_recorder onnx2halide_cuda_recorder;

/* A replayed graph launches the kernel itself. */
#undef STEP
#define STEP(kernel, ...)                                                                                              \
    do {                                                                                                               \
        if (session->launches != ONNX2HALIDE_REPLAYED) NAMED_STEP(#kernel, kernel##_kernel(session, __VA_ARGS__));     \
    } while (0)

#endif
