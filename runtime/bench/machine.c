/* Measures this machine's limits: multiply-adds from registers, and memory traffic of a working set. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double seconds(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec * 1e-9;
}

/* The loops are compiled once for each vector width. Twelve independent sums hide the latency of multiply-adds: 4 or 5
 * cycles, at two per cycle. They are separate variables because gcc keeps an array of them in memory. */
#define EACH_SUM(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9) DO(10) DO(11)
enum { sums = 12 };
#define START(i) sum##i = factor,
#define ADD(i)                                                                                                         \
    sum##i = sum##i * factor + term;                                                                                   \
    __asm__ volatile("" : VECTOR_OPERAND(sum##i));

#define FMA_LOOP(NAME, FLOATS, ATTRIBUTE)                                                                              \
    typedef float NAME##_vector __attribute__((vector_size(4 * FLOATS)));                                              \
    ATTRIBUTE static double NAME(int64_t iterations) {                                                                 \
        const NAME##_vector zero = {0}, factor = zero + 0.999f;                                                        \
        NAME##_vector EACH_SUM(START) term = zero + 1e-3f;                                                             \
        const double began = seconds();                                                                                \
        for (int64_t i = 0; i < iterations; ++i) {                                                                     \
            EACH_SUM(ADD)                                                                                              \
        }                                                                                                              \
        return 2.0 * FLOATS * sums * iterations / (seconds() - began);                                                 \
    }

/* Loads every vector of a working set into a register, or stores a register to each. */
#define TRAFFIC_LOOPS(NAME, FLOATS, ATTRIBUTE)                                                                         \
    ATTRIBUTE static void NAME##_read(const float* data, size_t bytes) {                                               \
        const NAME##_vector* vectors = (const NAME##_vector*)data;                                                     \
        const size_t count = bytes / sizeof *vectors;                                                                  \
        for (size_t i = 0; i < count; i += 8) {                                                                        \
            _Pragma("GCC unroll 8") for (size_t j = 0; j < 8; ++j) {                                                   \
                NAME##_vector vector = vectors[i + j];                                                                 \
                __asm__ volatile("" : VECTOR_OPERAND(vector));                                                         \
            }                                                                                                          \
        }                                                                                                              \
    }                                                                                                                  \
    ATTRIBUTE static void NAME##_write(float* data, size_t bytes) {                                                    \
        NAME##_vector* vectors = (NAME##_vector*)data;                                                                 \
        const size_t count = bytes / sizeof *vectors;                                                                  \
        NAME##_vector zero = {0};                                                                                      \
        for (size_t i = 0; i < count; i += 8) {                                                                        \
            _Pragma("GCC unroll 8") for (size_t j = 0; j < 8; ++j) {                                                   \
                __asm__ volatile("" : VECTOR_OPERAND(zero));                                                           \
                vectors[i + j] = zero;                                                                                 \
            }                                                                                                          \
        }                                                                                                              \
    }

typedef struct vector_loops {
    double (*fma)(int64_t iterations);
    void (*read)(const float* data, size_t bytes);
    void (*write)(float* data, size_t bytes);
} vector_loops;

#if defined(__x86_64__)
#define VECTOR_OPERAND(x) "+x"(x)
FMA_LOOP(sse, 4, )
TRAFFIC_LOOPS(sse, 4, )
FMA_LOOP(avx2, 8, __attribute__((target("avx2,fma"))))
TRAFFIC_LOOPS(avx2, 8, __attribute__((target("avx2,fma"))))
#undef VECTOR_OPERAND
#define VECTOR_OPERAND(x) "+v"(x)
FMA_LOOP(avx512, 16, __attribute__((target("avx512f"))))
TRAFFIC_LOOPS(avx512, 16, __attribute__((target("avx512f"))))

static vector_loops widest_loops(void) {
    if (__builtin_cpu_supports("avx512f")) return (vector_loops){avx512, avx512_read, avx512_write};
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return (vector_loops){avx2, avx2_read, avx2_write};
    return (vector_loops){sse, sse_read, sse_write};
}
#else
#define VECTOR_OPERAND(x) "+w"(x)
FMA_LOOP(neon, 4, )
TRAFFIC_LOOPS(neon, 4, )

static vector_loops widest_loops(void) { return (vector_loops){neon, neon_read, neon_write}; }
#endif

/* Returns the floating-point operations per second of one core. */
double onnx2halide_peak_flops(void) {
    const vector_loops loops = widest_loops();
    double best = 0;
    for (int i = 0; i < 20; ++i) {
        const double rate = loops.fma(1000000);
        if (rate > best) best = rate;
    }
    return best;
}

/* Measures the bytes per second that one core reads from, and writes to, a working set of this many bytes. Returns 0,
 * or -1 if out of memory. */
int onnx2halide_peak_traffic(size_t bytes, double* reads, double* writes) {
    const vector_loops loops = widest_loops();
    bytes = (bytes + 511) / 512 * 512;
    float* data = aligned_alloc(512, bytes);
    if (!data) return -1;
    memset(data, 0, bytes);
    const int passes = (int)((64u << 20) / bytes) + 1;
    *reads = *writes = 0;
    for (int i = 0; i < 10; ++i) {
        const double began = seconds();
        for (int pass = 0; pass < passes; ++pass) loops.read(data, bytes);
        const double middle = seconds();
        for (int pass = 0; pass < passes; ++pass) loops.write(data, bytes);
        const double ended = seconds(), total = (double)bytes * passes;
        if (total / (middle - began) > *reads) *reads = total / (middle - began);
        if (total / (ended - middle) > *writes) *writes = total / (ended - middle);
    }
    free(data);
    return 0;
}
