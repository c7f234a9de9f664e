#ifndef ONNX2HALIDE_TYPES
#define ONNX2HALIDE_TYPES

/* What a call may return; 0 is success. NAME_error tells the rest. */
enum {
    ONNX2HALIDE_BAD_ARGUMENT = 1, /* a null pointer, a wrong shape or type, an arena that is too small */
    ONNX2HALIDE_NO_MEMORY = 2,
    ONNX2HALIDE_NO_WEIGHTS = 3, /* the weights file is missing or belongs to another model */
    ONNX2HALIDE_FAILED = 4      /* a kernel or its device failed, or the processor lacks instructions */
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
    ONNX2HALIDE_UINT4 = 21, /* 4 bits: two elements a byte, the first in the low bits */
    ONNX2HALIDE_INT4 = 22,
    ONNX2HALIDE_FLOAT4E2M1 = 23,
    ONNX2HALIDE_FLOAT8E8M0 = 24,
    ONNX2HALIDE_UINT2 = 25, /* 2 bits: four elements a byte, the first in the low bits */
    ONNX2HALIDE_INT2 = 26
};

/* The name of an element type, such as "float32". */
static inline const char* onnx2halide_type_name(int32_t type) {
    static const char* const names[] = {
        "undefined", "float32",    "uint8",      "int8",         "uint16",         "int16",      "int32",
        "int64",     "string",     "bool",       "float16",      "float64",        "uint32",     "uint64",
        "complex64", "complex128", "bfloat16",   "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz",
        "uint4",     "int4",       "float4e2m1", "float8e8m0",   "uint2",          "int2"};
    return type >= 0 && type <= ONNX2HALIDE_INT2 ? names[type] : "unknown";
}

/* Kinds of value. */
enum { ONNX2HALIDE_TENSOR = 0, ONNX2HALIDE_SEQUENCE = 1, ONNX2HALIDE_MAP = 2, ONNX2HALIDE_OPTIONAL = 3 };

/* One input or output of run_values. The caller owns what it passes in, which a run only reads. A zero-initialised
 * value is an output that the session shall provide: what it then points to, and in any case the items of what is no
 * tensor and the texts of strings, belongs to the session until its next run. */
typedef struct onnx2halide_value {
    int32_t kind;        /* ONNX2HALIDE_TENSOR … */
    int32_t type;        /* of the elements: ONNX2HALIDE_FLOAT32 … */
    int64_t rank;        /* number of dims */
    const int64_t* dims; /* outermost first */
    void* data;  /* elements, row-major, of any alignment. Outputs: the caller's buffer, or NULL for the session's */
    size_t size; /* bytes at data */
    struct onnx2halide_value* items; /* of a sequence or an optional value; of a map two, its keys and its values */
    int64_t count;                   /* of items; of an optional value 0 where it is not there */
} onnx2halide_value;

/* One string of a tensor of strings: data points to an array of these. In outputs a null character follows the text. */
typedef struct onnx2halide_string {
    const char* text;
    size_t length;
} onnx2halide_string;

/* What a model says of one of its inputs or outputs. */
typedef struct onnx2halide_port {
    const char* name; /* as in the ONNX file */
    int32_t type;     /* ONNX2HALIDE_FLOAT32 … */
    int32_t rank;
    const int64_t* dims; /* -1 where the model leaves a dim open */
    int32_t kind;        /* ONNX2HALIDE_TENSOR … */
    /* What a sequence, map or optional value holds, without a name; NULL of a tensor. A map's own type is that of its
     * keys. Tensors inside may be of rank -1: of any. */
    const struct onnx2halide_port* item;
    const int64_t* least; /* the least of each dim, of an input of which the model leaves any open; else NULL */
} onnx2halide_port;

/* Zero-initialise, set size to sizeof(onnx2halide_options), then whatever differs from the defaults. */
typedef struct onnx2halide_options {
    size_t size;
    int threads;         /* up to 256; 0: one a core */
    void* arena;         /* 64-byte aligned memory of arena_size bytes, or NULL: the session allocates it */
    size_t arena_size;   /* at least NAME_ARENA_SIZE + (threads - 1) * NAME_SCRATCH_SIZE */
    const char* weights; /* path of NAME.weights where the model was compiled with --weights file; NULL: in the working
                            folder */
    /* NULL, or what is called after each kernel of a run. A result other than 0 runs the kernel once more, in place
     * where it works in place: results are then of no use, times are. */
    int (*trace)(void* trace_context, const char* kernel);
    void* trace_context;
} onnx2halide_options;

#endif
