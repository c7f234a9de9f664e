/* The part that all emitted host programs share: sessions, their memory, and the functions that kernels call. Linked
 * into NAME.a as local symbols. */
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

/* An open dim of the model, and the input and axis that determine it at run time. */
typedef struct onnx2halide_open_dim {
    const char* name;
    int input, axis;
    int64_t min, max;
} onnx2halide_open_dim;

/* The target of a set of kernels. */
typedef struct onnx2halide_target {
    const char* name;                                         /* x86-64-linux-avx2-fma */
    uint64_t features[(halide_target_feature_end + 63) / 64]; /* a bit for each one that the processor must have */
} onnx2halide_target;

/* Whether this machine has all features of a target. */
int onnx2halide_has_target(const onnx2halide_target* target);

/* Records the kernel launches of a session, to launch them together in later runs. */
typedef struct onnx2halide_recorder {
    int (*run)(onnx2halide_session* session);    /* runs the steps; tensors are bound */
    int (*launch)(onnx2halide_session* session); /* launches all deferred kernels, before a step reads their results */
    void (*forget)(onnx2halide_session* session);
} onnx2halide_recorder;

typedef struct onnx2halide_recording onnx2halide_recording;

/* What happens to a kernel when a step calls it. */
typedef enum onnx2halide_launches {
    ONNX2HALIDE_LAUNCHED,
    ONNX2HALIDE_RECORDED, /* deferred until `launch` */
    ONNX2HALIDE_REPLAYED  /* deferred likewise, and part of an earlier run's recording */
} onnx2halide_launches;

typedef enum onnx2halide_memory {
    ONNX2HALIDE_ELSEWHERE, /* set up later: the caller's memory, that of a view, or memory of the heap */
    ONNX2HALIDE_IN_WEIGHTS,
    ONNX2HALIDE_IN_ARENA
} onnx2halide_memory;

/* A tensor whose place and shape are the same in all runs. */
typedef struct onnx2halide_fixed_tensor {
    int tensor;
    const char* name;
    onnx2halide_memory memory;
    size_t offset; /* in bytes */
    struct halide_type_t type;
    int64_t pitch; /* of a part of another tensor: the distance in elements between its rows; 0: they are dense */
    int rank;
    const int64_t* extents; /* innermost first */
} onnx2halide_fixed_tensor;

/* The constant part of a model: tables and the functions of its host program. */
typedef struct onnx2halide_model {
    const char* name;
    size_t session_bytes;
    int input_count, output_count, tensor_count, dim_count;
    int open_count;   /* number of symbols, the first ones, that the shapes of inputs determine */
    int symbol_count; /* number of all dims that are known only at run time */
    int heap_count;   /* number of memory slots for tensors whose size is determined by a step */
    const onnx2halide_port *inputs, *outputs;
    const onnx2halide_open_dim* open_dims;
    const onnx2halide_string* strings; /* constants, the first in the table of strings; the first one is empty */
    int64_t string_count;              /* 0 without tensors of strings */
    int has_boxes;                     /* whether there are values other than tensors */
    size_t arena_bytes, scratch_bytes; /* arena_bytes is 0 with open dims */
    const unsigned char* weights;      /* NULL: they are in a file */
    size_t weight_bytes;
    const char* weights_id;
    const struct halide_device_interface_t* (*device)(void); /* NULL: kernels run on the processor */
    const int* device_memory_of;                             /* index into device_memory, by tensor */
    int device_memory_count;
    const onnx2halide_recorder* recorder; /* NULL: each kernel is launched by itself */
    const onnx2halide_target* targets;    /* best first */
    int target_count;
    /* Writes the extents of all inputs, then of all outputs, outermost first, for the session's open dims; -1 for an
     * extent that a step determines. */
    void (*shapes)(const onnx2halide_session* session, int64_t* dims);
    const onnx2halide_fixed_tensor* fixed_tensors; /* NULL: none */
    int fixed_tensor_count;
    /* Sets up all other tensors for the session's open dims; NULL: there are none. */
    int (*place)(onnx2halide_session* session);
    /* Points the input and output tensors at the caller's memory. */
    void (*bind)(onnx2halide_session* session);
    /* Runs the kernels. */
    int (*steps)(onnx2halide_session* session);
} onnx2halide_model;

