// What blocks of threads of a GPU do together.
#pragma once

#include <vector>

#include "Halide.h"

using namespace Halide;

/// Copies what a block reads of an operand into the memory that its threads share, before the block's loop `block` of `consumer` goes on:
/// `threads` of them take elements that follow each other, `vector` each at once, by which the innermost extent must divide.
inline void share_in_block(Func copy, Func consumer, Var block, int threads, int vector) {
    const std::vector<Var> dims = copy.args();
    Var lane("lane"), element("element"), turn("turn"), thread("thread");
    copy.compute_at(consumer, block).store_in(MemoryType::GPUShared);
    copy.split(dims[0], element, lane, vector, TailStrategy::GuardWithIf);
    for (size_t i = 1; i < dims.size(); ++i) copy.fuse(element, dims[i], element);
    copy.split(element, turn, thread, threads, TailStrategy::GuardWithIf).reorder(lane, turn, thread).gpu_threads(thread);
    if (vector > 1) copy.vectorize(lane);
}
