// Schedules for the cooperation of the threads of a GPU's block.
#pragma once

#include <vector>

#include "Halide.h"

using namespace Halide;

namespace onnx {

/// Pads a Func in shared memory to whole vectors of 16 bytes, since Halide assumes that the next allocation is so
/// aligned.
inline void fill_shared_vectors(Func func) { func.align_storage(func.args()[0], 16 / func.type().bytes()); }

/// Copies the part of an operand that a block reads into shared memory, within loop `block` of `consumer`. The block
/// has `threads` threads along its dimensions; consecutive threads copy consecutive vectors of `vector` elements, of
/// which the innermost extent must be a multiple.
inline void share_in_block(Func copy, Func consumer, Var block, const std::vector<int>& threads, int vector) {
    const std::vector<Var> dims = copy.args();
    Var lane("lane"), element("element"), iteration("iteration");
    copy.compute_at(consumer, block).store_in(MemoryType::GPUShared);
    fill_shared_vectors(copy);
    copy.split(dims[0], element, lane, vector, TailStrategy::GuardWithIf);
    for (size_t i = 1; i < dims.size(); ++i) copy.fuse(element, dims[i], element);
    int count = 1;
    for (const int along : threads) count *= along;
    std::vector<Var> loops = {Var("thread"), Var("thread_y"), Var("thread_z")};
    loops.resize(threads.size());
    copy.split(element, iteration, loops[0], count, TailStrategy::GuardWithIf);
    for (size_t i = 1; i < loops.size(); ++i) copy.split(loops[i - 1], loops[i], loops[i - 1], threads[i - 1]);
    std::vector<VarOrRVar> order = {lane, iteration};
    order.insert(order.end(), loops.begin(), loops.end());
    copy.reorder(order);
    for (const Var& loop : loops) copy.gpu_threads(loop);
    if (vector > 1) copy.vectorize(lane);
}

/// Loads the part of an operand that an iteration of loop `run` of `reader` reads into registers, `vector` contiguous
/// elements with each load. CUDA's loads have at most four floats; Halide splits longer vectors into single elements.
inline void read_by_thread(Func operand, Func reader, RVar run, int vector) {
    const std::vector<Var> dims = operand.args();
    operand.compute_at(reader, run).store_in(MemoryType::Register);
    if (vector > 1) operand.vectorize(dims[0], vector);
    for (const Var& dim : dims) operand.unroll(dim);
}

/// Computes a reduction for the rows of a block of `consumer`, along `row` if there are several. The steps of a row are
/// dealt out to `threads` threads; a few threads add up their partial results, and one thread the results of these. A
/// reduction that is not associative is computed by one thread. With `along`, consecutive threads take steps of the
/// same row, else of neighbouring rows.
inline void reduce_in_block(Func func, const std::vector<RVar>& steps, Func consumer, Var block, int threads,
                            const std::vector<Var>& row, bool along) {
    constexpr int iterations_at_once = 4, added_by_one = 16;
    // Rows are the same dimension of the block in every stage, because a block has the maximum of all stages' threads
    // along each dimension.
    const auto share_rows = [&](Stage stage, std::vector<Var> loops) {
        if (along && loops.empty() && !row.empty()) {
            loops = {Var("only_thread")};
            stage.split(row[0], row[0], loops[0], 1);
        }
        loops.insert(along ? loops.end() : loops.begin(), row.begin(), row.end());
        if (loops.size() == 1) stage.gpu_threads(loops[0]);
        if (loops.size() == 2) stage.reorder(loops[0], loops[1]).gpu_threads(loops[0], loops[1]);
    };
    func.compute_at(consumer, block).store_in(MemoryType::GPUShared);
    Stage update = func.update();
    const Internal::Definition& definition = func.function().update(0);
    if (Internal::prove_associativity(func.name(), definition.args(), definition.values()).associative()) {
        RVar step = steps.front(), iteration("iteration"), own("own");
        for (size_t i = 1; i < steps.size(); ++i) update.fuse(step, steps[i], step);
        update.split(step, iteration, own, threads, TailStrategy::GuardWithIf);
        Var thread("thread");
        Func parts = update.rfactor(own, thread), shared = parts.in();
        shared.compute_at(consumer, block).store_in(MemoryType::GPUShared);
        share_rows(shared, {thread});
        parts.update().unroll(iteration, iterations_at_once, TailStrategy::GuardWithIf);
        if (threads > 2 * added_by_one) {
            RVar far("far"), near("near");
            Var place("place");
            Func few = func.update().split(own, far, near, added_by_one).rfactor(near, place);
            few.compute_at(consumer, block).store_in(MemoryType::GPUShared);
            share_rows(few, {place});
            share_rows(few.update(), {place});
        }
        parts.compute_at(shared, along || row.empty() ? thread : row[0]).store_in(MemoryType::Register);
    }
    share_rows(func, {});
    share_rows(func.update(), {});
}

}  // namespace onnx
