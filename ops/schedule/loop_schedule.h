#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ops/kernel_source.h"

// The default schedule of a Func's loops: how they become vectors and parallel tasks.
namespace onnx2halide {

/// The loops with more than one iteration.
Loops nontrivial_loops(const Loops& loops);
/// Vectorises the innermost of a Func's loops and runs the outermost in parallel if there is enough work; on a GPU,
/// maps them to blocks. Loops of one iteration are ignored.
void schedule_loops(KernelSource& source, const Loops& loops);
/// Splits the innermost loop into blocks of so many iterations, each of which reads elsewhere: the loop over blocks
/// becomes the innermost one, and the iterations of a block are unrolled.
Loops split_blocks(KernelSource& source, const Loops& loops, int64_t size);
/// Vectorises the innermost loop, with shorter vectors if it does not fill one. An update's loop may be a reduction's,
/// which is never rounded up.
void vectorise(KernelSource& source, const Loops& loops, bool is_update = false);
/// The same by several vectors at a time if the loop is long: reductions across it then read longer parts of each row.
void vectorise_wide(KernelSource& source, const Loops& loops);
/// Whether some of a kernel's nodes take many instructions and registers per element (see NodeGenerator::is_expensive).
bool has_expensive_nodes(const KernelSource& source);
/// Whether a GPU's threads may compute vectors of results: Halide's OpenCL supports few functions of vectors, and its
/// CUDA stores vectors of halves incorrectly.
bool has_gpu_vectors(const KernelSource& source);
/// Fuses up to `count` innermost loops if the innermost alone leaves vectors unfilled. Their elements must be
/// contiguous in all that the stage reads and writes; layouts are checked, and kernels left alone if an input or output
/// is part of another tensor.
Loops fuse_innermost(KernelSource& source, const Loops& loops, size_t count);
/// Schedules a Func whose rows do not fill vectors: runs of as many rows as fill whole vectors, where each vector of a
/// run has fixed positions within the rows. The Func's elements must be laid out in the order of its loops, and so must
/// most of what it reads. Returns false if a run would take too many vectors, or rows fill them.
bool schedule_short_rows(KernelSource& source, const Loops& loops);
/// The number of elements below which a task costs more than it saves.
constexpr int64_t elements_of_a_task = 1 << 12;

/// Whether so many elements are worth dividing among threads; true if the number is unknown.
bool is_parallel_work(const Dim& elements);
/// Appends directives that fuse several loops, innermost first, into one named after `role`; a single loop keeps its
/// name. Either all or none are of reductions. Returns the name.
std::string fuse_all(KernelSource& source, const std::vector<std::string>& loops, const std::string& role,
                     std::vector<std::string>& directives);
/// The number of iterations, as text, that make a task of a loop of `count`, where each computes so many elements.
std::string iterations_of_a_task(KernelSource& source, const Dim& elements, const Dim& count);
/// Directives that run the outermost loop in parallel, fused with the next one if its extent is open and may be 1, with
/// several iterations per task if one has little work. The first `tile` loops are not divided into tasks.
std::vector<std::string> parallel_outermost(KernelSource& source, const Loops& nontrivial, size_t tile = 1);
/// Runs the outermost of several loops in parallel, unless there is little work. The first `tile` loops, which are
/// vectorised and unrolled, are left as they are.
void parallelise(KernelSource& source, const Loops& loops, size_t tile = 1);

}  // namespace onnx2halide
