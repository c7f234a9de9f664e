/*
 * onnx2halide: digits.onnx (opset 17, sha256 a31ed1b05dbdb944), target x86-64-linux-avx2-f16c-fma
 * again with: onnx2halide compile scripts/digits/digits.onnx -o generated/digits --target x86-64-linux-avx2-fma-f16c --sources-only
 * after edits: onnx2halide build; session.h is in its runtime/
 */
#include "steps.h"
#include "digits.h"

extern const unsigned char onnx2halide_digits_weights[];

/* The kernels. The first argument is the session; the result is 0 or Halide's error. */
int conv1_relu1_kernel(void* session, halide_buffer_t* image, halide_buffer_t* norm1_weights_packed, halide_buffer_t* norm1_offset, halide_buffer_t* relu1);
int pool_MaxPool_kernel(void* session, halide_buffer_t* relu1, halide_buffer_t* conv2_W_packed, halide_buffer_t* conv2_B, halide_buffer_t* pool);
int pool_row_major_Relayout_kernel(void* session, halide_buffer_t* pool, halide_buffer_t* pool_row_major);
int dense_PackedMatMul_kernel(void* session, halide_buffer_t* flat, halide_buffer_t* dense_W_packed, halide_buffer_t* dense_B, halide_buffer_t* dense);
int probabilities_Softmax_kernel(void* session, halide_buffer_t* dense, halide_buffer_t* probabilities);

/* The targets of the kernels, best first; create takes the first that this machine supports. */
static const onnx2halide_target targets[] = {
    {"x86-64-linux-avx2-f16c-fma", {0xae0, 0x0}},
};

/* Indices of tensors: T(image) is the tensor with index tensor_image. */
enum {
    tensor_image,
    tensor_norm1_weights_packed,
    tensor_norm1_offset,
    tensor_relu1,
    tensor_conv2_W_packed,
    tensor_conv2_B,
    tensor_pool,
    tensor_pool_row_major,
    tensor_flat,
    tensor_dense_W_packed,
    tensor_dense_B,
    tensor_dense,
    tensor_probabilities,
    TENSORS
};

static const int64_t input_0_dims[] = {1, 1, 8, 8};
const onnx2halide_port digits_inputs[] = {
    {"image", 1, 4, input_0_dims, 0, NULL, NULL},
    {NULL, 0, 0, NULL, 0, NULL, NULL},
};
static const int64_t output_0_dims[] = {1, 10};
const onnx2halide_port digits_outputs[] = {
    {"probabilities", 1, 2, output_0_dims, 0, NULL, NULL},
    {NULL, 0, 0, NULL, 0, NULL, NULL},
};

/* Writes the shapes of the inputs, then of the outputs, outermost dim first. */
static void shapes(const onnx2halide_session* session, int64_t* dims) {
    (void)session;
    dims[0] = 1;
    dims[1] = 1;
    dims[2] = 8;
    dims[3] = 8;
    dims[4] = 1;
    dims[5] = 10;
}

/* Tensors that are the same in all runs: memory and offset in bytes, type, pitch of rows that are not dense, and extents,
 * innermost first. */
static const onnx2halide_fixed_tensor fixed_tensors[] = {
    FIXED(image, ELSEWHERE, 0, float, 32, 0, EXTENTS(8, 8, 1, 1)),
    FIXED(norm1_weights_packed, IN_WEIGHTS, 0, float, 32, 0, EXTENTS(16, 1, 3, 3, 1)),
    FIXED(norm1_offset, IN_WEIGHTS, 576, float, 32, 0, EXTENTS(16)),
    FIXED(relu1, IN_ARENA, 0, float, 32, 0, EXTENTS(16, 8, 8, 1)),
    FIXED(conv2_W_packed, IN_WEIGHTS, 640, float, 32, 0, EXTENTS(16, 16, 6, 6, 2)),
    FIXED(conv2_B, IN_WEIGHTS, 74368, float, 32, 0, EXTENTS(32)),
    FIXED(pool, IN_ARENA, 4096, float, 32, 0, EXTENTS(32, 4, 4, 1)),
    FIXED(pool_row_major, IN_ARENA, 0, float, 32, 0, EXTENTS(4, 4, 32, 1)),
    FIXED(flat, IN_ARENA, 0, float, 32, 0, EXTENTS(512, 1)),
    FIXED(dense_W_packed, IN_WEIGHTS, 74496, float, 32, 0, EXTENTS(16, 512, 1)),
    FIXED(dense_B, IN_WEIGHTS, 107264, float, 32, 0, EXTENTS(10)),
    FIXED(dense, IN_ARENA, 2048, float, 32, 0, EXTENTS(10, 1)),
    FIXED(probabilities, ELSEWHERE, 0, float, 32, 0, EXTENTS(10, 1)),
};

