/* Values at the model's ends that a run holds otherwise: strings are numbers, and what is no tensor is a box. */
#ifndef ONNX2HALIDE_PORTS_H
#define ONNX2HALIDE_PORTS_H

#include "session.h"

/* The bytes of a value's elements as the caller has them. */
size_t onnx2halide_value_bytes(int32_t type, int64_t elements);
/* The number of elements, or -1 where a dim is negative or there are too many. */
int64_t onnx2halide_count(const int64_t* dims, int64_t rank);

/* Whether a port's memory in a run is not that of the caller's value. */
static inline int onnx2halide_is_converted(const onnx2halide_port* port) {
    return port->kind != ONNX2HALIDE_TENSOR || port->type == ONNX2HALIDE_STRING;
}

/* The numbers of strings, in memory of this run. */
int onnx2halide_take_strings(onnx2halide_session* session, const onnx2halide_string* texts, int64_t count,
                             const void** numbers);
/* The strings of numbers, each with a null character behind it. */
void onnx2halide_give_strings(const onnx2halide_session* session, const int64_t* numbers, int64_t count,
                              onnx2halide_string* texts);

/* A copy of a value as the number of a box. `name` is what messages call it. */
int onnx2halide_take_box(onnx2halide_session* session, const onnx2halide_port* port, const onnx2halide_value* value,
                         const char* name, int64_t* number);
/* A box as a value whose memory is this run's. */
int onnx2halide_give_box(onnx2halide_session* session, const onnx2halide_port* port, int64_t number,
                         onnx2halide_value* value);

#endif
