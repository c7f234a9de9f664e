/* Assigns tensors to offsets in one arena. The compiler does so if all sizes are known, a session if they are known
 * only at run time. */
#ifndef ONNX2HALIDE_ARENA_H
#define ONNX2HALIDE_ARENA_H

#include <stddef.h>
#include <stdint.h>

enum { ONNX2HALIDE_ALIGNMENT = 64 };

/* Bytes, rounded up to whole units of the alignment. */
static inline size_t onnx2halide_aligned(size_t bytes) {
    return (bytes + ONNX2HALIDE_ALIGNMENT - 1) / ONNX2HALIDE_ALIGNMENT * ONNX2HALIDE_ALIGNMENT;
}

/* The lifetime of a tensor of `bytes`: from step `first` to step `last`, inclusive. onnx2halide_place_arena sets
 * `offset`. */
typedef struct onnx2halide_lifetime {
    int32_t first, last;
    int64_t bytes;
    int64_t offset; /* -1: not placed yet */
} onnx2halide_lifetime;

/* Assigns each tensor, largest first, the lowest offset at which it overlaps no placed tensor whose lifetime intersects
 * its own. Returns the arena's size in bytes. Takes O(count^2 * overlaps) time, where few lifetimes overlap in
 * networks. */
static inline int64_t onnx2halide_place_arena(onnx2halide_lifetime* tensors, int count) {
    int64_t size = 0;
    for (int i = 0; i < count; ++i) {
        tensors[i].offset = -1;
        tensors[i].bytes = (int64_t)onnx2halide_aligned((size_t)tensors[i].bytes);
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
