/* What every emitted host program shares: sessions, their memory, and the calls that kernels make. Linked into NAME.a
 * with local names. */
#ifndef ONNX2HALIDE_SESSION_H
#define ONNX2HALIDE_SESSION_H

#include <stddef.h>
#include <stdint.h>

#include "arena.h"
#include "HalideRuntime.h"
#include "onnx2halide_types.h"
#include "run_memory.h"
#include "threads.h"

typedef struct onnx2halide_session onnx2halide_session;

/* A dim that the model leaves open, and where a run finds it. */
typedef struct onnx2halide_open_dim {
    const char* name;
    int input, axis;
    int64_t min, max;
} onnx2halide_open_dim;

/* What a set of kernels is compiled for. */
typedef struct onnx2halide_target {
    const char* name;                                         /* x86-64-linux-avx2-fma */
    uint64_t features[(halide_target_feature_end + 63) / 64]; /* that the processor must have, a bit each */
} onnx2halide_target;

/* Whether this machine has what the kernels of a target need. */
int onnx2halide_has_target(const onnx2halide_target* target);

/* Launches kernels together that a session runs over and over. */
typedef struct onnx2halide_recorder {
    int (*run)(onnx2halide_session* session);    /* the steps, with tensors bound */
    int (*launch)(onnx2halide_session* session); /* all kernels that wait, before something reads what they make */
    void (*forget)(onnx2halide_session* session);
} onnx2halide_recorder;

typedef struct onnx2halide_recording onnx2halide_recording;

/* What becomes of a kernel where the steps call it. */
typedef enum onnx2halide_launches {
    ONNX2HALIDE_LAUNCHED,
    ONNX2HALIDE_RECORDED, /* it waits, and runs at `launch` */
    ONNX2HALIDE_REPLAYED  /* so it does, from an earlier run's recording */
} onnx2halide_launches;

/* The constant part of a model: tables and the functions of its host program. */
typedef struct onnx2halide_model {
    const char* name;
    size_t session_bytes;
    int input_count, output_count, tensor_count, dim_count;
    int open_count;   /* of symbols, the first: those that the inputs' shapes tell */
    int symbol_count; /* all dims that only a run knows */
    int heap_count;   /* of tensors whose size only the steps tell */
    const onnx2halide_port *inputs, *outputs;
    const onnx2halide_open_dim* open_dims;
    const onnx2halide_string* strings; /* the first in the table of strings; the first of them is the empty one */
    int64_t string_count;              /* 0 where there are no tensors of strings */
    int has_boxes;                     /* whether there are values that are no tensors */
    size_t arena_bytes, scratch_bytes; /* arena_bytes: 0 where dims are open */
    const unsigned char* weights;      /* NULL: in a file */
    size_t weight_bytes;
    const char* weights_id;
    int uses_device;
    const struct halide_device_interface_t* (*device)(void); /* of a model that uses one */
    const int* device_memory_of;                             /* by tensor */
    int device_memory_count;
    const onnx2halide_recorder* recorder; /* NULL: each kernel is launched by itself */
    const onnx2halide_target* targets;    /* the best first */
    int target_count;
    /* Extents of all inputs, then all outputs, outermost first, for the session's open dims; -1 for what only the steps
     * tell. */
    void (*shapes)(const onnx2halide_session* session, int64_t* dims);
    /* Sets up every tensor for the session's open dims. */
    int (*place)(onnx2halide_session* session);
    /* Points the tensors that are inputs and outputs at the caller's memory. */
    void (*bind)(onnx2halide_session* session);
    /* Runs the kernels. */
    int (*steps)(onnx2halide_session* session);
} onnx2halide_model;

enum { ONNX2HALIDE_MAX_THREADS = 256, ONNX2HALIDE_MAX_RANK = 16 };

/* Memory for a tensor whose size only a run knows. It grows with the largest so far. */
typedef struct onnx2halide_heap {
    unsigned char* data;
    size_t bytes;
} onnx2halide_heap;

/* Memory on a device for the tensors that share a range of the session's. Where there is none yet, the processor has
 * what they hold. */
typedef struct onnx2halide_device_memory {
    halide_buffer_t* holder; /* the tensor that was used last: its handle and flags are those of all; NULL: none was */
    size_t bytes;            /* of the largest so far */
} onnx2halide_device_memory;

struct onnx2halide_session {
    const onnx2halide_model* model;
    const char* step; /* the kernel that runs, for messages */
    char error[512];
    int target; /* of the model's, that this machine has */
    int threads;
    onnx2halide_team* team;                          /* NULL: one thread */
    int is_small_step;                               /* threads do not share the step that runs */
    int (*trace)(void* context, const char* kernel); /* see onnx2halide_options */
    void* trace_context;
    int64_t* symbols;     /* numbers of the model's symbols in this run */
    int64_t* placed_open; /* the open dims for which the tensors are placed */
    int is_placed;
    onnx2halide_heap* heap;
    onnx2halide_run_memory run;
    unsigned char* arena; /* tensors, then one scratch region a thread */
    size_t arena_bytes, tensor_bytes;
    int owns_arena;
    unsigned char*
        scratch; /* regions of scratch_bytes, one a thread, in the arena or, once more was wanted, own_scratch */
    size_t scratch_bytes, scratch_wanted;
    unsigned char* own_scratch;
    const unsigned char* weights;
    void* mapping; /* of the weights file */
    size_t mapping_bytes;
    const void** input_data; /* the caller's memory in this run */
    void** output_data;
    void** output_storage; /* outputs for which the caller gave no memory */
    size_t* output_storage_bytes;
    halide_buffer_t* tensors;
    onnx2halide_device_memory* device_memory;
    onnx2halide_launches launches;    /* with a recorder */
    onnx2halide_recording* recording; /* the recorder's; NULL: none yet */
    halide_dimension_t* dims;
    int next_dim;
    int64_t* port_dims;         /* of all inputs, then all outputs, in this run */
    onnx2halide_value* results; /* what run_values returns: the caller's */
};

