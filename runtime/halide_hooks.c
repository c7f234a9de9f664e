/* Functions that kernels call. They replace those of the same names in Halide's runtime; `user_context` is the session
 * that runs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session.h"

/* ---- Scratch memory: a stack per thread in the session's memory ---- */

/* Header of a piece of scratch memory. Pieces are freed in nearly the reverse order of their allocation: one that is
 * freed early remains until those above it are freed. */
typedef struct piece {
    size_t below;      /* offset of the piece underneath; SIZE_MAX: none */
    size_t heap_bytes; /* size of a piece on the heap for which the region had no room; 0 for others */
    int is_free, is_heap;
    unsigned char padding[ONNX2HALIDE_ALIGNMENT - 2 * sizeof(size_t) - 2 * sizeof(int)];
} piece;

/* The session whose scratch region this thread uses while any piece is alive. */
static _Thread_local struct {
    onnx2halide_session* session;
    size_t top; /* offset of the topmost piece; SIZE_MAX: none */
    size_t used, heap_bytes;
} mine = {NULL, SIZE_MAX, 0, 0};

static unsigned char* region(void) {
    return mine.session->scratch + mine.session->scratch_bytes * (size_t)onnx2halide_thread_index();
}

/* Whether pieces of this session can be in its region. Not in a run that begins while another session's pieces are
 * alive, as in a callback from a kernel. */
static int has_region(onnx2halide_session* session) {
    if (mine.session != session && mine.top == SIZE_MAX && mine.heap_bytes == 0) {
        mine.session = session;
        mine.used = 0;
    }
    return session && mine.session == session;
}

static piece* heap_piece(size_t bytes) {
    piece* made = aligned_alloc(ONNX2HALIDE_ALIGNMENT, bytes);
    if (!made) return NULL;
    made->is_heap = 1;
    made->heap_bytes = 0;
    return made;
}

/* Requests that the next run have as much scratch memory as this one has needed, including that from the heap. */
static void want_scratch(onnx2halide_session* session, size_t bytes) {
    size_t wanted = __atomic_load_n(&session->scratch_wanted, __ATOMIC_RELAXED);
    while (wanted < bytes && !__atomic_compare_exchange_n(&session->scratch_wanted, &wanted, bytes, 0, __ATOMIC_RELAXED,
                                                          __ATOMIC_RELAXED)) {
    }
}

void* halide_malloc(void* user_context, size_t bytes) {
    onnx2halide_session* session = user_context;
    bytes = sizeof(piece) + onnx2halide_aligned(bytes);
    const int is_in_region = has_region(session);
    if (is_in_region && mine.used + bytes <= session->scratch_bytes) {
        piece* made = (piece*)(region() + mine.used);
        made->below = mine.top;
        made->is_free = made->is_heap = 0;
        mine.top = mine.used;
        mine.used += bytes;
        return made + 1;
    }
    piece* made = heap_piece(bytes);
    if (!made) return NULL;
    if (is_in_region) {
        made->heap_bytes = bytes;
        mine.heap_bytes += bytes;
        want_scratch(session, mine.used + mine.heap_bytes);
    }
    return made + 1;
}

void halide_free(void* user_context, void* memory) {
    (void)user_context;
    if (!memory) return;
    piece* freed = (piece*)memory - 1;
    if (freed->is_heap) {
        mine.heap_bytes -= freed->heap_bytes;
        free(freed);
        return;
    }
    freed->is_free = 1;
    unsigned char* first = region();
    while (mine.top != SIZE_MAX && ((piece*)(first + mine.top))->is_free) {
        mine.used = mine.top;
        mine.top = ((piece*)(first + mine.top))->below;
    }
}

/* ---- Messages ---- */

void halide_error(void* user_context, const char* message) {
    onnx2halide_session* session = user_context;
    if (!session) return;
    const size_t length = strcspn(message, "\n");
    onnx2halide_fail(session, ONNX2HALIDE_FAILED, "%.*s", (int)length, message);
}

void halide_print(void* user_context, const char* message) {
    (void)user_context;
    fputs(message, stderr);
}

/* ---- Threads ---- */

int halide_do_par_for(void* user_context, halide_task_t task, int min, int size, uint8_t* closure) {
    if (size == 1) return task(user_context, min, closure);
    const onnx2halide_session* session = user_context;
    onnx2halide_team* team = session && !session->is_small_step ? session->team : NULL;
    return onnx2halide_share_out(team, user_context, task, min, size, closure);
}
