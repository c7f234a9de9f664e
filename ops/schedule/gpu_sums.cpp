#include "ops/schedule/gpu_sums.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ops/schedule/cycles.h"
#include "ops/schedule/directives.h"
#include "ops/schedule/loop_schedule.h"

namespace onnx2halide {

namespace {

/// The extents, completed by those of the results. A loop whose extent is known only at run time counts as an outer
/// one.
GpuSumExtents with_results(GpuSumExtents extents, const std::vector<Dim>& loops) {
    extents.columns = *loops[0].constant();
    extents.across = *loops[1].constant();
    extents.down = loops.size() > 2 ? loops[2].constant().value_or(1) : 1;
    for (size_t i = 2; i < loops.size(); ++i) {
        if (i > 2 || !loops[i].constant()) extents.images *= estimate(loops[i]);
    }
    return extents;
}

constexpr int vector = 4;  // floats of a load
constexpr const char* in_registers = "store_in(MemoryType::Register)";

class Writer {
public:
    Writer(KernelSource& source, const GpuSums& sums)
        : source_(source), sums_(sums), tile_(choose_gpu_tile(with_results(sums.extents, sums.output.extents))),
          c_(sums.output.vars[0]), x_(sums.output.vars[1]), lane_(source.var("lane")), pixel_(source.var("pixel")),
          thread_(source.var("thread")), c_block_(source.var("block_of_columns")), block_(source.var("block")) {
        if (sums.output.vars.size() > 2) y_ = sums.output.vars[2];
    }

    void write() {
        write_comment();
        const std::string tile = has_parts() ? schedule_slices() : schedule_whole();
        schedule_update(tile);
        if (reads_runs()) {
            const std::string read = source_.local(sums_.input + "_read");
            source_.schedule(fmt::format("Func {} = {}.in({});", read, operand_, tile));
            source_.schedule(fmt::format("onnx::read_by_thread({}, {}, {}, {});", read, tile, run(),
                                         reads_vectors() ? std::min(tile_.steps, vector) : 1));
        }
    }

private:
    KernelSource& source_;
    const GpuSums& sums_;
    const GpuTile tile_;
    const std::string c_, x_, lane_, pixel_, thread_, c_block_, block_;
    std::string y_, operand_;  // operand_: what threads read as the input: itself, or the block's copy

    /// Whether threads load the inputs of several terms at once, one iteration of the loop `run`.
    bool reads_runs() const { return sums_.extents.is_run && tile_.steps > 1; }

    void write_comment() const {
        const std::string slices =
            has_parts() ? fmt::format(", in {} slices that the block adds up", tile_.slices) : "";
        source_.schedule(fmt::format("// A thread sums {} x {} results in registers{}; a block has {} threads.",
                                     tile_.lanes, tile_.pixels, slices, tile_.threads()));
    }

    /// Whether these loads are vectors: Halide's CUDA stores vectors of halves incorrectly.
    bool reads_vectors() const { return sums_.extents.is_run && sums_.extents.input_bytes == 4; }

    std::string depth_of_slice() const { return source_.rvar("depth_of_slice"); }
    std::string run() const { return source_.rvar("run"); }
    std::string columns() const { return source_.param("columns", tile_.columns()); }
    std::string pixels() const { return source_.param("pixels", tile_.pixels); }

    /// Splits the output's loops into blocks of results; the loops within a block keep their names.
    Directives blocks() const {
        Directives result = {shifted_split(c_, c_block_, columns()),
                             shifted_split(x_, block_, source_.param("across", tile_.across()))};
        std::vector<std::string> outer(sums_.output.vars.begin() + 2, sums_.output.vars.end());
        if (!y_.empty()) {
            outer[0] = source_.var("block_down");
            result.push_back(shifted_split(y_, outer[0], source_.param("down", tile_.down)));
        }
        for (const std::string& loop : outer) result.push_back(fmt::format("fuse({}, {}, {})", block_, loop, block_));
        return result;
    }

