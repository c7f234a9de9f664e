/* Counts allocations and memory mappings of any thread while `counting`. */
#ifndef COUNT_ALLOCATIONS_H
#define COUNT_ALLOCATIONS_H

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static volatile int counting;
static int calls;

/* Counts a call, which may be from any thread. */
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

/* Whether counting works. */
static int counter_works(void) {
    const int before = calls;
    counting = 1;
    free(malloc(1));
    counting = 0;
    return calls == before + 1;
}

#endif
