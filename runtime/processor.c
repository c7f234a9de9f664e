/* Checks whether a machine has the features that kernels are compiled for. */
#include "matrix_registers.h"
#include "session.h"

enum { WORDS = sizeof((onnx2halide_target){0}).features / sizeof(uint64_t) };

#if defined(__x86_64__) || defined(__i386__)

#include <cpuid.h>

static int is_asked(const onnx2halide_target* target, int feature) {
    return (target->features[feature / 64] >> (feature % 64)) & 1;
}

/* Returns the lower half of XCR0: a bit for each set of registers that the operating system saves. */
static unsigned saved_registers(void) {
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE)) return 0;
    __asm__("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
    return a;
}

/* Checks what Halide's runtime does not: whether the registers are saved, and the newest instructions. */
static int has_rest(const onnx2halide_target* target) {
    const unsigned avx = 0x6, avx512 = 0xe6, vnni = 1u << 11, avx_vnni = 1u << 4, bf16 = 1u << 5;
    const unsigned saved = saved_registers();
    unsigned a = 0, b, c = 0, d, newest = 0;
    __get_cpuid_count(7, 0, &a, &b, &c, &d);
    if (a >= 1) __get_cpuid_count(7, 1, &newest, &b, &a, &d);
    return (!is_asked(target, halide_target_feature_avx) || (saved & avx) == avx) &&
           (!is_asked(target, halide_target_feature_avx512) || (saved & avx512) == avx512) &&
           (!is_asked(target, halide_target_feature_avxvnni) || (newest & avx_vnni)) &&
           (!is_asked(target, halide_target_feature_avx512_zen4) || ((c & vnni) && (newest & bf16))) &&
           (!is_asked(target, halide_target_feature_avx512_sapphirerapids) || onnx2halide_may_multiply_matrices());
}

#else

static int has_rest(const onnx2halide_target* target) {
    (void)target;
    return 1;
}

#endif

int onnx2halide_has_target(const onnx2halide_target* target) {
    return halide_can_use_target_features(WORDS, target->features) && has_rest(target);
}