enum { ONNX2HALIDE_MAX_THREADS = 256, ONNX2HALIDE_MAX_RANK = 16 };

/* Memory for a tensor whose size is known only at run time. It grows to the largest size so far. */
typedef struct onnx2halide_heap {
    unsigned char* data;
    size_t bytes;
} onnx2halide_heap;

/* Device memory of the tensors that share a range of the session's memory. Before it is allocated, the host has their
 * contents. */
typedef struct onnx2halide_device_memory {
    halide_buffer_t* holder; /* the tensor used last, whose handle and flags are current for all; NULL: none yet */
    size_t bytes;            /* size of the largest so far */
} onnx2halide_device_memory;

struct onnx2halide_session {
    const onnx2halide_model* model;
    const char* step; /* the running kernel, for messages */
    const char* node; /* the label of the node of the running host operator, for messages; or NULL */
    char error[512];
    int has_error; /* atomic: whether a thread has written the error, or is writing it */
    int target;    /* index of the model's target that this session uses */
    int threads;
    onnx2halide_team* team; /* NULL: one thread */
    int is_small_step;      /* whether the running step is too small to distribute to threads */
    int (*trace)(void* context, const char* kernel); /* see onnx2halide_options */
    void* trace_context;
    int64_t* symbols;     /* values of the model's symbols in this run */
    int64_t* placed_open; /* the open dims for which tensors are placed */
    int is_placed;
    onnx2halide_heap* heap;
    onnx2halide_run_memory run;
    unsigned char* arena; /* tensors, then one scratch region per thread */
    size_t arena_bytes, tensor_bytes;
    int owns_arena;
    /* Regions of scratch_bytes, one per thread, in the arena or, once more was needed, in own_scratch. */
    unsigned char* scratch;
    size_t scratch_bytes, scratch_wanted;
    unsigned char* own_scratch;
    const unsigned char* weights;
    void* mapping; /* of the weights file */
    size_t mapping_bytes;
    const void** input_data; /* the caller's memory in this run */
    void** output_data;
    void** output_storage; /* memory of outputs for which the caller provides none */
    size_t* output_storage_bytes;
    halide_buffer_t* tensors;
    onnx2halide_device_memory* device_memory;
    onnx2halide_launches launches;    /* if the model has a recorder */
    onnx2halide_recording* recording; /* the recorder's state; NULL: none yet */
    halide_dimension_t* dims;
    int next_dim;
    int64_t* port_dims;         /* dims of all inputs, then of all outputs, in this run */
    onnx2halide_value* results; /* the caller's outputs of run_values */
};

/* Creates a session of model->session_bytes; options may be NULL. On failure *session is NULL and
 * onnx2halide_error(NULL) returns the reason. */
int onnx2halide_create(onnx2halide_session** session, const onnx2halide_model* model,
                       const onnx2halide_options* options);
void onnx2halide_destroy(onnx2halide_session* session);
const char* onnx2halide_error(const onnx2halide_session* session);

/* Returns the target of the session's kernels; NULL for NULL. */
const char* onnx2halide_target_name(const onnx2halide_session* session);

/* Fails for a call whose session is NULL: sets onnx2halide_error(NULL) and returns the code. */
int onnx2halide_no_session(const onnx2halide_model* model, const char* function);

/* Sets the session's error, unless one is set already, and returns the code. The message names the node of the running
 * host operator, or the step. */
int onnx2halide_fail(onnx2halide_session* session, int code, const char* format, ...);
/* The same for a status other than 0 that Halide has returned. */
int onnx2halide_fail_halide(onnx2halide_session* session, int status);
/* Begins a run, or another attempt at one. */
void onnx2halide_forget_error(onnx2halide_session* session);

/* Fails if an input of the run has no memory. */
int onnx2halide_check_inputs(onnx2halide_session* session);
/* Runs the model on the memory that input_data and output_data point to. onnx2halide_run_bound checks neither: each
 * output has memory, or gets it from the steps. */
int onnx2halide_run_bound(onnx2halide_session* session);
int onnx2halide_run(onnx2halide_session* session);
int onnx2halide_run_values(onnx2halide_session* session, const onnx2halide_value* inputs, onnx2halide_value* outputs);

/* Sets up a dense tensor; extents are innermost first. Returns a code if it has more elements than kernels can index,
 * since kernels do not check shapes. */
