/* A run with values: their types and shapes are checked, open dims taken from them, and memory found for outputs. */
#include <stdlib.h>
#include <string.h>

#include "session.h"

/* Bytes that elements of one of the types take which inputs and outputs may have. */
static size_t bytes_of(int32_t type, int64_t elements) {
    static const uint8_t bits[] = {0,  32,  8,  8, 16, 16, 32, 64, 0, 8, 16, 64, 32, 64,
                                   64, 128, 16, 8, 8,  8,  8,  4,  4, 4, 8,  2,  2};
    const size_t own = type >= 0 && (size_t)type < sizeof bits ? bits[type] : 0;
    return (own * (size_t)elements + 7) / 8;
}

static int64_t element_count(const int64_t* dims, int32_t rank) {
    int64_t count = 1;
    for (int32_t i = 0; i < rank; ++i) count *= dims[i];
    return count;
}

/* Checks one input's type and rank; its dims are checked when the open ones are known. */
static int check_input(onnx2halide_session* session, const onnx2halide_port* port, const onnx2halide_value* value) {
    if (value->kind != ONNX2HALIDE_TENSOR)
        return onnx2halide_fail(session, ONNX2HALIDE_BAD_ARGUMENT, "input '%s' is not a tensor", port->name);
    if (value->type != port->type) {
        return onnx2halide_fail(session, ONNX2HALIDE_BAD_ARGUMENT, "input '%s' has elements of type %s, expected %s",
                                port->name, onnx2halide_type_name(value->type), onnx2halide_type_name(port->type));
    }
    if (value->rank != port->rank) {
        return onnx2halide_fail(session, ONNX2HALIDE_BAD_ARGUMENT, "input '%s' has %d dims, expected %d", port->name,
                                (int)value->rank, (int)port->rank);
    }
    if (port->rank > 0 && !value->dims)
        return onnx2halide_fail(session, ONNX2HALIDE_BAD_ARGUMENT, "input '%s' has no dims", port->name);
    return 0;
}

/* Takes the open dims from the inputs' shapes and, where they changed, places the tensors anew. */
static int bind_dims(onnx2halide_session* session, const onnx2halide_value* inputs) {
    const onnx2halide_model* model = session->model;
    int changed = 0;
    for (int i = 0; i < model->open_count; ++i) {
        const onnx2halide_open_dim* dim = &model->open_dims[i];
        const int64_t number = inputs[dim->input].dims[dim->axis];
        if (number < dim->min || number > dim->max) {
            return onnx2halide_fail(session, ONNX2HALIDE_BAD_ARGUMENT,
                                    "input '%s': dim %d (%s) is %lld, expected %lld to %lld",
                                    model->inputs[dim->input].name, dim->axis, dim->name, (long long)number,
                                    (long long)dim->min, (long long)dim->max);
        }
        session->symbols[i] = number;
        changed |= number != session->placed_open[i];
    }
    model->shapes(session, session->port_dims);
    const int64_t* expected = session->port_dims;
    for (int i = 0; i < model->input_count; expected += model->inputs[i++].rank) {
        for (int axis = 0; axis < model->inputs[i].rank; ++axis) {
            if (inputs[i].dims[axis] == expected[axis]) continue;
            return onnx2halide_fail(session, ONNX2HALIDE_BAD_ARGUMENT, "input '%s': dim %d is %lld, expected %lld",
                                    model->inputs[i].name, axis, (long long)inputs[i].dims[axis],
                                    (long long)expected[axis]);
        }
    }
    if (session->is_placed && !changed) return 0;
    onnx2halide_free_devices(session);
    session->next_dim = 0;
    const int code = model->place(session);
    session->is_placed = code == 0;
    if (code == 0) memcpy(session->placed_open, session->symbols, model->open_count * sizeof(int64_t));
    return code;
}

/* Tells the shape of each output and finds memory for those that the caller gave none. */
static int bind_outputs(onnx2halide_session* session, onnx2halide_value* outputs) {
    const onnx2halide_model* model = session->model;
    const int64_t* dims = session->port_dims;
    for (int i = 0; i < model->input_count; ++i) dims += model->inputs[i].rank;
    for (int i = 0; i < model->output_count; dims += model->outputs[i++].rank) {
        const onnx2halide_port* port = &model->outputs[i];
        int is_late = 0; /* the steps tell its shape, see onnx2halide_deliver */
        for (int axis = 0; axis < port->rank; ++axis) is_late |= dims[axis] < 0;
        if (is_late) continue;
        const size_t bytes = bytes_of(port->type, element_count(dims, port->rank));
        void* data = outputs[i].data;
        if (data && outputs[i].size < bytes) {
            return onnx2halide_fail(session, ONNX2HALIDE_BAD_ARGUMENT,
                                    "output '%s' needs %zu bytes, its buffer has %zu", port->name, bytes,
                                    outputs[i].size);
        }
        if (!data) {
            if (session->output_storage_bytes[i] < bytes || !session->output_storage[i]) {
                free(session->output_storage[i]);
                session->output_storage_bytes[i] = 0;
                session->output_storage[i] = malloc(bytes > 0 ? bytes : 1);
                if (!session->output_storage[i])
                    return onnx2halide_fail(session, ONNX2HALIDE_NO_MEMORY, "no memory for output '%s'", port->name);
                session->output_storage_bytes[i] = bytes;
            }
            data = session->output_storage[i];
        }
        session->output_data[i] = data;
        outputs[i] = (onnx2halide_value){ONNX2HALIDE_TENSOR, port->type, port->rank, dims, data, bytes, NULL, 0};
    }
    return 0;
}

int onnx2halide_run_values(onnx2halide_session* session, const onnx2halide_value* inputs, onnx2halide_value* outputs) {
    const onnx2halide_model* model = session->model;
    session->error[0] = '\0';
    session->step = NULL;
    if ((!inputs && model->input_count > 0) || (!outputs && model->output_count > 0)) {
        return onnx2halide_fail(session, ONNX2HALIDE_BAD_ARGUMENT, "run_values has a null pointer for its values");
    }
    int code = 0;
    static const unsigned char empty[1]; /* what an input without elements may point to */
    for (int i = 0; i < model->input_count && code == 0; ++i)
        code = check_input(session, &model->inputs[i], &inputs[i]);
    if (code == 0) code = bind_dims(session, inputs);
    for (int i = 0; i < model->input_count && code == 0; ++i) {
        const onnx2halide_port* port = &model->inputs[i];
        const size_t bytes = bytes_of(port->type, element_count(inputs[i].dims, port->rank));
        session->input_data[i] = bytes == 0 ? empty : inputs[i].data;
        if (inputs[i].data && inputs[i].size < bytes) {
            code = onnx2halide_fail(session, ONNX2HALIDE_BAD_ARGUMENT, "input '%s' needs %zu bytes, its data has %zu",
                                    port->name, bytes, inputs[i].size);
        }
    }
    session->results = outputs;
    if (code == 0) code = bind_outputs(session, outputs);
    return code != 0 ? code : onnx2halide_run_bound(session);
}
