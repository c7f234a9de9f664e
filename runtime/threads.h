/* The threads of one session: the caller's and its workers. Each thread gets an equal range of neighbouring tasks of a
 * parallel loop, so that it finds in its own cache what it wrote in the step before. A thread that has finished its
 * range steals from the far ends of the others'. */
#ifndef ONNX2HALIDE_THREADS_H
#define ONNX2HALIDE_THREADS_H

#include <stddef.h>
#include <stdint.h>

#include "HalideRuntime.h"

typedef struct onnx2halide_team onnx2halide_team;

/* Operations plus bytes that keep one thread busy for about a microsecond. Distributing less work to threads costs more
 * than it saves. */
enum { ONNX2HALIDE_SHARED_WORK = 1 << 16 };

/* Starts a team of up to `threads` threads, including the caller's; fewer if the system refuses more. Returns NULL if
 * out of memory. */
onnx2halide_team* onnx2halide_start_team(int threads);
/* Ends the team's threads and waits for them. The team may be NULL. */
void onnx2halide_stop_team(onnx2halide_team* team);

/* Returns the index of the calling thread in its team; 0 for threads that no team has started, such as a caller's. */
int onnx2halide_thread_index(void);

/* Runs task(context, i, closure) for each i in [min, min + size). Returns 0, or the code of a task that failed. Without
 * a team (NULL), within a task, and in a process forked since the team started, the calling thread runs them all. Must
 * not be called concurrently for one team. */
int onnx2halide_share_out(onnx2halide_team* team, void* context, halide_task_t task, int min, int size,
                          uint8_t* closure);

#endif
