#define _GNU_SOURCE
#include "session.h"
#include "steps.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Why this thread's last create, or its last call without a session, failed. */
static _Thread_local char create_error[512];

void onnx2halide_forget_error(onnx2halide_session* session) {
    session->error[0] = '\0';
    session->has_error = 0;
    session->step = session->node = NULL;
}

int onnx2halide_fail(onnx2halide_session* session, int code, const char* format, ...) {
    /* A kernel's own message comes first and says more. Several threads may fail at once. */
    if (__atomic_exchange_n(&session->has_error, 1, __ATOMIC_RELAXED)) return code;
    char message[sizeof session->error - 64];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    /* A message that names the model's node needs no step; besides, the last step may be another node's. */
    const char *name = session->model->name, *step = session->step, *node = session->node;
    if (strncmp(message, "node '", 6) == 0 || (!step && !node)) {
        snprintf(session->error, sizeof session->error, "%s: %s", name, message);
    } else if (node) {
        snprintf(session->error, sizeof session->error, "%s: %s: %s", name, node, message);
    } else {
        snprintf(session->error, sizeof session->error, "%s: step '%s': %s", name, step, message);
    }
    return code;
}

int onnx2halide_fail_halide(onnx2halide_session* session, int status) {
    return onnx2halide_fail(session, ONNX2HALIDE_FAILED, "Halide's error %d", status);
}

const char* onnx2halide_error(const onnx2halide_session* session) { return session ? session->error : create_error; }

int onnx2halide_no_session(const onnx2halide_model* model, const char* function) {
    snprintf(create_error, sizeof create_error, "%s: %s has a null pointer for the session", model->name, function);
    return ONNX2HALIDE_BAD_ARGUMENT;
}

static int default_threads(void) {
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    cpu_set_t allowed; /* too small on machines with more than 1024 cores: then the call fails */
    if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) cores = CPU_COUNT(&allowed);
    return cores < 1 ? 1 : cores > ONNX2HALIDE_MAX_THREADS ? ONNX2HALIDE_MAX_THREADS : (int)cores;
}

/* Maps the weights file. It must end with the id of the weights that this program was compiled with. */
static int map_weights(onnx2halide_session* session, const char* path) {
    const onnx2halide_model* model = session->model;
    char own[512];
    if (!path) {
        snprintf(own, sizeof own, "%s.weights", model->name);
        path = own;
    }
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return onnx2halide_fail(session, ONNX2HALIDE_NO_WEIGHTS, "weights file '%s' cannot be read: %s", path,
                                strerror(errno));
    struct stat status;
    const size_t id_bytes = strlen(model->weights_id), expected = model->weight_bytes + id_bytes;
    int code = 0;
    if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) {
        code = onnx2halide_fail(session, ONNX2HALIDE_NO_WEIGHTS, "weights file '%s' is not a plain file", path);
    } else if ((size_t)status.st_size != expected) {
        code = onnx2halide_fail(session, ONNX2HALIDE_NO_WEIGHTS, "weights file '%s' has %zu bytes, expected %zu", path,
                                (size_t)status.st_size, expected);
    } else {
        void* mapping = mmap(NULL, expected, PROT_READ, MAP_PRIVATE, file, 0);
        if (mapping == MAP_FAILED) {
            code = onnx2halide_fail(session, ONNX2HALIDE_NO_WEIGHTS, "weights file '%s' cannot be mapped: %s", path,
                                    strerror(errno));
        } else {
            session->mapping = mapping;
            session->mapping_bytes = expected;
            session->weights = mapping;
            if (memcmp(session->weights + model->weight_bytes, model->weights_id, id_bytes) != 0) {
                code = onnx2halide_fail(session, ONNX2HALIDE_NO_WEIGHTS, "weights file '%s' belongs to another model",
                                        path);
            }
        }
    }
    close(file);
    return code;
}

/* The next `bytes` of a block, of which `*used` are taken; NULL if there is no block yet and only sizes are added up.
 */
