#include "ops/conv/winograd_inputs_schedule.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ops/conv/conv_winograd.h"
#include "ops/node_generator.h"
#include "ops/schedule/loop_schedule.h"

namespace onnx2halide {

using namespace tile_axes;

namespace {

class InputsWriter {
public:
    InputsWriter(const WinogradTiling& tiling, const std::string& task)
        : tiling_(tiling), task_(task), source_(tiling.source), loops_(tiling.loops), walk_(tiling.walk),
          storage_(tiling.storage) {}

    void write() {
        const InputLoops loops = input_loops();
        const std::string tiles = tiling_.func(WinogradConv::tiles_role);
        Directives directives = transform(loops, tiling_.at(task_), tiling_.places);
        // What is streamed from afar is read place by place.
        if (!storage_.has_distant_inputs()) append(directives, tiling_.order_of_storage(loops.parts));
        const Directives bounds = bound_planes(), spread = spread_channels();
        append(directives, bounds);
        append(directives, spread);
        if (storage_.moves_inputs_apart()) append(directives, tiling_.spread_tiles(storage_.further_tiles_of_inputs()));
        Directives at_inputs = {tiling_.at(task_)};
        // If the products with all channels' weights follow, copying and transforming some tiles' inputs is a task of
        // its own.
        if (loops_.is_open() || (walk_.channels_outermost && walk_.parallel)) {
            const std::string to = source_.var("to");
            directives.push_back(split(tiling_.t, to, tiling_.tiles, "GuardWithIf"));
            directives.push_back(keep_whole(to));
            directives.push_back(parallel(to));
            source_.schedule(whole_comment);
            // Neighbouring tiles that are interleaved share nearly all inputs of a block.
            if (!tiling_.is_dilated() && !loops_.is_open()) at_inputs = {compute_at(tiles, to), bound_rows()};
        }
        if (!spread.empty())
            source_.schedule("// Channels end with an unused cache line: what belongs to a tile would share sets.");
        if (storage_.moves_inputs_apart()) source_.schedule(unused_tile_comment);
        source_.schedule(tiles, directives);
        if (tiling_.places.size() == 2)
            source_.schedule(
                tiling_.func(WinogradConv::across_role),
                transform(loops, compute_at(tiles, loops.channels), {tiling_.places[0], tiling_.outputs[1]}));
        source_.schedule("// A padded copy, from which tiles are read without conditions.");
        if (at_inputs.size() > 1 || !bounds.empty()) source_.schedule(bounds_comment);
        directives = joined({at_inputs, bound_channels(), bounds, spread});
        // The pixels of a single channel are adjacent.
        directives.push_back(loops_.places_are_lanes()
                                 ? vectorise_inputs(tiling_.output.vars[1], INT64_MAX, "GuardWithIf")
                                 : vectorise_inputs(tiling_.c, loops_.transformed_inputs(source_.target())));
        source_.schedule(tiling_.func(WinogradConv::input_role), directives);
    }

private:
    const WinogradTiling& tiling_;
    const std::string& task_;  // the loop of the output at which inputs are transformed
    KernelSource& source_;
    const WinogradLoops& loops_;
    const WinogradWalk& walk_;
    const WinogradStorage& storage_;

    /// Storage for an unused cache line after the channels, if that moves a tile's elements apart.
    Directives spread_channels() const {
        const auto channels = storage_.aligned_channels();
        return channels ? Directives{align_storage(tiling_.c, std::to_string(*channels))} : Directives{};
    }

    /// The loops of the inputs' transforms other than those over a tile's places, and how they are vectorised.
    struct InputLoops {
        std::string channels;            // or channels and phases
        std::vector<std::string> parts;  // of the kernel, outside of a tile
        Directives bounds;               // bounds of loops that vectors need, and fusions of such loops
        std::string vector;              // the directive that vectorises
    };

