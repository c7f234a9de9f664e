/* The registers of matrix instructions (AMX), which the operating system grants to processes that ask for them. */
#ifndef ONNX2HALIDE_MATRIX_REGISTERS_H
#define ONNX2HALIDE_MATRIX_REGISTERS_H

#if defined(__x86_64__) && defined(__linux__)

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Whether the processor multiplies matrices of bfloat16 and of bytes, and the operating system, once asked, lets all
   threads of this process do so. */
static inline int onnx2halide_may_multiply_matrices(void) {
    const unsigned bfloat16 = 1u << 22, tiles = 1u << 24, bytes = 1u << 25, all = bfloat16 | tiles | bytes; /* in EDX */
    const long request = 0x1023 /* ARCH_REQ_XCOMP_PERM */, tile_data = 18; /* a component of the saved state */
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & all) == all &&
           syscall(SYS_arch_prctl, request, tile_data) == 0;
}

#else

static inline int onnx2halide_may_multiply_matrices(void) { return 0; }

#endif

#endif
