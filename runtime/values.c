/* Runs on values: checks their types and shapes, takes the open dims from them, and provides memory for outputs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ports.h"

/* Checks an input's type and rank. bind_dims checks its dims. */
static int check_input(onnx2halide_session* session, const onnx2halide_port* port, const onnx2halide_value* value) {
    if (port->kind != ONNX2HALIDE_TENSOR) return 0; /* see onnx2halide_take_box */
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

/* Takes the open dims from the shapes of the inputs, checks all dims and, if open ones have changed, places all tensors
 * again. */
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
    const int code = onnx2halide_place(session);
    session->is_placed = code == 0;
    if (code == 0) memcpy(session->placed_open, session->symbols, model->open_count * sizeof(int64_t));
    return code;
}

/* Sets the shapes of outputs, and provides memory for those for which the caller has none. */
static int bind_outputs(onnx2halide_session* session, onnx2halide_value* outputs) {
    const onnx2halide_model* model = session->model;
    const int64_t* dims = session->port_dims;
    for (int i = 0; i < model->input_count; ++i) dims += model->inputs[i].rank;
    for (int i = 0; i < model->output_count; dims += model->outputs[i++].rank) {
        const onnx2halide_port* port = &model->outputs[i];
        int is_late = 0; /* whether a step determines its shape, see onnx2halide_deliver */
        for (int axis = 0; axis < port->rank; ++axis) is_late |= dims[axis] < 0;
        if (is_late) continue;
        if (port->kind != ONNX2HALIDE_TENSOR) {
            session->output_data[i] = onnx2halide_keep(session, sizeof(int64_t));
            if (!session->output_data[i]) return ONNX2HALIDE_NO_MEMORY;
            continue;
        }
        const int64_t elements = onnx2halide_count(dims, port->rank);
        const size_t bytes = onnx2halide_value_bytes(port->type, elements);
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
        if (port->type == ONNX2HALIDE_STRING) {
            session->output_data[i] = onnx2halide_keep(session, (size_t)elements * sizeof(int64_t));
            if (!session->output_data[i]) return ONNX2HALIDE_NO_MEMORY;
        }
        onnx2halide_set_output(&outputs[i], port, dims, data, bytes);
    }
    return 0;
}

/* Points an input at the caller's memory, or at a conversion of it. */
static int bind_input(onnx2halide_session* session, int i, const onnx2halide_value* input) {
    static const unsigned char empty[1]; /* for inputs without elements */
    const onnx2halide_port* port = &session->model->inputs[i];
    if (port->kind != ONNX2HALIDE_TENSOR) {
        int64_t* number = onnx2halide_keep(session, sizeof *number);
        if (!number) return ONNX2HALIDE_NO_MEMORY;
        char name[256];
        snprintf(name, sizeof name, "input '%s'", port->name);
        session->input_data[i] = number;
        return onnx2halide_take_box(session, port, input, name, number);
    }
    const int64_t elements = onnx2halide_count(input->dims, port->rank);
    const size_t bytes = onnx2halide_value_bytes(port->type, elements);
    session->input_data[i] = bytes == 0 ? empty : input->data;
    if (input->data && input->size < bytes) {
        return onnx2halide_fail(session, ONNX2HALIDE_BAD_ARGUMENT, "input '%s' needs %zu bytes, its data has %zu",
                                port->name, bytes, input->size);
    }
    const int is_string = port->type == ONNX2HALIDE_STRING && bytes > 0 && input->data;
    return is_string ? onnx2halide_take_strings(session, input->data, elements, &session->input_data[i]) : 0;
}

/* Converts outputs whose form in a run differs from the caller's. */
static int convert_outputs(onnx2halide_session* session, onnx2halide_value* outputs) {
    const onnx2halide_model* model = session->model;
    int code = 0;
    for (int i = 0; i < model->output_count && code == 0; ++i) {
        const onnx2halide_port* port = &model->outputs[i];
        const int64_t* numbers = session->output_data[i];
        if (!onnx2halide_is_converted(port) || !numbers) continue;
        if (port->kind != ONNX2HALIDE_TENSOR) {
            code = onnx2halide_give_box(session, port, *numbers, &outputs[i]);
        } else {
            onnx2halide_give_strings(session, numbers, onnx2halide_count(outputs[i].dims, port->rank), outputs[i].data);
        }
    }
    return code;
}

int onnx2halide_run_values(onnx2halide_session* session, const onnx2halide_value* inputs, onnx2halide_value* outputs) {
    const onnx2halide_model* model = session->model;
    onnx2halide_forget_error(session);
    if ((!inputs && model->input_count > 0) || (!outputs && model->output_count > 0)) {
        return onnx2halide_fail(session, ONNX2HALIDE_BAD_ARGUMENT, "run_values has a null pointer for its values");
    }
    int code = onnx2halide_forget_run(session);
    for (int i = 0; i < model->output_count; ++i) {
        session->output_data[i] = NULL;
        if (outputs[i].data == outputs[i].lent) outputs[i].data = NULL;
    }
    for (int i = 0; i < model->input_count && code == 0; ++i)
        code = check_input(session, &model->inputs[i], &inputs[i]);
    if (code == 0) code = bind_dims(session, inputs);
    for (int i = 0; i < model->input_count && code == 0; ++i) code = bind_input(session, i, &inputs[i]);
    session->results = outputs;
    if (code == 0) code = bind_outputs(session, outputs);
    if (code == 0) code = onnx2halide_check_inputs(session);
    if (code == 0) code = onnx2halide_run_bound(session);
    return code != 0 ? code : convert_outputs(session, outputs);
}
