#define _GNU_SOURCE
#include "threads.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

/* How long an idle worker spins before it sleeps: longer than the single-threaded steps of a run, and longer than the
 * time between consecutive runs. */
enum { LOOK_NS = 1000000, LOOK_ALONE_NS = 20000 /* before it starts to yield its core */ };

/* How long a woken worker may take to begin before the caller yields its core, on which the worker may be waiting. */
enum { WAKE_NS = 50000 };

/* A thread's share of a job, in a cache line of its own: what a worker needs to begin, and what the caller needs to see
 * that it has ended, each is a single transfer between cores, which may take longer than a small task. */
typedef struct share {
    /* The tasks left: the first in the lower half, the end in the upper half. The thread takes them from the front,
     * other threads from the back. */
    _Alignas(128) uint64_t tasks;
    uint32_t job;  /* the number of the job; the caller writes it last */
    uint32_t done; /* how many tasks of all jobs the thread has run */
    int cpu;       /* the one on which the thread was seen last; -1: it sleeps */
    halide_task_t task;
    void* context;
    uint8_t* closure;
} share;

struct onnx2halide_team {
    /* What threads read between tasks, and hardly any thread writes. */
    _Alignas(128) int workers; /* number of threads that have started, besides the caller's */
    int places;                /* length of shares */
    unsigned forks;            /* when it started */
    int status;                /* code of a task that failed */
    pthread_t* threads;
    /* What the caller writes for each job, and workers when they go to sleep. */
    _Alignas(128) uint32_t jobs; /* how many jobs there have been */
    uint32_t issued;             /* how many tasks of all jobs there have been */
    int64_t waking_since;        /* when workers that still sleep were first woken; 0: none was */
    pthread_mutex_t lock;        /* guards is_over, and going to sleep */
    pthread_cond_t wake;
    int is_over, sleepers;
    share shares[];
};

/* How often the process has become a child by fork. A child has only the thread that called fork, so the workers of its
 * parent's teams are missing, and may have held locks. */
static unsigned forks;

static void count_fork(void) { ++forks; }

static void note_forks(void) { pthread_atfork(NULL, NULL, count_fork); }

static int has_workers(const onnx2halide_team* team) { return team && team->workers > 0 && team->forks == forks; }

/* The argument of a worker's thread. */
typedef struct worker {
    onnx2halide_team* team;
    int index;
} worker;

/* Whether this thread runs a task: nested loops are not distributed again. */
static _Thread_local int is_at_work;

static _Thread_local int thread_index;

int onnx2halide_thread_index(void) { return thread_index; }

static void pause_briefly(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__) || defined(__arm__)
    __asm__ volatile("yield");
#endif
}

static int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* The state of a spinning wait. */
typedef struct waiting {
    unsigned spins;
    int64_t since, ns; /* when it began and how long it has lasted, when the clock was last read */
} waiting;

/* Spins once. Every 32nd time it reads the clock, and yields and returns 1 if the wait is long. */
static int spin_once(waiting* wait) {
    pause_briefly();
    if (++wait->spins % 32 != 0) return 0;
    const int64_t time = now();
    if (wait->since == 0) wait->since = time;
    wait->ns = time - wait->since;
    if (wait->ns <= LOOK_ALONE_NS) return 0;
    sched_yield();
    return 1;
}

/* ---- Tasks ---- */

static uint64_t tasks_between(uint32_t first, uint32_t end) { return first | (uint64_t)end << 32; }

/* Takes the first or the last task of a share. Returns 0 if there is none. */
static int take(share* from, int last, int* task) {
    uint64_t tasks = __atomic_load_n(&from->tasks, __ATOMIC_RELAXED), rest;
    do {
        const uint32_t first = (uint32_t)tasks, end = (uint32_t)(tasks >> 32);
        if (first == end) return 0;
        *task = (int)(last ? end - 1 : first);
        rest = last ? tasks_between(first, end - 1) : tasks_between(first + 1, end);
    } while (!__atomic_compare_exchange_n(&from->tasks, &tasks, rest, 1, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED));
    return 1;
}