/* Makes a session of model->session_bytes; options may be NULL. On failure *session is NULL and
 * onnx2halide_create_error tells why. */
int onnx2halide_create(onnx2halide_session** session, const onnx2halide_model* model,
                       const onnx2halide_options* options);
void onnx2halide_destroy(onnx2halide_session* session);
const char* onnx2halide_error(const onnx2halide_session* session);

/* The target of the session's kernels; NULL for NULL. */
const char* onnx2halide_target_name(const onnx2halide_session* session);

/* What a call without a session returns; onnx2halide_error(NULL) tells the rest. */
int onnx2halide_no_session(const onnx2halide_model* model, const char* function);

/* Notes why a call failed and returns the code. */
int onnx2halide_fail(onnx2halide_session* session, int code, const char* format, ...);

/* Runs with the memory that input_data and output_data name; run_bound: where outputs are known to have some, or to get
 * it from the steps. */
int onnx2halide_run_bound(onnx2halide_session* session);
int onnx2halide_run(onnx2halide_session* session);
int onnx2halide_run_values(onnx2halide_session* session, const onnx2halide_value* inputs, onnx2halide_value* outputs);

/* Sets up one tensor: dense, innermost extent first. Kernels count on shapes to be so, and on no more elements than
 * they can number: it returns a code for others. */
int onnx2halide_tensor(onnx2halide_session* session, int tensor, const char* name, const void* data,
                       struct halide_type_t type, int rank, const int64_t* extents);
/* Lets a tensor be a part of another: its runs of elements along the innermost dimension lie `pitch` elements apart. */
void onnx2halide_set_pitch(halide_buffer_t* tensor, int64_t pitch);
/* Keeps room for the shape of a tensor that the steps set up. What it has on a device stays. */
void onnx2halide_late_tensor(onnx2halide_session* session, int tensor, struct halide_type_t type, int rank);
/* Makes sure that the arena holds this many bytes for tensors. */
int onnx2halide_reserve(onnx2halide_session* session, size_t tensor_bytes);

/* In the emitted functions `session` is the session, and a tensor `image` has the index tensor_image: a model's names
 * cannot meet those of C and of this file. A trace may ask for a step again. */
#define T(tensor) (&session->tensors[tensor_##tensor])
/* Returns the code of a call that fails. */
#define RUN(call)                                                                                                      \
    do {                                                                                                               \
        const int code = (call);                                                                                       \
        if (code != 0) return code;                                                                                    \
    } while (0)
/* TENSOR(image, session->arena + 64, float, 32, EXTENTS(8, 8, 3)): where it lies, its type, extents innermost first. */
#define TENSOR(tensor, data, type, bits, extents)                                                                      \
    RUN(onnx2halide_tensor(session, tensor_##tensor, #tensor, data,                                                    \
                           (struct halide_type_t){halide_type_##type, bits, 1}, extents))
#define EXTENTS(...)                                                                                                   \
    (int)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[]) { __VA_ARGS__ }
#define SCALAR 0, NULL
/* A tensor that the steps set up: LATE(found, int, 64, 2). */
#define LATE(tensor, type, bits, rank)                                                                                 \
    onnx2halide_late_tensor(session, tensor_##tensor, (struct halide_type_t){halide_type_##type, bits, 1}, rank)
/* The number of a dim that a run finds. */
#define D(symbol) (session->symbols[symbol_##symbol])
#define STEP(kernel, ...) NAMED_STEP(#kernel, kernel##_kernel(session, __VA_ARGS__))
/* The same where a kernel has a function for each target. */
#define STEP_OF_TARGET(kernel, ...) NAMED_STEP(#kernel, kernel##_kernels[session->target](session, __VA_ARGS__))
#define NAMED_STEP(name, call)                                                                                         \
    do {                                                                                                               \
        session->step = name;                                                                                          \
        do {                                                                                                           \
            const int status = call;                                                                                   \
            if (status != 0) return onnx2halide_fail(session, ONNX2HALIDE_FAILED, "Halide's error %d", status);        \
        } while (session->trace && session->trace(session->trace_context, name));                                      \
    } while (0)

/* A step whose work, operations and bytes that it touches, only a run knows: threads share it where that pays. */
#define WORK(amount, ...)                                                                                              \
    do {                                                                                                               \
        session->is_small_step = (amount) < ONNX2HALIDE_SHARED_WORK;                                                   \
        __VA_ARGS__;                                                                                                   \
        session->is_small_step = 0;                                                                                    \
    } while (0)

/* By 0 it is 0: what asks may come before the step that refuses the number. Extents divide by the thousand, and the C
 * compiler takes minutes for as many copies. */
__attribute__((noinline, const, unused)) static int64_t floor_div(int64_t a, int64_t b) {
    return b == 0 ? 0 : a / b - (a % b != 0 && (a < 0) != (b < 0));
}
static inline int64_t floor_mod(int64_t a, int64_t b) { return a - b * floor_div(a, b); }
static inline int64_t min_dim(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t max_dim(int64_t a, int64_t b) { return a > b ? a : b; }

#endif
