#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ops/kernel_source.h"

// How the loops of a Func become vectors and tasks where nothing better is known of them.
namespace onnx2halide {

/// The loops that have more than one turn.
Loops turning_loops(const Loops& loops);
/// Vectorises the innermost of a Func's loops and runs the outermost in parallel where there is enough to do; on a GPU
/// makes blocks of them. Loops of one turn do not count.
void schedule_loops(KernelSource& source, const Loops& loops);
/// Takes the innermost loop in blocks of so many turns, which come from different places: the loop of the blocks is
/// then the innermost, and the turns of one are unrolled.
Loops split_blocks(KernelSource& source, const Loops& loops, int64_t size);
/// Vectorises the innermost loop, by shorter vectors where it fills none. An update's loop may be a reduction's, which
/// is never rounded up.
void vectorise(KernelSource& source, const Loops& loops, bool is_update = false);
/// Whether an element of a kernel's output takes many instructions and registers (see NodeGenerator::is_long).
bool has_long_nodes(const KernelSource& source);
/// Whether threads of a GPU may have vectors of results: Halide's OpenCL has vectors of few functions, and its CUDA
/// stores vectors of halves wrongly.
bool has_gpu_vectors(const KernelSource& source);
/// Makes one loop of up to `count` innermost ones where the innermost alone leaves vectors unfilled. Their elements
/// must follow each other in all that the stage reads and writes, as far as layouts tell; nothing is done to a kernel
/// of which an input or output is a part of another tensor.
Loops fuse_innermost(KernelSource& source, const Loops& loops, size_t count);
/// Schedules a Func whose rows leave vectors unfilled: so many of them as fill whole vectors are a run, and each run's
/// vectors have the same places in their rows. Its elements must lie as its loops say, and so must most of what it
/// reads. False where a run would take too many vectors, or rows fill them.
bool schedule_short_rows(KernelSource& source, const Loops& loops);
/// Elements below which a task costs more than it saves.
constexpr int64_t elements_of_a_task = 1 << 12;

/// Whether so many elements are worth handing to several threads; yes where nobody knows how many they are.
bool is_parallel_work(const Dim& elements);
/// Makes one loop of several, innermost first, by further directives. It is called as its role says, but for a single
/// one, which keeps its name.
std::string fuse_all(KernelSource& source, const std::vector<std::string>& loops, const std::string& role,
                     std::vector<std::string>& directives);
/// Text of how many turns of a loop of `count`, each of so many elements, make a task.
std::string turns_of_a_task(KernelSource& source, const Dim& elements, const Dim& count);
/// Directives that run the outermost loop in parallel, with the next one where it is an open dim that may be 1, in
/// tasks of several turns where one has little to do. The first `tile` loops are no part of a task's.
std::vector<std::string> parallel_outermost(KernelSource& source, const Loops& turning, size_t tile = 1);
/// Runs the outermost loop of several in parallel, unless there is little to do. The first `tile` loops, vectorised and
/// unrolled, are left as they are.
void parallelise(KernelSource& source, const Loops& loops, size_t tile = 1);

}  // namespace onnx2halide
