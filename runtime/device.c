#include "device.h"

static int has_elements(const halide_buffer_t* tensor) { return onnx2halide_tensor_bytes(tensor) > 0; }

/* Whether the contents of a tensor are current on the device. */
static int is_on_device(const halide_buffer_t* tensor) {
    return tensor->device && !(tensor->flags & halide_buffer_flag_host_dirty);
}

static int is_on_host(const halide_buffer_t* tensor) { return !(tensor->flags & halide_buffer_flag_device_dirty); }

/* Gives a tensor the device handle and flags of the tensor that used its storage last, and makes it the holder. */
static onnx2halide_device_memory* hold(onnx2halide_session* session, halide_buffer_t* tensor) {
    onnx2halide_device_memory* memory =
        &session->device_memory[session->model->device_memory_of[tensor - session->tensors]];
    const halide_buffer_t* last = memory->holder;
    tensor->device = last ? last->device : 0;
    tensor->device_interface = last ? last->device_interface : NULL;
    tensor->flags = last ? last->flags : 0;
    memory->holder = tensor;
    return memory;
}

/* Frees a holder's device memory. Halide keeps it for later allocations, and takes its size from the buffer: the tensor
 * may be larger than it was when the memory was allocated. */
static int release(onnx2halide_session* session, halide_buffer_t* tensor, const onnx2halide_device_memory* memory) {
    uint8_t width = 8; /* of units that divide the size, so that their number fits in 32 bits */
    while (memory->bytes % width != 0) width /= 2;
    halide_dimension_t units = {0, (int32_t)(memory->bytes / width), 1, 0};
    halide_buffer_t allocated = *tensor;
    allocated.type = (struct halide_type_t){halide_type_uint, (uint8_t)(width * 8), 1};
    allocated.dimensions = memory->bytes > 0; /* see reserve */
    allocated.dim = &units;
    tensor->device = 0;
    tensor->device_interface = NULL;
    return halide_device_free(session, &allocated);
}

/* Ensures that a holder has enough device memory. Memory that is large enough keeps its contents. */
static int reserve(onnx2halide_session* session, halide_buffer_t* tensor, onnx2halide_device_memory* memory) {
    const size_t bytes = onnx2halide_tensor_bytes(tensor);
    if (tensor->device && bytes <= memory->bytes) return 0;
    session->step = NULL; /* messages must not name the last kernel */
    int status = tensor->device ? release(session, tensor, memory) : 0;
    halide_buffer_t room = *tensor;
    if (bytes == 0) room.dimensions = 0; /* one element, since devices do not allocate empty memory */
    if (status == 0) status = halide_device_malloc(session, &room, session->model->device());
    if (status != 0) return onnx2halide_fail_halide(session, status);
    tensor->device = room.device;
    tensor->device_interface = room.device_interface;
    tensor->flags = halide_buffer_flag_host_dirty;
    memory->bytes = bytes;
    return 0;
}

static int to_device(onnx2halide_session* session, halide_buffer_t* tensor) {
    const int code = reserve(session, tensor, hold(session, tensor));
    if (code != 0) return code;
    session->step = NULL;
    if (!has_elements(tensor)) tensor->flags = 0;
    const int status = halide_copy_to_device(session, tensor, session->model->device());
    return status == 0 ? 0 : onnx2halide_fail_halide(session, status);
}

static int make_on_device(onnx2halide_session* session, halide_buffer_t* tensor) {
    onnx2halide_device_memory* memory = hold(session, tensor);
    tensor->flags = 0; /* its old contents are dead */
    const int code = reserve(session, tensor, memory);
    /* In a replay no kernel runs that would mark its output itself. */
    if (session->launches == ONNX2HALIDE_REPLAYED && has_elements(tensor))
        tensor->flags = halide_buffer_flag_device_dirty;
    else
        tensor->flags = 0;
    return code;
}

static int to_host(onnx2halide_session* session, halide_buffer_t* tensor) {
    hold(session, tensor);
    session->step = NULL;
    if (session->launches != ONNX2HALIDE_LAUNCHED && !is_on_host(tensor))
        RUN(session->model->recorder->launch(session));
    if (!has_elements(tensor)) tensor->flags = 0; /* CUDA does not copy zero bytes */
    const int status = halide_copy_to_host(session, tensor);
    return status == 0 ? 0 : onnx2halide_fail_halide(session, status);
}

int onnx2halide_to_device(onnx2halide_session* session, int count, halide_buffer_t* const* tensors) {
    for (int i = 0; i < count; ++i) RUN(to_device(session, tensors[i]));
    return 0;
}

