#include "host_operators.h"

#include <math.h>

/* The number of elements start, start + delta, … up to but excluding the limit. */
static int64_t steps_between(int64_t start, int64_t limit, int64_t delta) {
    if (delta > 0 ? start >= limit : start <= limit) return 0;
    const uint64_t span = delta > 0 ? (uint64_t)limit - (uint64_t)start : (uint64_t)start - (uint64_t)limit;
    const uint64_t step = delta > 0 ? (uint64_t)delta : -(uint64_t)delta;
    const uint64_t count = span / step + (span % step != 0);
    return count > INT64_MAX ? INT64_MAX : (int64_t)count;
}

static int64_t real_steps_between(double start, double limit, double delta) {
    const double count = ceil((limit - start) / delta);
    return count > 0 ? (count < (double)INT32_MAX ? (int64_t)count : INT64_MAX) : 0;
}

int onnx2halide_range(onnx2halide_session* session, const halide_buffer_t* start, const halide_buffer_t* limit,
                      const halide_buffer_t* delta, onnx2halide_result range) {
    /* Integers are computed as `wide`: the sums fit their type, but products with more than half its range do not. */
#define RANGE(c_type, wide, count_steps)                                                                               \
    do {                                                                                                               \
        const c_type first = *(const c_type*)start->host, step = *(const c_type*)delta->host;                          \
        if (step == 0) return onnx2halide_fail(session, ONNX2HALIDE_BAD_ARGUMENT, "delta is 0");                       \
        const int64_t count = count_steps(first, *(const c_type*)limit->host, step);                                   \
        c_type* numbers = NULL;                                                                                        \
        RUN(onnx2halide_make_result(session, range, 1, &count, (void**)&numbers));                                     \
        for (int64_t i = 0; i < count; ++i) numbers[i] = (c_type)((wide)first + (wide)i * (wide)step);                 \
        return 0;                                                                                                      \
    } while (0)
    switch (start->type.code * 256 + start->type.bits) {
    case halide_type_int * 256 + 16: RANGE(int16_t, uint64_t, steps_between);
    case halide_type_int * 256 + 32: RANGE(int32_t, uint64_t, steps_between);
    case halide_type_int * 256 + 64: RANGE(int64_t, uint64_t, steps_between);
    case halide_type_float * 256 + 32: RANGE(float, float, real_steps_between);
    default: RANGE(double, double, real_steps_between);
    }
#undef RANGE
}