static void* carve(unsigned char* block, size_t* used, size_t bytes) {
    void* part = block ? block + *used : NULL;
    *used += onnx2halide_aligned(bytes);
    return part;
}

/* Lets the session point to its arrays, which follow the emitted struct in the same block. Returns the block's size. */
static size_t place_arrays(onnx2halide_session* session, const onnx2halide_model* model, unsigned char* block) {
    const size_t inputs = model->input_count, outputs = model->output_count;
    size_t used = 0;
    carve(block, &used, model->session_bytes);
    session->tensors = carve(block, &used, model->tensor_count * sizeof *session->tensors);
    session->dims = carve(block, &used, model->dim_count * sizeof *session->dims);
    session->input_data = carve(block, &used, inputs * sizeof *session->input_data);
    session->output_data = carve(block, &used, outputs * sizeof *session->output_data);
    session->output_storage = carve(block, &used, outputs * sizeof *session->output_storage);
    session->output_storage_bytes = carve(block, &used, outputs * sizeof *session->output_storage_bytes);
    session->port_dims = carve(block, &used, (inputs + outputs) * ONNX2HALIDE_MAX_RANK * sizeof *session->port_dims);
    session->symbols = carve(block, &used, model->symbol_count * sizeof *session->symbols);
    session->placed_open = carve(block, &used, model->open_count * sizeof *session->placed_open);
    session->heap = carve(block, &used, model->heap_count * sizeof *session->heap);
    session->device_memory = carve(block, &used, model->device_memory_count * sizeof *session->device_memory);
    return used;
}

/* Allocates the emitted struct and all arrays of the session, filled with zeros. */
static onnx2halide_session* allocate_session(const onnx2halide_model* model, int threads) {
    onnx2halide_session sizes;
    unsigned char* block = calloc(1, place_arrays(&sizes, model, NULL));
    if (!block) return NULL;
    onnx2halide_session* session = (onnx2halide_session*)block;
    place_arrays(session, model, block);
    session->model = model;
    session->threads = threads;
    session->scratch_bytes = model->scratch_bytes;
    return session;
}

static void place_scratch(onnx2halide_session* session) {
    if (!session->own_scratch) session->scratch = session->arena + onnx2halide_aligned(session->tensor_bytes);
}

/* Enlarges scratch memory if the last run had to take some from the heap, as happens with kernels whose scratch size
 * depends on open dims. If there is no memory for it, kernels continue to use the heap. */
static void grow_scratch(onnx2halide_session* session) {
    const size_t bytes = onnx2halide_aligned(session->scratch_wanted);
    session->scratch_wanted = 0;
    if (bytes <= session->scratch_bytes) return;
    unsigned char* grown = aligned_alloc(ONNX2HALIDE_ALIGNMENT, bytes * (size_t)session->threads);
    if (!grown) return;
    free(session->own_scratch);
    session->scratch = session->own_scratch = grown;
    session->scratch_bytes = bytes;
}

static size_t scratch_total(const onnx2halide_session* session) {
    return session->model->scratch_bytes * (size_t)session->threads;
}

int onnx2halide_reserve(onnx2halide_session* session, uint64_t tensor_bytes) {
    if (tensor_bytes > SIZE_MAX / 2)
        return onnx2halide_fail(session, ONNX2HALIDE_NO_MEMORY, "no memory for an arena of %llu bytes",
                                (unsigned long long)tensor_bytes);
    const size_t needed = onnx2halide_aligned((size_t)tensor_bytes) + scratch_total(session);
    if (needed > session->arena_bytes) {
        if (!session->owns_arena && session->arena) {
            return onnx2halide_fail(session, ONNX2HALIDE_BAD_ARGUMENT, "the arena has %zu bytes, expected %zu",
                                    session->arena_bytes, needed);
        }
        free(session->arena);
        session->arena_bytes = 0;
        session->owns_arena = 1;
        session->arena = aligned_alloc(ONNX2HALIDE_ALIGNMENT, onnx2halide_aligned(needed));
        if (!session->arena)
            return onnx2halide_fail(session, ONNX2HALIDE_NO_MEMORY, "no memory for an arena of %zu bytes", needed);
        session->arena_bytes = onnx2halide_aligned(needed);
    }
    session->tensor_bytes = (size_t)tensor_bytes;
    place_scratch(session);
    return 0;
}