/* Runs a thread's own tasks, then those that the others have not started. A worker may be late and find the tasks of a
 * later job: a job does not end before all of its tasks are counted as done, so that a task that is taken always
 * belongs to the job that its share describes. */
static void run_tasks(onnx2halide_team* team, int own) {
    is_at_work = 1;
    share* mine = &team->shares[own];
    for (int i = 0; i <= team->workers; ++i) {
        share* from = &team->shares[(own + i) % (team->workers + 1)];
        uint32_t done = 0;
        for (int task; take(from, i > 0, &task); ++done) {
            if (__atomic_load_n(&team->status, __ATOMIC_RELAXED) != 0) continue;
            const int status = from->task(from->context, task, from->closure);
            if (status != 0) __atomic_store_n(&team->status, status, __ATOMIC_RELAXED);
        }
        if (done > 0) __atomic_store_n(&mine->done, mine->done + done, __ATOMIC_RELEASE);
    }
    is_at_work = 0;
}

/* ---- Workers ---- */

static void note_cpu(share* own, int cpu) {
    if (__atomic_load_n(&own->cpu, __ATOMIC_RELAXED) != cpu) __atomic_store_n(&own->cpu, cpu, __ATOMIC_RELAXED);
}

/* Moves a worker that shares a core with another thread of the team to a free one. The operating system may leave it
 * there for long, since threads that wait for each other look busy. The worker's affinity mask is restored. */
static void keep_apart(onnx2halide_team* team, int own) {
    const int cpu = sched_getcpu();
    note_cpu(&team->shares[own], cpu);
    cpu_set_t allowed;
    int is_shared = 0;
    for (int i = 0; i < team->places; ++i)
        is_shared |= i != own && __atomic_load_n(&team->shares[i].cpu, __ATOMIC_RELAXED) == cpu;
    if (!is_shared || sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
    cpu_set_t apart = allowed;
    for (int i = 0; i < team->places; ++i) {
        const int other = __atomic_load_n(&team->shares[i].cpu, __ATOMIC_RELAXED);
        if (other >= 0 && other < CPU_SETSIZE) CPU_CLR(other, &apart);
    }
    if (CPU_COUNT(&apart) == 0 || sched_setaffinity(0, sizeof apart, &apart) != 0) return;
    sched_setaffinity(0, sizeof allowed, &allowed);
    note_cpu(&team->shares[own], sched_getcpu());
}

/* Sleeps until there is a job with another number. Returns 0 if the team ends instead. */
static int sleep_until_job(onnx2halide_team* team, int own, uint32_t last) {
    share* mine = &team->shares[own];
    note_cpu(mine, -1);
    pthread_mutex_lock(&team->lock);
    __atomic_add_fetch(&team->sleepers, 1, __ATOMIC_ACQ_REL);
    while (!team->is_over && __atomic_load_n(&mine->job, __ATOMIC_ACQUIRE) == last)
        pthread_cond_wait(&team->wake, &team->lock);
    __atomic_sub_fetch(&team->sleepers, 1, __ATOMIC_RELAXED);
    const int is_over = team->is_over;
    pthread_mutex_unlock(&team->lock);
    keep_apart(team, own);
    return !is_over;
}

/* Waits for a job with another number than the last one's. Returns 0 if the team ends instead. */
static int wait_for_job(onnx2halide_team* team, int own, uint32_t last) {
    waiting wait = {0};
    while (__atomic_load_n(&team->shares[own].job, __ATOMIC_RELAXED) == last) {
        if (!spin_once(&wait)) continue;
        if (wait.ns > LOOK_NS) return sleep_until_job(team, own, last);
        keep_apart(team, own);
    }
    return 1;
}

static void* work(void* argument) {
    const worker self = *(worker*)argument;
    free(argument);
    onnx2halide_team* team = self.team;
    thread_index = self.index;
    for (uint32_t last = 0; wait_for_job(team, self.index, last);) {
        last = __atomic_load_n(&team->shares[self.index].job, __ATOMIC_ACQUIRE);
        run_tasks(team, self.index);
    }
    return NULL;
}

/* Starts a worker with all signals blocked, so that the program's handlers never run in it. Returns 0 on failure. */
static int start_worker(onnx2halide_team* team, int index) {
    worker* self = malloc(sizeof *self);
    if (!self) return 0;
    *self = (worker){team, index};
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int failed = pthread_create(&team->threads[index - 1], NULL, work, self);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed) free(self);
    return !failed;
}

