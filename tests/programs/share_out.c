/* Runs jobs of all sizes on a team of threads: each task must run once, also if workers have gone to sleep in between,
 * within another job, and after a job that failed. Argument: THREADS */
#include "threads.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MOST = 70, JOBS = 4000, FAILS = 7 };

typedef struct job {
    onnx2halide_team* team;
    int counts[MOST];
    int inner; /* number of nested tasks in each task */
    int fails; /* the task that fails; -1: none */
} job;

static int count_inner(void* context, int task, uint8_t* closure) {
    (void)context, (void)task;
    __atomic_add_fetch((int*)closure, 1, __ATOMIC_RELAXED);
    return 0;
}

static int count(void* context, int task, uint8_t* closure) {
    job* own = (job*)closure;
    if (context != own->team) return 1;
    int inner = 0;
    if (onnx2halide_share_out(own->team, context, count_inner, 3, own->inner, (uint8_t*)&inner) != 0) return 2;
    if (inner != own->inner) return 3;
    own->counts[task] += 1;
    return task == own->fails ? FAILS : 0;
}

static int check(onnx2halide_team* team, int number) {
    job job = {.team = team, .inner = number % 3, .fails = -1};
    const int size = number % MOST, min = number % (MOST - size + 1);
    if (number % 100 == 99 && size > 0) job.fails = min + size / 2;
    const int status = onnx2halide_share_out(team, team, count, min, size, (uint8_t*)&job);
    if (status != (job.fails < 0 ? 0 : FAILS)) return 0;
    for (int i = 0; i < MOST; ++i) {
        const int is_one = i >= min && i < min + size;
        if (job.fails < 0 ? job.counts[i] != is_one : job.counts[i] > is_one) return 0;
    }
    return 1;
}

int main(int argc, char** argv) {
    if (argc < 2) return 2;
    onnx2halide_team* team = onnx2halide_start_team(atoi(argv[1]));
    if (!team) return 3;
    for (int number = 0; number < JOBS; ++number) {
        if (number % 500 == 0) usleep(3000); /* long enough for workers to fall asleep */
        if (!check(team, number)) {
            printf("job %d went wrong\n", number);
            return 1;
        }
    }
    onnx2halide_stop_team(team);
    /* Teams that end before or while their workers start, and after these have fallen asleep. */
    for (int i = 0; i < 20; ++i) {
        team = onnx2halide_start_team(atoi(argv[1]));
        if (!team) return 3;
        if (i % 3 > 0 && !check(team, i)) return 1;
        if (i % 3 > 1) usleep(2000);
        onnx2halide_stop_team(team);
    }
    onnx2halide_stop_team(NULL);
    return check(NULL, 12) ? 0 : 1;
}
