/* A driver of CUDA that counts calls instead of computing, and refuses what the real one refuses. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static const char* failing = "";
static int launched, recorded, graphs, in, out, streams, executables, is_recording, copies_wrongly;
static int capture_mode;
static char stream, graph, executable, context, module, function;

#define WORKS(name) (strcmp(failing, #name) != 0 ? 0 : 999)
#define ACCEPTS(name, ...)                                                                                             \
    int name(__VA_ARGS__);                                                                                             \
    int name(__VA_ARGS__)

ACCEPTS(cuInit, unsigned flags) { return (int)(flags & 0); }
ACCEPTS(cuDeviceGetCount, int* count) { return (*count = 1) - 1; }
ACCEPTS(cuDeviceGet, int* device, int number) { return *device = number & 0; }
ACCEPTS(cuDeviceGetAttribute, int* value, int attribute, int device) { return *value = 9, attribute & device & 0; }
ACCEPTS(cuDeviceGetName, char* name, int length, int device) { return name[0] = 0, length & device & 0; }
ACCEPTS(cuDeviceTotalMem_v2, size_t* bytes, int device) { return *bytes = 1, device & 0; }
ACCEPTS(cuDevicePrimaryCtxRetain, void** made, int device) { return *made = &context, device & 0; }
ACCEPTS(cuCtxCreate_v2, void** made, unsigned flags, int device) { return *made = NULL, (int)flags & device & 0; }
ACCEPTS(cuCtxDestroy_v2, void* destroyed) { return destroyed == NULL; }
ACCEPTS(cuProfilerStop, void) { return 0; }
ACCEPTS(cuCtxGetApiVersion, void* of, unsigned* version) { return *version = 1, of == NULL; }
ACCEPTS(cuCtxGetDevice, int* device) { return *device = 0; }
ACCEPTS(cuCtxSynchronize, void) { return 0; }
ACCEPTS(cuCtxPushCurrent_v2, void* pushed) { return pushed == NULL; }
ACCEPTS(cuCtxPopCurrent_v2, void** popped) { return *popped = &context, 0; }
ACCEPTS(cuModuleLoadData, void** loaded, const void* image) { return *loaded = &module, image == NULL; }
ACCEPTS(cuModuleLoadDataEx, void** loaded, const void* image, unsigned count, int* options, void** values) {
    return *loaded = &module, image == NULL || (count > 0 && (!options || !values));
}
ACCEPTS(cuModuleUnload, void* unloaded) { return unloaded == NULL; }
ACCEPTS(cuModuleGetFunction, void** found, void* in_module, const char* name) {
    return *found = &function, in_module == NULL || name == NULL;
}
ACCEPTS(cuMemAlloc_v2, void** made, size_t bytes) {
    if (is_recording && capture_mode != 2) return 900; /* relaxed */
    return *made = calloc(1, bytes), *made == NULL;
}
ACCEPTS(cuMemFree_v2, void* freed) { return free(freed), 0; }

static int copy(int* count, void* to, const void* from, size_t bytes) {
    *count += 1;
    copies_wrongly |= is_recording;
    return memcpy(to, from, bytes), 0;
}
ACCEPTS(cuMemcpyHtoD_v2, void* to, const void* from, size_t bytes) { return copy(&in, to, from, bytes); }
ACCEPTS(cuMemcpyDtoH_v2, void* to, const void* from, size_t bytes) { return copy(&out, to, from, bytes); }
ACCEPTS(cuMemcpyDtoD_v2, void* to, const void* from, size_t bytes) { return copy(&in, to, from, bytes); }
ACCEPTS(cuMemcpyHtoDAsync_v2, void* to, const void* from, size_t bytes, void* in_stream) {
    return copies_wrongly = 1, to == from || bytes == 0 || in_stream == NULL;
}
ACCEPTS(cuMemcpyDtoHAsync_v2, void* to, const void* from, size_t bytes, void* in_stream) {
    return copies_wrongly = 1, to == from || bytes == 0 || in_stream == NULL;
}
ACCEPTS(cuMemcpyDtoDAsync_v2, void* to, const void* from, size_t bytes, void* in_stream) {
    return copies_wrongly = 1, to == from || bytes == 0 || in_stream == NULL;
}
ACCEPTS(cuMemcpy3D_v2, const void* copied) { return copied == NULL; }
ACCEPTS(cuPointerGetAttribute, void* result, int query, void* pointer) { return !result || query < 0 || !pointer; }
ACCEPTS(cuLaunchKernel, void* launches, unsigned x, unsigned y, unsigned z, unsigned threads_x, unsigned threads_y,
        unsigned threads_z, unsigned shared, void* in_stream, void** arguments, void** more) {
    (void)launches, (void)shared, (void)arguments, (void)more;
    *(in_stream ? &recorded : &launched) += 1;
    if (in_stream != (is_recording ? &stream : NULL)) return 901;
    return x == 0 || y == 0 || z == 0 || y > 65535 || z > 65535 || threads_x * threads_y * threads_z == 0;
}

ACCEPTS(cuStreamSynchronize, void* waited) { return waited != NULL; }
ACCEPTS(cuStreamCreate, void** made, unsigned flags) { return *made = &stream, streams += 1, flags != 1; }
ACCEPTS(cuStreamDestroy_v2, void* destroyed) { return streams -= 1, destroyed != &stream; }
ACCEPTS(cuStreamBeginCapture_v2, void* begun, int mode) {
    if (WORKS(cuStreamBeginCapture_v2) != 0) return 999;
    return is_recording = 1, begun != &stream || mode != 1;
}
ACCEPTS(cuStreamEndCapture, void* ended, void** made) {
    return is_recording = 0, *made = &graph, ended == &stream ? WORKS(cuStreamEndCapture) : 1;
}
ACCEPTS(cuGraphGetNodes, void* of, void** nodes, size_t* count) {
    return *count = (size_t)recorded, nodes ? memset(nodes, 0, recorded * sizeof(void*)) == NULL : of != &graph;
}
ACCEPTS(cuGraphNodeGetType, void* node, int* type) { return *type = WORKS(cuGraphNodeGetType), node != NULL; }
ACCEPTS(cuGraphInstantiateWithFlags, void** made, void* of, unsigned long long flags) {
    if (WORKS(cuGraphInstantiateWithFlags) != 0) return 999;
    return *made = &executable, executables += 1, of != &graph || flags != 0;
}
ACCEPTS(cuGraphLaunch, void* launches, void* in_stream) {
    return graphs += 1, launches == &executable && !in_stream ? WORKS(cuGraphLaunch) : 1;
}
ACCEPTS(cuThreadExchangeStreamCaptureMode, int* mode) {
    const int before = capture_mode;
    return capture_mode = *mode, *mode = before, 0;
}
ACCEPTS(cuGraphDestroy, void* destroyed) { return destroyed != &graph; }
ACCEPTS(cuGraphExecDestroy, void* destroyed) { return executables -= 1, destroyed != &executable; }