    bool has_parts() const { return tile_.slices > 1; }

    /// Splits a block's loops into those of its threads, which compute tiles of columns and rows. Slices take a
    /// dimension of the block, so that these two share one.
    Directives tiles() const {
        Directives result = {fmt::format("split({0}, {0}, {1}, {2})", c_, lane_, tile_.lanes),
                             fmt::format("split({0}, {0}, {1}, {2})", x_, pixel_, pixels())};
        if (has_parts()) result.push_back(fmt::format("fuse({}, {}, {})", c_, x_, thread_));
        return result;
    }

    /// With nested fused loops, Halide does not always see how few elements a thread has: the loop down and that over
    /// slices are dimensions of the block.
    std::vector<std::string> threads(const std::string& part) const {
        std::vector<std::string> loops = has_parts() ? std::vector{thread_} : std::vector{c_, x_};
        if (!y_.empty()) loops.push_back(y_);
        if (!part.empty()) loops.push_back(part);
        return loops;
    }

    std::vector<int> thread_counts() const {
        std::vector<int> counts = {tile_.threads_along, tile_.threads_across};
        if (has_parts()) counts = {counts[0] * counts[1]};
        if (!y_.empty()) counts.push_back(tile_.down);
        if (has_parts()) counts.push_back(tile_.slices);
        return counts;
    }

    /// Orders the loops within a thread and those over threads, for the output also those over blocks.
    Directives order(std::vector<std::string> within, const std::vector<std::string>& threads, bool has_blocks) const {
        within.insert(within.end(), threads.begin(), threads.end());
        if (has_blocks) within.insert(within.end(), {block_, c_block_});
        Directives result = {reorder(within)};
        // CUDA limits all dimensions of the grid but the first to 65535 blocks.
        if (has_blocks) result.push_back(fmt::format("gpu_blocks({}, {})", block_, c_block_));
        result.push_back(fmt::format("gpu_threads({})", fmt::join(threads, ", ")));
        return result;
    }

    /// OpenCL kernels hold the bits of 16-bit floats (see narrow_floats.h), which are converted one by one.
    Directives vectors(const std::string& lane) const {
        const auto is_narrow = [](const Value* value) { return is_narrow_float(value->checked_type().element); };
        const bool are_bits =
            source_.target().gpu == Target::Gpu::opencl && std::ranges::any_of(source_.inputs(), is_narrow);
        if (tile_.lanes == 1) return {};
        return {are_bits ? unroll(lane) : vectorize(lane)};
    }

    /// The lanes of results.
    Directives result_lanes() const { return has_gpu_vectors(source_) ? vectors(lane_) : Directives{unroll(lane_)}; }

    /// A thread has sums for one iteration of each outer loop, which Halide does not see if extents are open.
    Directives bounds() const {
        const auto& extents = sums_.output.extents;
        Directives result;
        if (std::all_of(extents.begin(), extents.end(), [](const Dim& extent) { return extent.constant(); })) return {};
        for (size_t i = 2; i < extents.size(); ++i)
            result.push_back(fmt::format("bound_extent({}, 1)", sums_.output.vars[i]));
        return result;
    }

    /// Each thread computes whole sums, and its results from them. Returns the Func of the sums.
    std::string schedule_whole() {
        const Directives places = order({lane_, pixel_}, threads(""), true);
        source_.schedule(sums_.output.func,
                         joined(joined(blocks(), tiles()), joined(joined(places, {unroll(pixel_)}), result_lanes())));
        share_input(sums_.sum);
        source_.schedule(
            sums_.sum,
            joined(joined({compute_at(sums_.output.func, c_), in_registers, unroll(x_)}, bounds()), vectors(c_)));
        return sums_.sum;
    }