int onnx2halide_make_on_device(onnx2halide_session* session, int count, halide_buffer_t* const* tensors) {
    for (int i = 0; i < count; ++i) RUN(make_on_device(session, tensors[i]));
    return 0;
}

int onnx2halide_to_host(onnx2halide_session* session, int count, halide_buffer_t* const* tensors) {
    for (int i = 0; i < count; ++i) RUN(to_host(session, tensors[i]));
    return 0;
}

static void set_flags(onnx2halide_session* session, int count, halide_buffer_t* const* tensors, uint64_t flags) {
    for (int i = 0; i < count; ++i) {
        hold(session, tensors[i]);
        tensors[i]->flags = flags;
    }
}

void onnx2halide_made_on_host(onnx2halide_session* session, int count, halide_buffer_t* const* tensors) {
    set_flags(session, count, tensors, halide_buffer_flag_host_dirty);
}

void onnx2halide_start(onnx2halide_session* session, int count, halide_buffer_t* const* results) {
    set_flags(session, count, results, 0);
}

/* A range of a tensor's elements on the device, as a buffer of one dimension. */
static halide_buffer_t run_of(const halide_buffer_t* tensor, int64_t first, int64_t count, halide_dimension_t* dim) {
    halide_buffer_t run = *tensor;
    *dim = (halide_dimension_t){(int32_t)first, (int32_t)count, 1, 0};
    run.dimensions = 1;
    run.dim = dim;
    run.host = NULL;
    run.flags = 0;
    return run;
}

/* Copies `count` elements of one tensor, from index `from_first`, to another, at `to_first`, on the device. */
static int copy_run(onnx2halide_session* session, const halide_buffer_t* to, int64_t to_first,
                    const halide_buffer_t* from, int64_t from_first, int64_t count) {
    halide_dimension_t dims[3];
    session->step = NULL;
    /* Halide copies elements between equal coordinates, and the coordinates of the target are relative to `whole`. */
    halide_buffer_t source = run_of(from, 0, from_first + count, &dims[0]);
    halide_buffer_t whole = run_of(to, from_first - to_first, to_first + count, &dims[1]);
    halide_buffer_t target = run_of(to, from_first, count, &dims[2]);
    target.device = 0;
    target.device_interface = NULL;
    int status = halide_device_crop(session, &whole, &target);
    if (status != 0) return onnx2halide_fail_halide(session, status);
    status = halide_buffer_copy(session, &source, session->model->device(), &target);
    const int released = halide_device_release_crop(session, &target);
    if (status == 0) status = released;
    return status == 0 ? 0 : onnx2halide_fail_halide(session, status);
}

int onnx2halide_copy_tensor(onnx2halide_session* session, halide_buffer_t* to, halide_buffer_t* from) {
    hold(session, from);
    if (!has_elements(from) || !is_on_device(from)) {
        onnx2halide_made_on_host(session, 1, &to);
    } else {
        RUN(make_on_device(session, to));
        RUN(copy_run(session, to, 0, from, 0, onnx2halide_element_count(from)));
        to->flags = from->flags;
    }
    if (is_on_host(from)) memcpy(to->host, from->host, onnx2halide_tensor_bytes(from));
    return 0;
}

int onnx2halide_take_slice(onnx2halide_session* session, halide_buffer_t* slice, halide_buffer_t* whole,
                           int64_t place) {
    hold(session, whole);
    if (!has_elements(slice) || !is_on_device(whole)) {
        onnx2halide_made_on_host(session, 1, &slice);
        return 0;
    }
    const int64_t count = onnx2halide_element_count(slice);
    RUN(make_on_device(session, slice));
    RUN(copy_run(session, slice, 0, whole, place * count, count));
    slice->flags = whole->flags;
    return 0;
}

int onnx2halide_put_slice(onnx2halide_session* session, halide_buffer_t* whole, halide_buffer_t* slice, int64_t place) {
    if (!has_elements(slice)) return 0;
    hold(session, slice);
    hold(session, whole);
    const int is_first = whole->flags == 0;
    if (is_first ? is_on_device(slice) : is_on_device(whole)) {
        const int64_t count = onnx2halide_element_count(slice);
        RUN(to_device(session, slice));
        if (is_first) RUN(make_on_device(session, whole));
        RUN(copy_run(session, whole, place * count, slice, 0, count));
        whole->flags = halide_buffer_flag_device_dirty;
        return 0;
    }
    RUN(to_host(session, slice));
    const size_t bytes = onnx2halide_tensor_bytes(slice);
    unsigned char* own = whole->host + (size_t)place * bytes;
    if (own != slice->host) memcpy(own, slice->host, bytes);
    whole->flags = halide_buffer_flag_host_dirty;
    return 0;
}
