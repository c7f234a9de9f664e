/* CUDA graphs: a session records its kernel launches, and later runs replay them as one launch. A model that has this
 * recorder runs the same kernels on the same memory each time, up to the first step that reads results of kernels on
 * the host. The first run launches the kernels one by one, which loads their modules and allocates their memory; the
 * second records them. */
#include "cuda_graph.h"
#include "device.h"
#include "HalideRuntimeCuda.h"

#include <stdlib.h>
#include <string.h>

/* Functions of CUDA's driver. */
void* halide_cuda_get_symbol(void* session, const char* name);
int halide_cuda_acquire_context(void* session, void** context, int create);

typedef struct driver {
    int (*push_context)(void*);
    int (*pop_context)(void**);
    int (*create_stream)(void**, unsigned);
    int (*destroy_stream)(void*);
    int (*begin_capture)(void*, int);
    int (*end_capture)(void*, void**);
    int (*get_nodes)(void*, void**, size_t*);
    int (*get_node_type)(void*, int*);
    int (*instantiate)(void**, void*, unsigned long long);
    int (*launch)(void*, void*);
    int (*destroy_graph)(void*);
    int (*destroy_executable)(void*);
    int (*exchange_mode)(int*);
} driver;

/* Device memory that a kernel allocates while it works. */
typedef struct scratch {
    void* memory;
    size_t bytes;
    int is_free;
    struct scratch* next;
} scratch;

struct onnx2halide_recording {
    driver driver;
    void* context;
    void* stream; /* during recording */
    void* executable;
    scratch* scratch; /* memory of the recorded kernels, as long as they may be launched */
    int is_off;       /* whether this session no longer records */
};

static int find(void* function, const char* name) {
    void* symbol = halide_cuda_get_symbol(NULL, name);
    memcpy(function, &symbol, sizeof symbol);
    return symbol != NULL;
}

/* Whether the driver has all of these functions: graphs are newer than the functions that Halide requires. */
static int find_driver(driver* d) {
    return find(&d->push_context, "cuCtxPushCurrent_v2") && find(&d->pop_context, "cuCtxPopCurrent_v2") &&
           find(&d->create_stream, "cuStreamCreate") && find(&d->destroy_stream, "cuStreamDestroy_v2") &&
           find(&d->begin_capture, "cuStreamBeginCapture_v2") && find(&d->end_capture, "cuStreamEndCapture") &&
           find(&d->get_nodes, "cuGraphGetNodes") && find(&d->get_node_type, "cuGraphNodeGetType") &&
           find(&d->instantiate, "cuGraphInstantiateWithFlags") && find(&d->launch, "cuGraphLaunch") &&
           find(&d->destroy_graph, "cuGraphDestroy") && find(&d->destroy_executable, "cuGraphExecDestroy") &&
           find(&d->exchange_mode, "cuThreadExchangeStreamCaptureMode");
}

/* The stream in which Halide launches and copies: CUDA's default stream, except while a session records. */
int halide_cuda_get_stream(void* session, void* context, void** stream);

int halide_cuda_get_stream(void* session, void* context, void** stream) {
    (void)context;
    const onnx2halide_session* own = session;
    *stream = own && own->launches == ONNX2HALIDE_RECORDED ? own->recording->stream : NULL;
    return 0;
}

/* ---- Memory that recorded kernels allocate and free. Halide's own cache would pass it on to others. ---- */

static _Thread_local onnx2halide_recording* thread_records;
static int (*driver_allocate)(void**, size_t);
static int (*driver_free)(void*);

bool halide_can_reuse_device_allocations(void* session) {
    (void)session;
    return !thread_records;
}

