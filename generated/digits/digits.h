/*
 * onnx2halide: digits.onnx (opset 17, sha256 a31ed1b05dbdb944), target x86-64-linux-avx2-f16c-fma
 * again with: onnx2halide compile scripts/digits/digits.onnx -o generated/digits --target x86-64-linux-avx2-fma-f16c --sources-only
 */
#ifndef DIGITS_H
#define DIGITS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef ONNX2HALIDE_TYPES
#define ONNX2HALIDE_TYPES

/* Error codes. 0 is success; NAME_error returns the message. */
enum {
    ONNX2HALIDE_BAD_ARGUMENT = 1, /* a null pointer, a wrong shape or type, an arena that is too small */
    ONNX2HALIDE_NO_MEMORY = 2,
    ONNX2HALIDE_NO_WEIGHTS = 3, /* the weights file is missing or belongs to another model */
    ONNX2HALIDE_FAILED = 4      /* a kernel or its device failed, or the processor lacks instructions that it needs */
};

/* Element types: ONNX's TensorProto.DataType. */
enum {
    ONNX2HALIDE_FLOAT32 = 1,
    ONNX2HALIDE_UINT8 = 2,
    ONNX2HALIDE_INT8 = 3,
    ONNX2HALIDE_UINT16 = 4,
    ONNX2HALIDE_INT16 = 5,
    ONNX2HALIDE_INT32 = 6,
    ONNX2HALIDE_INT64 = 7,
    ONNX2HALIDE_STRING = 8,
    ONNX2HALIDE_BOOL = 9,
    ONNX2HALIDE_FLOAT16 = 10,
    ONNX2HALIDE_FLOAT64 = 11,
    ONNX2HALIDE_UINT32 = 12,
    ONNX2HALIDE_UINT64 = 13,
    ONNX2HALIDE_COMPLEX64 = 14,
    ONNX2HALIDE_COMPLEX128 = 15,
    ONNX2HALIDE_BFLOAT16 = 16,
    ONNX2HALIDE_FLOAT8E4M3FN = 17,
    ONNX2HALIDE_FLOAT8E4M3FNUZ = 18,
    ONNX2HALIDE_FLOAT8E5M2 = 19,
    ONNX2HALIDE_FLOAT8E5M2FNUZ = 20,
    ONNX2HALIDE_UINT4 = 21, /* 4 bits: two elements per byte, the first in the low bits */
    ONNX2HALIDE_INT4 = 22,
    ONNX2HALIDE_FLOAT4E2M1 = 23,
    ONNX2HALIDE_FLOAT8E8M0 = 24,
    ONNX2HALIDE_UINT2 = 25, /* 2 bits: four elements per byte, the first in the low bits */
    ONNX2HALIDE_INT2 = 26
};

/* Returns the name of an element type, such as "float32". */
static inline const char* onnx2halide_type_name(int32_t type) {
    static const char* const names[] = {
        "undefined", "float32",    "uint8",      "int8",         "uint16",         "int16",      "int32",
        "int64",     "string",     "bool",       "float16",      "float64",        "uint32",     "uint64",
        "complex64", "complex128", "bfloat16",   "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz",
        "uint4",     "int4",       "float4e2m1", "float8e8m0",   "uint2",          "int2"};
    return type >= 0 && type <= ONNX2HALIDE_INT2 ? names[type] : "unknown";
}

/* Kinds of values. */
enum { ONNX2HALIDE_TENSOR = 0, ONNX2HALIDE_SEQUENCE = 1, ONNX2HALIDE_MAP = 2, ONNX2HALIDE_OPTIONAL = 3 };

/* One input or output of NAME_run_values. Inputs belong to the caller; a run only reads them. For an output the caller
 * provides a buffer, or leaves the value zero-initialised: then the session provides it. Whatever the session provides
 * belongs to it and is valid until its next run; that always includes items and the texts of strings. The value may
 * then serve for the next run's output. */
typedef struct onnx2halide_value {
    int32_t kind;        /* ONNX2HALIDE_TENSOR … */
    int32_t type;        /* element type: ONNX2HALIDE_FLOAT32 … */
    int64_t rank;        /* number of dims */
    const int64_t* dims; /* outermost first */
    void* data;  /* row-major elements, aligned as their C type is; for an output the caller's buffer, or NULL for the
                    session's */
    size_t size; /* bytes at data. A run leaves the size of the caller's own buffer, which may be larger than needed */
    struct onnx2halide_value* items; /* of a sequence or an optional value; a map has two: its keys and its values */
    int64_t count;                   /* number of items; 0 for an optional value that is absent */
    const void* lent; /* of an output: set to data by a run, if that is the session's memory; NULL with your own */
} onnx2halide_value;