/* ---- The team ---- */

onnx2halide_team* onnx2halide_start_team(int threads) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, note_forks);
    const size_t size = sizeof(onnx2halide_team) + (size_t)threads * sizeof(share);
    onnx2halide_team* team = aligned_alloc(_Alignof(share), size);
    pthread_t* workers = calloc((size_t)threads, sizeof *workers);
    if (!team || !workers) {
        free(team);
        free(workers);
        return NULL;
    }
    *team = (onnx2halide_team){.threads = workers, .places = threads, .forks = forks};
    for (int i = 0; i < threads; ++i) team->shares[i] = (share){.cpu = -1};
    pthread_mutex_init(&team->lock, NULL);
    pthread_cond_init(&team->wake, NULL);
    /* If the system refuses more threads, those that have started do the work. */
    int started = 0;
    while (started < threads - 1 && start_worker(team, started + 1)) ++started;
    team->workers = started;
    return team;
}

void onnx2halide_stop_team(onnx2halide_team* team) {
    if (!team) return;
    if (has_workers(team)) {
        pthread_mutex_lock(&team->lock);
        team->is_over = 1;
        pthread_cond_broadcast(&team->wake);
        pthread_mutex_unlock(&team->lock);
        for (int i = 0; i < team->workers; ++i) pthread_join(team->threads[i], NULL);
        pthread_cond_destroy(&team->wake);
        pthread_mutex_destroy(&team->lock);
    }
    free(team->threads);
    free(team);
}

static int run_alone(void* context, halide_task_t task, int min, int size, uint8_t* closure) {
    for (int i = min; i < min + size; ++i) {
        const int status = task(context, i, closure);
        if (status != 0) return status;
    }
    return 0;
}

static void wake_sleepers(onnx2halide_team* team) {
    /* An addition, so that either it sees that a worker goes to sleep, or that worker sees the job. */
    if (__atomic_add_fetch(&team->sleepers, 0, __ATOMIC_ACQ_REL) == 0) {
        team->waking_since = 0;
        return;
    }
    pthread_mutex_lock(&team->lock);
    pthread_cond_broadcast(&team->wake);
    pthread_mutex_unlock(&team->lock);
    const int64_t time = now();
    if (team->waking_since == 0) team->waking_since = time;
    if (time - team->waking_since > WAKE_NS) sched_yield();
}

/* Whether all tasks of all jobs have been run. */
static int is_done(const onnx2halide_team* team) {
    uint32_t done = 0;
    for (int i = 0; i <= team->workers; ++i) done += __atomic_load_n(&team->shares[i].done, __ATOMIC_ACQUIRE);
    return done == team->issued;
}

int onnx2halide_share_out(onnx2halide_team* team, void* context, halide_task_t task, int min, int size,
                          uint8_t* closure) {
    if (!has_workers(team) || is_at_work || size < 2) return run_alone(context, task, min, size, closure);
    if (team->status != 0) team->status = 0;
    team->issued += (uint32_t)size;
    ++team->jobs;
    const int threads = team->workers + 1;
    note_cpu(&team->shares[0], sched_getcpu());
    for (int i = threads; i-- > 0;) {
        const int first = min + (int)((int64_t)size * i / threads),
                  end = min + (int)((int64_t)size * (i + 1) / threads);
        share* to = &team->shares[i];
        to->task = task;
        to->context = context;
        to->closure = closure;
        __atomic_store_n(&to->tasks, tasks_between((uint32_t)first, (uint32_t)end), __ATOMIC_RELEASE);
        __atomic_store_n(&to->job, team->jobs, __ATOMIC_RELEASE);
    }
    wake_sleepers(team);
    run_tasks(team, 0);
    for (waiting wait = {0}; !is_done(team);) spin_once(&wait);
    return team->status;
}
