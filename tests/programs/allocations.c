/* Counts what a session asks of the heap and the kernel's memory map while it runs: THREADS from the first argument. */
#define _GNU_SOURCE
#include "image.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static volatile int counting;
static int calls;

/* Counts a call from any thread. */
static void count(void) {
    if (counting) __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
}

extern void* __libc_malloc(size_t size);
extern void* __libc_calloc(size_t count, size_t size);
extern void* __libc_realloc(void* old, size_t size);
extern void* __libc_memalign(size_t alignment, size_t size);

void* malloc(size_t size) {
    count();
    return __libc_malloc(size);
}
void* calloc(size_t number, size_t size) {
    count();
    return __libc_calloc(number, size);
}
void* realloc(void* old, size_t size) {
    count();
    return __libc_realloc(old, size);
}
void* aligned_alloc(size_t alignment, size_t size) {
    count();
    return __libc_memalign(alignment, size);
}
void* memalign(size_t alignment, size_t size) {
    count();
    return __libc_memalign(alignment, size);
}
int posix_memalign(void** memory, size_t alignment, size_t size) {
    count();
    *memory = __libc_memalign(alignment, size);
    return *memory ? 0 : 12;
}
void* mmap(void* address, size_t length, int protection, int flags, int file, off_t offset) {
    static void* (*original)(void*, size_t, int, int, int, off_t);
    count();
    if (!original) *(void**)&original = dlsym(RTLD_NEXT, "mmap");
    return original(address, length, protection, flags, file, offset);
}

int main(int argc, char** argv) {
    static float picture[IMAGE_PICTURE_ELEMENTS], features[IMAGE_FEATURES_ELEMENTS], first[IMAGE_FEATURES_ELEMENTS];
    onnx2halide_options options = {.size = sizeof(onnx2halide_options), .threads = argc > 1 ? atoi(argv[1]) : 1};
    for (int i = 0; i < IMAGE_PICTURE_ELEMENTS; ++i) picture[i] = (float)(i % 13) / 13;
    image* session;
    if (image_create(&session, &options) != 0) return 2;
    free(malloc(1));
    counting = 1;
    free(malloc(1)); /* the counter itself works */
    if (calls != 1) return 3;
    for (int round = 0; round < 50; ++round) {
        if (image_run(session, picture, features) != 0) return 4;
        if (round == 0) memcpy(first, features, sizeof first);
        if (memcmp(first, features, sizeof first) != 0) return 5;
    }
    counting = 0;
    printf("%d allocations, %d bytes of scratch memory\n", calls - 1, (int)IMAGE_SCRATCH_SIZE);
    image_destroy(session);
    return 0;
}
