#include "ops/gpu_sums.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ops/cycles.h"
#include "ops/directives.h"
#include "ops/loop_schedule.h"

namespace onnx2halide {

namespace {

/// The extents, with those of the results. A loop of which only a run knows how often it turns counts as one further
/// out.
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
    std::string y_, operand_;  // what threads read of the input: it, or the block's copy

    /// Whether threads read several terms' inputs at once, which is a turn of the loop `run`.
    bool reads_runs() const { return sums_.extents.is_run && tile_.steps > 1; }

    void write_comment() const {
        const std::string slices = has_parts() ? fmt::format(", in {} parts that the block adds", tile_.slices) : "";
        source_.schedule(fmt::format("// A thread sums {} x {} results in registers{}; a block has {} threads.",
                                     tile_.lanes, tile_.pixels, slices, tile_.threads()));
    }

    /// Whether they are a vector: Halide's CUDA stores vectors of halves wrongly.
    bool reads_vectors() const { return sums_.extents.is_run && sums_.extents.input_bytes == 4; }

    std::string depth_of_slice() const { return source_.rvar("depth_of_slice"); }
    std::string run() const { return source_.rvar("run"); }
    std::string columns() const { return source_.param("columns", tile_.columns()); }
    std::string pixels() const { return source_.param("pixels", tile_.pixels); }

    /// The output's loops in blocks of results, whose own loops keep their names.
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

    /// A block's loops as those of its threads, which have tiles of columns and rows. Parts take a dimension of the
    /// block, for which these two share one.
    Directives tiles() const {
        Directives result = {fmt::format("split({0}, {0}, {1}, {2})", c_, lane_, tile_.lanes),
                             fmt::format("split({0}, {0}, {1}, {2})", x_, pixel_, pixels())};
        if (has_parts()) result.push_back(fmt::format("fuse({}, {}, {})", c_, x_, thread_));
        return result;
    }

    /// Of nested fused loops Halide does not always see how few elements a thread has: those down and those over parts
    /// are dimensions of the block.
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

    /// Places of loops within a thread and of the loops over threads, of the output in blocks.
    Directives order(std::vector<std::string> within, const std::vector<std::string>& threads, bool has_blocks) const {
        within.insert(within.end(), threads.begin(), threads.end());
        if (has_blocks) within.insert(within.end(), {block_, c_block_});
        Directives result = {reorder(within)};
        // CUDA has 65535 blocks along all dimensions but the first.
        if (has_blocks) result.push_back(fmt::format("gpu_blocks({}, {})", block_, c_block_));
        result.push_back(fmt::format("gpu_threads({})", fmt::join(threads, ", ")));
        return result;
    }

    /// Of 16-bit floats OpenCL's kernels hold the bits (see narrow_floats.h), which it converts one by one.
    Directives vectors(const std::string& lane) const {
        const auto is_narrow = [](const Value* value) { return is_narrow_float(value->checked_type().element); };
        const bool are_bits =
            source_.target().gpu == Target::Gpu::opencl && std::ranges::any_of(source_.inputs(), is_narrow);
        if (tile_.lanes == 1) return {};
        return {are_bits ? unroll(lane) : fmt::format("vectorize({})", lane)};
    }

    /// The lanes of results.
    Directives result_lanes() const { return has_gpu_vectors(source_) ? vectors(lane_) : Directives{unroll(lane_)}; }

    /// Each thread has whole sums, of which it makes its results. Returns the Func of the sums.
    std::string schedule_whole() {
        const Directives places = order({lane_, pixel_}, threads(""), true);
        source_.schedule(sums_.output.func,
                         joined(joined(blocks(), tiles()), joined(joined(places, {unroll(pixel_)}), result_lanes())));
        share_input(sums_.sum);
        source_.schedule(sums_.sum, joined({compute_at(sums_.output.func, c_), in_registers, unroll(x_)}, vectors(c_)));
        return sums_.sum;
    }

    /// Each thread has parts of sums. Returns the Func of these.
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

    /// The threads of all parts make results, of a pixel or a few each.
    void schedule_results(const std::string& slice) {
        Directives loops = joined(blocks(), tiles());
        const int at_once = tile_.pixels_at_once();
        std::vector<std::string> within = {lane_};
        if (at_once < tile_.pixels) {
            within.push_back(source_.var("turn"));
            loops.push_back(fmt::format("split({0}, {1}, {0}, {2})", pixel_, within.back(), at_once));
        }
        source_.schedule(sums_.output.func,
                         joined(joined(loops, order(within, threads(pixel_), true)), result_lanes()));
        const std::string place = compute_at(sums_.output.func, within.size() > 1 ? within.back() : thread_);
        source_.schedule(sums_.sum, joined({place, in_registers}, vectors(c_)));
        source_.schedule(sums_.sum + ".update()", joined(vectors(c_), {reorder({c_, slice}), unroll(slice)}));
    }

    /// Copies the block's inputs where they are shared; notes what threads read.
    void share_input(const std::string& reader) {
        operand_ = sums_.input;
        if (!tile_.shares_input) return;
        operand_ = source_.local(sums_.input + "_of_block");
        source_.schedule(fmt::format("Func {} = {}.in({});", operand_, sums_.input, reader));
        source_.schedule(fmt::format("onnx::share_in_block({}, {}, {}, {{{}}}, {});", operand_, sums_.output.func, block_,
                                     fmt::join(thread_counts(), ", "),
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