const char* onnx2halide_target_name(const onnx2halide_session* session) {
    return session ? session->model->targets[session->target].name : NULL;
}

/* Chooses the best kernels that this machine can run. */
static int pick_target(onnx2halide_session* session) {
    const onnx2halide_model* model = session->model;
    for (session->target = 0; session->target < model->target_count; ++session->target) {
        if (onnx2halide_has_target(&model->targets[session->target])) return 0;
    }
    session->target = model->target_count - 1;
    return onnx2halide_fail(session, ONNX2HALIDE_FAILED, "the processor lacks what the kernels are compiled for: %s",
                            onnx2halide_target_name(session));
}

static int set_up(onnx2halide_session* session, const onnx2halide_options* options) {
    const onnx2halide_model* model = session->model;
    const int picked = pick_target(session);
    if (picked != 0) return picked;
    if (options && options->arena) {
        if ((uintptr_t)options->arena % ONNX2HALIDE_ALIGNMENT != 0) {
            return onnx2halide_fail(session, ONNX2HALIDE_BAD_ARGUMENT, "the arena is not aligned to %d bytes",
                                    ONNX2HALIDE_ALIGNMENT);
        }
        session->arena = options->arena;
        session->arena_bytes = options->arena_size;
    }
    if (options) {
        session->trace = options->trace;
        session->trace_context = options->trace_context;
    }
    session->weights = model->weights;
    if (!session->weights && model->weight_bytes > 0) {
        const int code = map_weights(session, options ? options->weights : NULL);
        if (code != 0) return code;
    }
    if (session->threads > 1) {
        session->team = onnx2halide_start_team(session->threads);
        if (!session->team) return onnx2halide_fail(session, ONNX2HALIDE_NO_MEMORY, "no memory for threads");
    }
    if (model->open_count > 0) return 0; /* placed by the first run */
    int code = onnx2halide_reserve(session, model->arena_bytes);
    if (code == 0) code = onnx2halide_place(session);
    session->is_placed = code == 0;
    return code;
}

int onnx2halide_create(onnx2halide_session** result, const onnx2halide_model* model,
                       const onnx2halide_options* options) {
    create_error[0] = '\0';
    if (!result) return onnx2halide_no_session(model, "create");
    *result = NULL;
    if (options && options->size != sizeof(onnx2halide_options)) {
        snprintf(create_error, sizeof create_error, "%s: options.size is %zu, expected %zu", model->name, options->size,
                 sizeof(onnx2halide_options));
        return ONNX2HALIDE_BAD_ARGUMENT;
    }
    if (options && (options->threads < 0 || options->threads > ONNX2HALIDE_MAX_THREADS)) {
        snprintf(create_error, sizeof create_error, "%s: options.threads is %d, expected 0 to %d", model->name,
                 options->threads, ONNX2HALIDE_MAX_THREADS);
        return ONNX2HALIDE_BAD_ARGUMENT;
    }
    const int threads = options && options->threads > 0 ? options->threads : default_threads();
    onnx2halide_session* session = allocate_session(model, threads);
    if (!session) {
        snprintf(create_error, sizeof create_error, "%s: no memory for a session", model->name);
        return ONNX2HALIDE_NO_MEMORY;
    }
    const int code = set_up(session, options);
    if (code != 0) {
        memcpy(create_error, session->error, sizeof create_error);
        onnx2halide_destroy(session);
        return code;
    }
    *result = session;
    return 0;
}

static void free_device_memory(onnx2halide_session* session) {
    int is_idle = 0; /* kernels of a run that failed may still be running */
    for (int i = 0; i < session->model->device_memory_count; ++i) {
        halide_buffer_t* holder = session->device_memory[i].holder;
        if (!holder || !holder->device) continue;
        if (!is_idle) is_idle = halide_device_sync(session, holder) == 0;
        halide_device_free(session, holder);
    }
}