    /// Each thread computes partial sums. Returns their Func.
    std::string schedule_slices() {
        const std::string& depth = sums_.reduction[0];
        const std::string parts = source_.local(sums_.sum + "_parts"), shared = source_.local(sums_.sum + "_shared"),
                          slice = source_.rvar("slice_of_depth"), part = source_.var("part");
        source_.schedule(
            fmt::format("Func {} = {}.update().split({}, {}, {}, {}).rfactor({}, {});", parts, sums_.sum, depth, slice,
                        depth_of_slice(),
                        source_.param("steps_of_part", static_cast<int>(ceil_div(sums_.extents.depth, tile_.slices))),
                        slice, part));
        source_.schedule(fmt::format("Func {} = {}.in({});", shared, parts, sums_.sum));
        share_input(parts);
        schedule_results(slice);
        source_.schedule(
            shared,
            joined(joined({compute_at(sums_.output.func, block_), "store_in(MemoryType::GPUShared)"}, tiles()),
                   joined(joined(order({lane_, pixel_}, threads(part), false), {unroll(pixel_)}), vectors(lane_))));
        source_.schedule(fmt::format("onnx::fill_shared_vectors({});", shared));
        source_.schedule(parts, joined({compute_at(shared, thread_), in_registers, unroll(x_)}, vectors(c_)));
        return parts;
    }

    /// The threads of all slices compute results, from one or a few pixels each.
    void schedule_results(const std::string& slice) {
        Directives loops = joined(blocks(), tiles());
        const int at_once = tile_.pixels_at_once();
        std::vector<std::string> within = {lane_};
        if (at_once < tile_.pixels) {
            within.push_back(source_.var("iteration"));
            loops.push_back(fmt::format("split({0}, {1}, {0}, {2})", pixel_, within.back(), at_once));
        }
        source_.schedule(sums_.output.func,
                         joined(joined(loops, order(within, threads(pixel_), true)), result_lanes()));
        const std::string place = compute_at(sums_.output.func, within.size() > 1 ? within.back() : thread_);
        source_.schedule(sums_.sum, joined(joined({place, in_registers}, bounds()), vectors(c_)));
        source_.schedule(sums_.sum + ".update()", joined(vectors(c_), {reorder({c_, slice}), unroll(slice)}));
    }

    /// Copies the block's inputs if they are shared; sets what threads read.
    void share_input(const std::string& reader) {
        operand_ = sums_.input;
        if (!tile_.shares_input) return;
        operand_ = source_.local(sums_.input + "_of_block");
        source_.schedule(fmt::format("Func {} = {}.in({});", operand_, sums_.input, reader));
        source_.schedule(fmt::format("onnx::share_in_block({}, {}, {}, {{{}}}, {});", operand_, sums_.output.func,
                                     block_, fmt::join(thread_counts(), ", "),
                                     reads_vectors() ? static_cast<int>(std::gcd(sums_.extents.depth, vector)) : 1));
    }

    void schedule_update(const std::string& tile) const {
        std::vector<std::string> order = {c_, x_};
        Directives result;
        std::string depth = has_parts() ? depth_of_slice() : sums_.reduction[0];
        if (tile_.steps > 1) {
            const std::string step = source_.rvar("step");
            result.push_back(fmt::format("split({}, {}, {}, {})", depth, run(), step, tile_.steps));
            order.push_back(step);
            depth = run();
        }
        order.push_back(depth);
        order.insert(order.end(), sums_.reduction.begin() + 1, sums_.reduction.end());
        result.push_back(reorder(order));
        if (tile_.steps > 1) result.push_back(unroll(order[2]));
        result.push_back(unroll(x_));
        source_.schedule(tile + ".update()", joined(result, vectors(c_)));
    }
};

}  // namespace

bool schedule_gpu_sums(KernelSource& source, const GpuSums& sums) {
    const std::vector<Dim>& loops = sums.output.extents;
    const auto is_open = [](const Dim& extent) { return extent.constant().value_or(0) < 1; };
    if (loops.size() < 2 || is_open(loops[0]) || is_open(loops[1])) return false;
    Writer(source, sums).write();
    return true;
}

}  // namespace onnx2halide