    /// Few channels have a known extent, of which they fill a vector.
    Directives bound_channels() const {
        const Target& target = source_.target();
        const auto natural = target.lanes(loops_.element);
        const auto inputs = loops_.transformed_inputs(target);
        const bool are_few = inputs <= natural && natural % inputs == 0;
        return are_few ? Directives{fmt::format("bound({}, 0, {})", tiling_.c, inputs)} : Directives{};
    }

    std::string vectorise_inputs(const std::string& loop, int64_t extent, std::string_view tail = "ShiftInwards") {
        const int64_t natural = source_.target().lanes(loops_.element);
        return fmt::format("vectorize({}, {}, TailStrategy::{})", loop,
                           source_.lanes(loops_.element, static_cast<int>(std::min<int64_t>(extent, natural))), tail);
    }

    InputLoops input_loops() {
        InputLoops loops{tiling_.c, {}, bound_channels(), ""};
        if (loops_.kernel[columns].tiled_parts() > 1)
            loops.parts.push_back(source_.var(kernel_part_var(tiling_.axes.front().var)));
        if (loops_.places_are_lanes()) {
            const auto axis = std::find_if(tiling_.axes.begin(), tiling_.axes.end(),
                                           [&](const WinogradTiling::Axis& a) { return tiling_.is_transformed(a); });
            const std::string &lane = tiling_.places.front(), lanes = std::to_string(walk_.places[axis->number]);
            loops.bounds.push_back(fmt::format("bound({}, 0, {})", lane, lanes));
            loops.bounds.push_back(fmt::format("reorder_storage({})",
                                               fmt::join(joined({{lane, tiling_.c}, loops.parts, {tiling_.t}}), ", ")));
            loops.vector = fmt::format("vectorize({}, {})", lane, lanes);
            return loops;
        }
        const int phases = loops_.phases_in_vector(source_.target());
        if (phases > 1) {
            const std::string part = loops.parts.front();
            loops.channels = source_.var("c_part");
            loops.bounds.push_back(fmt::format("bound({}, 0, {})", part, phases));
            loops.bounds.push_back(fmt::format("fuse({}, {}, {})", tiling_.c, part, loops.channels));
            loops.parts.clear();
        }
        loops.vector = vectorise_inputs(loops.channels, loops_.transformed_inputs(source_.target()) * phases);
        return loops;
    }

    /// Schedules a transform with these loops over places, innermost first.
    Directives transform(const InputLoops& loops, const std::string& at, const Coordinates& places) const {
        Directives directives = joined({at}, loops.bounds);
        directives.push_back(reorder_all({places, {loops.channels}, loops.parts, {tiling_.t}}));
        directives.push_back(loops.vector);
        append(directives, unroll_all({places.begin() + (loops_.places_are_lanes() ? 1 : 0), places.end()}));
        return directives;
    }

    /// The most rows of the input under so many consecutive tiles, of which Halide sees no constant number.
    std::string bound_rows() const {
        const KernelAxis& kernel = loops_.kernel[rows];
        const int64_t across = loops_.tiles_in_block_row();
        const std::string further = across == 1   ? fmt::format("({} - 1)", tiling_.tiles)
                                    : across == 2 ? fmt::format("{} / 2", tiling_.tiles)
                                                  : fmt::format("({} + {}) / {}", tiling_.tiles, across - 2, across);
        return bound_storage(tiling_.axes.back().var,
                             fmt::format("{} * {} + {}", further, kernel.outputs() * kernel.stride, kernel.inputs()));
    }

    /// Halide sees no constant number of planes where taps outside of a volume are left out; runs would allocate them.
    Directives bound_planes() const {
        return loops_.plane_spans ? bound_storage(tiling_.planes, *loops_.plane_spans) : Directives{};
    }
};

}  // namespace

void schedule_winograd_inputs(const WinogradTiling& tiling, const std::string& task) {
    InputsWriter(tiling, task).write();
}

}  // namespace onnx2halide