void onnx2halide_destroy(onnx2halide_session* session) {
    if (!session) return;
    onnx2halide_stop_team(session->team);
    if (session->model->recorder) session->model->recorder->forget(session);
    free_device_memory(session);
    for (int i = 0; i < session->model->output_count; ++i) free(session->output_storage[i]);
    for (int i = 0; i < session->model->heap_count; ++i) free(session->heap[i].data);
    if (session->owns_arena) free(session->arena);
    free(session->own_scratch);
    onnx2halide_free_run_memory(session);
    if (session->mapping) munmap(session->mapping, session->mapping_bytes);
    free(session);
}

int onnx2halide_tensor(onnx2halide_session* session, int index, const char* name, const void* data,
                       struct halide_type_t type, int rank, const int64_t* extents) {
    onnx2halide_late_tensor(session, index, type, rank);
    return onnx2halide_set_shape(session, index, name, (void*)(uintptr_t)data, rank, extents);
}

void onnx2halide_set_pitch(halide_buffer_t* tensor, int64_t pitch) {
    int64_t stride = pitch;
    for (int i = 1; i < tensor->dimensions; ++i) {
        tensor->dim[i].stride = (int32_t)stride;
        stride *= tensor->dim[i].extent;
    }
}

int onnx2halide_place(onnx2halide_session* session) {
    const onnx2halide_model* model = session->model;
    session->next_dim = 0;
    for (int i = 0; i < model->fixed_tensor_count; ++i) {
        const onnx2halide_fixed_tensor* fixed = &model->fixed_tensors[i];
        const unsigned char* data = fixed->memory == ONNX2HALIDE_IN_WEIGHTS ? session->weights + fixed->offset
                                    : fixed->memory == ONNX2HALIDE_IN_ARENA ? session->arena + fixed->offset
                                                                            : NULL;
        const int code =
            onnx2halide_tensor(session, fixed->tensor, fixed->name, data, fixed->type, fixed->rank, fixed->extents);
        if (code != 0) return code;
        if (fixed->pitch != 0) onnx2halide_set_pitch(&session->tensors[fixed->tensor], fixed->pitch);
    }
    return model->place ? model->place(session) : 0;
}

void onnx2halide_late_tensor(onnx2halide_session* session, int index, struct halide_type_t type, int rank) {
    halide_buffer_t* tensor = &session->tensors[index];
    tensor->type = type;
    tensor->dimensions = rank;
    tensor->dim = session->dims + session->next_dim;
    tensor->host = NULL;
    session->next_dim += rank;
}

int onnx2halide_check_inputs(onnx2halide_session* session) {
    const onnx2halide_model* model = session->model;
    for (int i = 0; i < model->input_count; ++i) {
        if (!session->input_data[i])
            return onnx2halide_fail(session, ONNX2HALIDE_BAD_ARGUMENT, "input '%s' is a null pointer",
                                    model->inputs[i].name);
    }
    return 0;
}

int onnx2halide_run(onnx2halide_session* session) {
    const onnx2halide_model* model = session->model;
    onnx2halide_forget_error(session);
    int code = onnx2halide_check_inputs(session);
    if (code == 0) code = onnx2halide_forget_run(session);
    if (code != 0) return code;
    for (int i = 0; i < model->output_count; ++i) {
        if (!session->output_data[i])
            return onnx2halide_fail(session, ONNX2HALIDE_BAD_ARGUMENT, "output '%s' is a null pointer",
                                    model->outputs[i].name);
    }
    return onnx2halide_run_bound(session);
}

int onnx2halide_run_bound(onnx2halide_session* session) {
    const onnx2halide_model* model = session->model;
    if (session->scratch_wanted > 0) grow_scratch(session);
    model->bind(session);
    session->is_small_step = 0; /* a run that failed may have left it set */
    return model->recorder ? model->recorder->run(session) : model->steps(session);
}