/* Points inputs, outputs and tensors that share their memory at the caller's memory. */
static void bind(onnx2halide_session* session) {
    T(image)->host = (uint8_t*)(uintptr_t)session->input_data[0];
    T(probabilities)->host = session->output_data[0];
}

/* The model, with one line per kernel. */
static int steps(onnx2halide_session* session) {
    /* PackedConv conv1, Relu relu1 */
    STEP(conv1_relu1, T(image), T(norm1_weights_packed), T(norm1_offset), T(relu1));
    /* WinogradConv conv2, Relu relu2, MaxPool pool */
    STEP(pool_MaxPool, T(relu1), T(conv2_W_packed), T(conv2_B), T(pool));
    /* Relayout pool_row_major */
    STEP(pool_row_major_Relayout, T(pool), T(pool_row_major));
    /* PackedMatMul dense */
    STEP(dense_PackedMatMul, T(flat), T(dense_W_packed), T(dense_B), T(dense));
    /* Softmax probabilities */
    STEP(probabilities_Softmax, T(dense), T(probabilities));
    return 0;
}

static const onnx2halide_model description = {
    .name = "digits",
    .session_bytes = sizeof(onnx2halide_session),
    .input_count = 1,
    .output_count = 1,
    .tensor_count = TENSORS,
    .dim_count = 38,
    .open_count = 0,
    .symbol_count = 0,
    .heap_count = 0,
    .inputs = digits_inputs,
    .outputs = digits_outputs,
    .open_dims = NULL,
    .strings = NULL,
    .string_count = 0,
    .has_boxes = 0,
    .arena_bytes = 6144,
    .scratch_bytes = DIGITS_SCRATCH_SIZE,
    .weights = onnx2halide_digits_weights,
    .weight_bytes = 107328,
    .weights_id = "",
    .targets = targets,
    .target_count = sizeof targets / sizeof targets[0],
    .shapes = shapes,
    .fixed_tensors = fixed_tensors,
    .fixed_tensor_count = sizeof fixed_tensors / sizeof fixed_tensors[0],
    .place = NULL,
    .bind = bind,
    .steps = steps,
};

int digits_create(digits** handle, const onnx2halide_options* options) {
    onnx2halide_session* session = NULL;
    const int code = onnx2halide_create(handle ? &session : NULL, &description, options);
    if (handle) *handle = (digits*)session;
    return code;
}

int digits_run(digits* handle, const float* image, float* probabilities) {
    if (!handle) return onnx2halide_no_session(&description, "run");
    onnx2halide_session* session = (onnx2halide_session*)handle;
    session->input_data[0] = image;
    session->output_data[0] = probabilities;
    return onnx2halide_run(session);
}

int digits_run_values(digits* handle, const onnx2halide_value* inputs, onnx2halide_value* outputs) {
    if (!handle) return onnx2halide_no_session(&description, "run_values");
    return onnx2halide_run_values((onnx2halide_session*)handle, inputs, outputs);
}

const char* digits_error(const digits* handle) {
    return onnx2halide_error((const onnx2halide_session*)handle);
}

const char* digits_target(const digits* handle) {
    return onnx2halide_target_name((const onnx2halide_session*)handle);
}

void digits_destroy(digits* handle) {
    onnx2halide_destroy((onnx2halide_session*)handle);
}