/* An element of a tensor of strings, whose data is an array of these. In outputs a null character follows the text. */
typedef struct onnx2halide_string {
    const char* text;
    size_t length;
} onnx2halide_string;

/* The declaration of a model's input or output. */
typedef struct onnx2halide_port {
    const char* name; /* as in the ONNX file */
    int32_t type;     /* ONNX2HALIDE_FLOAT32 … */
    int32_t rank;
    const int64_t* dims; /* -1 for an open dim */
    int32_t kind;        /* ONNX2HALIDE_TENSOR … */
    /* The contents of a sequence, map or optional value, without a name; NULL for a tensor. The type of a map is that
     * of its keys. Rank -1 in an item means any rank. */
    const struct onnx2halide_port* item;
    const int64_t* least; /* the minimum of each dim, for an input with open dims; else NULL */
} onnx2halide_port;

/* Options of NAME_create. Zero-initialise, set size to sizeof(onnx2halide_options), then whatever differs from the
 * defaults. */
typedef struct onnx2halide_options {
    size_t size;
    int threads;         /* up to 256; 0: one per core */
    void* arena;         /* 64-byte aligned memory of arena_size bytes, or NULL: the session allocates it */
    size_t arena_size;   /* at least NAME_ARENA_SIZE + (threads - 1) * NAME_SCRATCH_SIZE */
    const char* weights; /* path of NAME.weights, for --weights file; NULL: in the working folder */
    /* Called after each kernel of a run unless NULL. While it returns a value other than 0, the kernel is run again.
     * Kernels that work in place then overwrite their own input, so that only the times are meaningful. */
    int (*trace)(void* trace_context, const char* kernel);
    void* trace_context;
} onnx2halide_options;

#endif

/* image: float32 1x1x8x8 */
#define DIGITS_IMAGE_RANK 4
#define DIGITS_IMAGE_SHAPE {1, 1, 8, 8}
#define DIGITS_IMAGE_ELEMENTS 64
/* probabilities: float32 1x10 */
#define DIGITS_PROBABILITIES_RANK 2
#define DIGITS_PROBABILITIES_SHAPE {1, 10}
#define DIGITS_PROBABILITIES_ELEMENTS 10

enum { DIGITS_INPUTS = 1, DIGITS_OUTPUTS = 1 };

/* Bytes of a session's arena with one thread: its tensors, and the scratch memory of its kernels. */
#define DIGITS_ARENA_SIZE 6144 /* scratch memory is not known before `onnx2halide build` */
/* Bytes that each further thread adds. */
#define DIGITS_SCRATCH_SIZE 0 /* scratch memory is not known before `onnx2halide build` */

/* Names, types and shapes of the inputs and outputs, in the model's order. A row without a name ends each table. */
extern const onnx2halide_port digits_inputs[];
extern const onnx2halide_port digits_outputs[];

/* A session has memory of its own, and shares the model's weights with all others. One thread at a time may use it; any
 * number of sessions may run concurrently. */
typedef struct digits digits;

/* Creates a session, which digits_destroy frees; options may be NULL. Returns 0, or sets *session to NULL and returns a
 * code: digits_error(NULL) returns the message, in the same thread. */
int digits_create(digits** session, const onnx2halide_options* options);

/* Runs the model on tensors of the shapes above, row-major. Returns 0, or a code: digits_error tells why. Allocates nothing. */
int digits_run(digits* session, const float* image, float* probabilities);

/* Runs the model on DIGITS_INPUTS values and sets DIGITS_OUTPUTS values. An output without a buffer from the caller
 * points into the session's memory, until its next run. Returns 0, or a code: digits_error returns the message. */
int digits_run_values(digits* session, const onnx2halide_value* inputs, onnx2halide_value* outputs);

/* Returns the message of this session's last call, if it failed; with NULL, that of this thread's last create or call
 * without a session. Never NULL, and valid until the next call. */
const char* digits_error(const digits* session);

/* Returns the target of the kernels that a session runs: the first of the library's targets that this machine supports.
 * NULL for NULL. */
const char* digits_target(const digits* session);

/* Frees a session, which may be NULL. */
void digits_destroy(digits* session);

#ifdef __cplusplus
}
#endif

#endif
