/* Inputs and outputs as the caller has them. The form of some differs within a run: strings are numbers, and sequences,
 * maps and optional values are boxes. */
#ifndef ONNX2HALIDE_PORTS_H
#define ONNX2HALIDE_PORTS_H

#include "session.h"

/* The size in bytes of elements in the caller's form; SIZE_MAX if no memory has so many. */
size_t onnx2halide_value_bytes(int32_t type, int64_t elements);
/* The number of elements, or -1 if a dim is negative or the number is too large. */
int64_t onnx2halide_count(const int64_t* dims, int64_t rank);

/* Describes an output to the caller. If output->data is not NULL, `data` is that, the caller's own buffer, whose size
 * stays; else it is the session's memory. */
void onnx2halide_set_output(onnx2halide_value* output, const onnx2halide_port* port, const int64_t* dims, void* data,
                            size_t bytes);

/* Whether a port's memory within a run is a conversion of the caller's value. */
static inline int onnx2halide_is_converted(const onnx2halide_port* port) {
    return port->kind != ONNX2HALIDE_TENSOR || port->type == ONNX2HALIDE_STRING;
}

/* Converts strings to numbers, in memory of this run. */
int onnx2halide_take_strings(onnx2halide_session* session, const onnx2halide_string* texts, int64_t count,
                             const void** numbers);
/* Converts numbers to strings, each followed by a null character. */
void onnx2halide_give_strings(const onnx2halide_session* session, const int64_t* numbers, int64_t count,
                              onnx2halide_string* texts);

/* Copies a value into a box and returns its number. Messages call the value `name`. */
int onnx2halide_take_box(onnx2halide_session* session, const onnx2halide_port* port, const onnx2halide_value* value,
                         const char* name, int64_t* number);
/* Converts a box to a value, in memory of this run. */
int onnx2halide_give_box(onnx2halide_session* session, const onnx2halide_port* port, int64_t number,
                         onnx2halide_value* value);

#endif
