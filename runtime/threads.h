/* The threads of one session: the caller's and workers beside it. The tasks of a parallel loop are dealt out in equal
 * runs of neighbours, so that a thread finds in its own cache what it wrote in the step before; who is done takes from
 * the others' far ends. */
#ifndef ONNX2HALIDE_THREADS_H
#define ONNX2HALIDE_THREADS_H

#include <stddef.h>
#include <stdint.h>

#include "HalideRuntime.h"

typedef struct onnx2halide_team onnx2halide_team;

/* Operations and bytes that one thread works on for about a microsecond: with fewer, handing tasks over costs more than
 * it saves. */
enum { ONNX2HALIDE_SHARED_WORK = 1 << 16 };

/* A team of so many threads, the caller's among them, or of fewer where the system gives no more. NULL: no memory. */
onnx2halide_team* onnx2halide_start_team(int threads);
/* Waits until its threads have ended. NULL is no team. */
void onnx2halide_stop_team(onnx2halide_team* team);

/* The number of the calling thread in the team that it was started for; 0 for all other threads, the caller's. */
int onnx2halide_thread_index(void);

/* Runs task(context, i, closure) for each i in [min, min + size) and returns 0, or what a task returned that failed.
 * Without a team, and inside of a task, the calling thread does all. One thread at a time may call it. */
int onnx2halide_share_out(onnx2halide_team* team, void* context, halide_task_t task, int min, int size,
                          uint8_t* closure);

#endif
