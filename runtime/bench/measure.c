/* Clocks of `onnx2halide bench`: times whole runs of a compiled model, and each of its kernels, without Python in
 * between. */
#define _GNU_SOURCE
#include <stdint.h>
#include <time.h>

#include "onnx2halide_types.h"

static int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

typedef int (*run_values_function)(void* session, const onnx2halide_value* inputs, onnx2halide_value* outputs);

/* Runs a session `count` times and writes the time of each run in nanoseconds. Returns the code of the first run that
 * fails. */
int onnx2halide_time_runs(run_values_function run_values, void* session, const onnx2halide_value* inputs,
                          onnx2halide_value* outputs, int count, int64_t* nanoseconds) {
    for (int i = 0; i < count; ++i) {
        const int64_t began = now();
        const int code = run_values(session, inputs, outputs);
        if (code != 0) return code;
        nanoseconds[i] = now() - began;
    }
    return 0;
}

/* One execution of a step. */
typedef struct onnx2halide_step_time {
    const char* kernel;
    int64_t first; /* nanoseconds of its first execution, with its data where the run so far has left it */
    int64_t warm;  /* nanoseconds of its fastest repetition */
    int64_t repetitions;
} onnx2halide_step_time;

/* The times of one run, as recorded by onnx2halide_trace_step. */
typedef struct onnx2halide_step_times {
    onnx2halide_step_time* steps;
    int64_t count, capacity; /* number of steps that have begun, and length of `steps` */
    int64_t repetitions;     /* number of repetitions of each step after its first execution */
    int64_t since;           /* when the current execution began */
} onnx2halide_step_times;

void onnx2halide_start_trace(onnx2halide_step_times* times) {
    times->count = 0;
    times->since = now();
}

/* A function for onnx2halide_options.trace. */
int onnx2halide_trace_step(void* context, const char* kernel) {
    const int64_t ended = now();
    onnx2halide_step_times* times = context;
    const int is_first = times->count == 0 || times->steps[times->count - 1].repetitions == times->repetitions;
    if (is_first) {
        if (times->count == times->capacity) return 0;
        times->steps[times->count++] = (onnx2halide_step_time){kernel, ended - times->since, INT64_MAX, 0};
    } else {
        onnx2halide_step_time* step = &times->steps[times->count - 1];
        if (ended - times->since < step->warm) step->warm = ended - times->since;
        ++step->repetitions;
    }
    times->since = now();
    return times->steps[times->count - 1].repetitions < times->repetitions;
}