int onnx2halide_tensor(onnx2halide_session* session, int tensor, const char* name, const void* data,
                       struct halide_type_t type, int rank, const int64_t* extents);
/* Makes a tensor a part of another: `pitch` is the distance in elements between its rows, which are dense. */
void onnx2halide_set_pitch(halide_buffer_t* tensor, int64_t pitch);
/* Sets the type and rank of a tensor whose shape a step determines. Its state on a device is unchanged. */
void onnx2halide_late_tensor(onnx2halide_session* session, int tensor, struct halide_type_t type, int rank);
/* Ensures that the arena has this many bytes for tensors, besides scratch memory. */
int onnx2halide_reserve(onnx2halide_session* session, uint64_t tensor_bytes);
/* Sets up all tensors of the model. */
int onnx2halide_place(onnx2halide_session* session);

/* Macros for emitted functions, in which `session` is the session. Tensor `image` has the index tensor_image, so that
 * the names of a model cannot collide with those of C and of this file. */
#define T(tensor) (&session->tensors[tensor_##tensor])
/* Returns the code of a call that fails from the enclosing function. */
#define RUN(call)                                                                                                      \
    do {                                                                                                               \
        const int code = (call);                                                                                       \
        if (code != 0) return code;                                                                                    \
    } while (0)
/* TENSOR(image, session->arena + 64, float, 32, EXTENTS(8, 8, 3)): address, type, extents innermost first. */
#define TENSOR(tensor, data, type, bits, extents)                                                                      \
    RUN(onnx2halide_tensor(session, tensor_##tensor, #tensor, data,                                                    \
                           (struct halide_type_t){halide_type_##type, bits, 1}, extents))
#define EXTENTS(...)                                                                                                   \
    (int)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[]) { __VA_ARGS__ }
#define SCALAR 0, NULL
/* An onnx2halide_fixed_tensor: FIXED(image, IN_ARENA, 64, float, 32, 0, EXTENTS(8, 8, 3)) */
#define FIXED(tensor, memory, offset, type, bits, pitch, extents)                                                      \
    { tensor_##tensor, #tensor, ONNX2HALIDE_##memory, offset, {halide_type_##type, bits, 1}, pitch, extents }
/* A tensor whose shape a step determines: LATE(found, int, 64, 2). */
#define LATE(tensor, type, bits, rank)                                                                                 \
    onnx2halide_late_tensor(session, tensor_##tensor, (struct halide_type_t){halide_type_##type, bits, 1}, rank)
/* The value of a symbol in this run. */
#define D(symbol) (session->symbols[symbol_##symbol])
#define STEP(kernel, ...) NAMED_STEP(#kernel, kernel##_kernel(session, __VA_ARGS__))
/* The same for a kernel that has a function for each target. */
#define STEP_OF_TARGET(kernel, ...) NAMED_STEP(#kernel, kernel##_kernels[session->target](session, __VA_ARGS__))
/* Calls a kernel, and calls it again while the trace asks for that. */
#define NAMED_STEP(name, call)                                                                                         \
    do {                                                                                                               \
        session->step = name;                                                                                          \
        do {                                                                                                           \
            const int status = call;                                                                                   \
            if (status != 0) return onnx2halide_fail_halide(session, status);                                          \
        } while (session->trace && session->trace(session->trace_context, name));                                      \
    } while (0)

/* A step whose work, in operations plus bytes accessed, is known only at run time: threads share it if that pays. */
#define WORK(amount, ...)                                                                                              \
    do {                                                                                                               \
        session->is_small_step = (amount) < ONNX2HALIDE_SHARED_WORK;                                                   \
        __VA_ARGS__;                                                                                                   \
        session->is_small_step = 0;                                                                                    \
    } while (0)

/* Division by 0 returns 0: it may be evaluated before the step that refuses the divisor. Not inlined, since the extents
 * of a model may contain thousands of divisions, for which the C compiler would take minutes. */
__attribute__((noinline, const, unused)) static int64_t floor_div(int64_t a, int64_t b) {
    return b == 0 ? 0 : a / b - (a % b != 0 && (a < 0) != (b < 0));
}
static inline int64_t floor_mod(int64_t a, int64_t b) { return a - b * floor_div(a, b); }
static inline int64_t min_dim(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t max_dim(int64_t a, int64_t b) { return a > b ? a : b; }

#endif