static int allocate(void** memory, size_t bytes) {
    onnx2halide_recording* recording = thread_records;
    if (!recording) return driver_allocate(memory, bytes);
    /* Recorded kernels run one after another, so later ones may reuse memory that earlier ones have freed. */
    for (scratch* piece = recording->scratch; piece; piece = piece->next) {
        if (!piece->is_free || piece->bytes < bytes) continue;
        piece->is_free = 0;
        *memory = piece->memory;
        return 0;
    }
    enum { out_of_memory = 2, relaxed_mode = 2 }; /* CUDA_ERROR_OUT_OF_MEMORY, CU_STREAM_CAPTURE_MODE_RELAXED */
    scratch* piece = calloc(1, sizeof(scratch));
    if (!piece) return out_of_memory;
    int mode = relaxed_mode;
    int status = recording->driver.exchange_mode(&mode);
    if (status == 0) {
        status = driver_allocate(memory, bytes);
        recording->driver.exchange_mode(&mode);
    }
    if (status != 0) return free(piece), status;
    *piece = (scratch){*memory, bytes, 0, recording->scratch};
    recording->scratch = piece;
    return 0;
}

static int give_back(void* memory) {
    for (scratch* piece = thread_records ? thread_records->scratch : NULL; piece; piece = piece->next) {
        if (piece->memory != memory) continue;
        piece->is_free = 1;
        return 0;
    }
    return driver_free(memory);
}

void* onnx2halide_cuda_memory_function(const char* name, void* symbol) {
    void* own = symbol;
    if (symbol && strcmp(name, "cuMemAlloc_v2") == 0) {
        memcpy(&driver_allocate, &symbol, sizeof symbol);
        own = (void*)(uintptr_t)allocate;
    } else if (symbol && strcmp(name, "cuMemFree_v2") == 0) {
        memcpy(&driver_free, &symbol, sizeof symbol);
        own = (void*)(uintptr_t)give_back;
    }
    return own;
}

/* Whether a graph can be replayed, and in less time than its kernels are launched: not if it has a single kernel. A
 * copy in it would refer to this run's memory on the host. */
static int is_worth_replaying(const driver* d, void* graph) {
    enum { kernel_node = 0 }; /* CU_GRAPH_NODE_TYPE_KERNEL */
    size_t count = 0;
    if (d->get_nodes(graph, NULL, &count) != 0 || count < 2) return 0;
    void** nodes = calloc(count, sizeof(void*));
    int is_kernel = nodes && d->get_nodes(graph, nodes, &count) == 0;
    for (size_t i = 0; is_kernel && i < count; ++i) {
        int type = -1;
        is_kernel = d->get_node_type(nodes[i], &type) == 0 && type == kernel_node;
    }
    free(nodes);
    return is_kernel;
}

/* Begins to record without an effect on other streams and threads: the stream does not synchronise with the default
 * one, and calls that are forbidden during a recording, such as allocations, are forbidden to this thread only. */
static int begin(onnx2halide_recording* recording) {
    enum { non_blocking = 1, thread_local_mode = 1 }; /* CU_STREAM_NON_BLOCKING, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL */
    const driver* d = &recording->driver;
    if (d->create_stream(&recording->stream, non_blocking) != 0) return 0;
    if (d->begin_capture(recording->stream, thread_local_mode) == 0) {
        thread_records = recording;
        return 1;
    }
    d->destroy_stream(recording->stream);
    return 0;
}

/* Ends a recording and, if it is useful, makes it launchable. */
static void end(onnx2halide_recording* recording, int is_useful) {
    const driver* d = &recording->driver;
    void* graph = NULL;
    thread_records = NULL;
    const int status = d->end_capture(recording->stream, &graph);
    if (is_useful && status == 0 && graph && is_worth_replaying(d, graph) &&
        d->instantiate(&recording->executable, graph, 0) != 0)
        recording->executable = NULL;
    if (graph) d->destroy_graph(graph);
    d->destroy_stream(recording->stream);
    recording->stream = NULL;
}

/* Whether all tensors with memory on the device are current there, as a replay assumes. */
static int is_all_on_device(const onnx2halide_session* session) {
    for (int i = 0; i < session->model->device_memory_count; ++i) {
        const halide_buffer_t* tensor = session->device_memory[i].holder;
        if (tensor && tensor->device && tensor->flags & halide_buffer_flag_host_dirty) return 0;
    }
    return 1;
}

