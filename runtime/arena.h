/* Places tensors in one arena. The compiler calls it where all sizes are known, and a session where they are not until
 * run time. */
#ifndef ONNX2HALIDE_ARENA_H
#define ONNX2HALIDE_ARENA_H

#include <stdint.h>

enum { ONNX2HALIDE_ALIGNMENT = 64 };

/* A tensor of `bytes` that must keep its place from step `first` to step `last`. `offset` is what
 * onnx2halide_place_arena finds. */
typedef struct onnx2halide_lifetime {
    int32_t first, last;
    int64_t bytes;
    int64_t offset; /* -1: not placed yet */
} onnx2halide_lifetime;

/* Gives each tensor, largest first, the lowest offset at which it meets no tensor that lives at the same time. Returns
 * the arena's size in bytes. Takes time in the order of count squared times the number of neighbours, which is small
 * for networks. */
static inline int64_t onnx2halide_place_arena(onnx2halide_lifetime* tensors, int count) {
    int64_t size = 0;
    for (int i = 0; i < count; ++i) {
        tensors[i].offset = -1;
        tensors[i].bytes =
            (tensors[i].bytes + ONNX2HALIDE_ALIGNMENT - 1) / ONNX2HALIDE_ALIGNMENT * ONNX2HALIDE_ALIGNMENT;
    }
    for (int placed = 0; placed < count; ++placed) {
        onnx2halide_lifetime* largest = 0;
        for (int i = 0; i < count; ++i) {
            if (tensors[i].offset < 0 && (!largest || tensors[i].bytes > largest->bytes)) largest = &tensors[i];
        }
        int64_t offset = 0;
        for (int moved = 1; moved;) {
            moved = 0;
            for (int i = 0; i < count; ++i) {
                const onnx2halide_lifetime* other = &tensors[i];
                if (other->offset < 0 || other->last < largest->first || largest->last < other->first) continue;
                if (offset < other->offset + other->bytes && other->offset < offset + largest->bytes) {
                    offset = other->offset + other->bytes;
                    moved = 1;
                }
            }
        }
        largest->offset = offset;
        if (offset + largest->bytes > size) size = offset + largest->bytes;
    }
    return size;
}

#endif