static int launch(onnx2halide_session* session) {
    onnx2halide_recording* recording = session->recording;
    if (session->launches == ONNX2HALIDE_RECORDED) end(recording, is_all_on_device(session));
    session->launches = ONNX2HALIDE_LAUNCHED;
    session->step = NULL;
    /* In the default stream: after the copies of inputs, before those of outputs. */
    const int status = recording->executable ? recording->driver.launch(recording->executable, NULL) : -1;
    return status == 0
               ? 0
               : onnx2halide_fail(session, ONNX2HALIDE_FAILED, "CUDA cannot launch its graph: its error %d", status);
}

/* Copies inputs to the device before a recording. */
static int copy_inputs(onnx2halide_session* session) {
    for (int i = 0; i < session->model->device_memory_count; ++i) {
        halide_buffer_t* tensor = session->device_memory[i].holder;
        if (!tensor || !tensor->device || !(tensor->flags & halide_buffer_flag_host_dirty)) continue;
        if (onnx2halide_tensor_bytes(tensor) == 0) continue;
        const int status = halide_copy_to_device(session, tensor, session->model->device());
        if (status != 0) return onnx2halide_fail_halide(session, status);
    }
    return 0;
}

/* Records, or replays if there is a recording. */
static int run_graph(onnx2halide_session* session) {
    onnx2halide_recording* recording = session->recording;
    if (!recording->executable) {
        RUN(copy_inputs(session));
        if (!begin(recording)) return ONNX2HALIDE_FAILED;
    }
    session->launches = recording->executable ? ONNX2HALIDE_REPLAYED : ONNX2HALIDE_RECORDED;
    int code = session->model->steps(session);
    if (code == 0 && session->launches != ONNX2HALIDE_LAUNCHED) code = launch(session);
    if (session->launches == ONNX2HALIDE_RECORDED) end(recording, 0);
    session->launches = ONNX2HALIDE_LAUNCHED;
    return code;
}

static void drop_executable(onnx2halide_recording* recording) {
    if (recording->executable) recording->driver.destroy_executable(recording->executable);
    recording->executable = NULL;
    while (recording->scratch) {
        scratch* piece = recording->scratch;
        recording->scratch = piece->next;
        driver_free(piece->memory);
        free(piece);
    }
}

/* Repeats without a graph a run that fails, or whose recording is not worth replaying. If that succeeds, later runs
 * record nothing. */
static int run_in_context(onnx2halide_session* session) {
    if (run_graph(session) == 0) return 0;
    onnx2halide_forget_error(session);
    session->model->bind(session);
    const int code = session->model->steps(session);
    if (code != 0 && session->recording->executable) return code;
    drop_executable(session->recording);
    session->recording->is_off = code == 0;
    return code;
}

/* Sets up the recording after a first run. */
static void start(onnx2halide_session* session) {
    onnx2halide_recording* recording = session->recording = calloc(1, sizeof(onnx2halide_recording));
    if (!recording) return;
    const char* wanted = getenv("ONNX2HALIDE_CUDA_GRAPH");
    recording->is_off = (wanted && strcmp(wanted, "0") == 0) || !find_driver(&recording->driver) ||
                        halide_cuda_acquire_context(NULL, &recording->context, 0) != 0 || !recording->context;
}

static int run(onnx2halide_session* session) {
    onnx2halide_recording* recording = session->recording;
    /* A trace is called after each kernel. */
    if (session->trace || (recording && recording->is_off)) return session->model->steps(session);
    if (!recording) {
        const int code = session->model->steps(session);
        if (code == 0) start(session);
        return code;
    }
    void* popped;
    if (recording->driver.push_context(recording->context) != 0) return session->model->steps(session);
    const int code = run_in_context(session);
    recording->driver.pop_context(&popped);
    return code;
}

static void forget(onnx2halide_session* session) {
    onnx2halide_recording* recording = session->recording;
    void* popped;
    if (!recording) return;
    const int is_pushed = recording->context && recording->driver.push_context(recording->context) == 0;
    drop_executable(recording);
    if (is_pushed) recording->driver.pop_context(&popped);
    free(recording);
}

const onnx2halide_recorder onnx2halide_cuda_recorder = {run, launch, forget};
