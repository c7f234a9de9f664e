#include "ops/conv/conv_input_schedule.h"

#include <fmt/format.h>

#include "ops/conv/conv_sums_schedule.h"
#include "ops/conv/conv_tile_loops.h"
#include "ops/schedule/directives.h"

namespace onnx2halide {

namespace {

class InputWriter {
public:
    InputWriter(KernelSource& source, const DirectConv& conv, const InputPlace& place)
        : source_(source), conv_(conv), place_(place), tile_(source, conv) {}

    void write() {
        source_.schedule("// The rows that a row is the first to read of its input are computed before it: few are "
                         "stored at a time.");
        tile_.explain();
        const std::string &c = tile_.channels(), &x = tile_.columns(), channels = source_.var(c + "o"),
                          columns = source_.var(x + "o");
        std::vector<std::string> in_tile = tile_.in_tile(), order = in_tile;
        append(order, {columns, tile_.rows(), channels});
        Directives directives = {fmt::format("store_at({}, {})", place_.reader, place_.task),
                                 compute_at(place_.reader, place_.row),
                                 fmt::format("bound({}, 0, {})", x, conv_.loops.width)};
        append(directives, storage_of_rows());
        append(directives, {tile_.rounds_channels_up() ? guarded_split(c, channels, tile_.walked_channels())
                                                       : shifted_split(c, channels, tile_.walked_channels()),
                            shifted_split(x, columns, tile_.walked_pixels()), reorder(order)});
        // See the schedule of a convolution that is no input.
        if (tile_.lacks_registers()) in_tile.resize(1);
        source_.schedule(conv_.output.func, joined(directives, tile_.vectorised(in_tile)));
        schedule_conv_sums(source_, tile_, compute_at(conv_.output.func, columns));
        schedule_copy_of_task(source_, conv_, place_);
    }

private:
    KernelSource& source_;
    const DirectConv& conv_;
    const InputPlace& place_;
    ConvTileLoops tile_;

    /// Rows take the place of those that are no longer read.
    Directives storage_of_rows() const {
        const std::string &y = tile_.rows(), rows = std::to_string(place_.stored_rows);
        Directives directives = {bound_storage(y, rows)};
        if (place_.stored_rows < conv_.loops.height) directives.push_back(fmt::format("fold_storage({}, {})", y, rows));
        return directives;
    }
};

}  // namespace

std::string rows_of_strip(KernelSource& source, const ImageOfTasks& image, const std::string& most_rows) {
    const int least = choose_strips(image, source.target()).least_rows;
    return fmt::format("onnx::rows_of_strip({}, {}, {}, {}, {})", image.rows, least, most_rows, source.threads(),
                       image.tasks_across());
}

std::string most_rows_of_strip(KernelSource& source, const ImageOfTasks& image) {
    const int most = choose_strips(image, source.target()).most_rows;
    return most < image.rows ? held(source.param("rows", most), image.rows) : std::to_string(image.rows);
}

std::string input_rows(const ImageOfTasks& image, const std::string& most_rows) {
    return most_rows.empty() ? std::to_string(image.input.rows)
                             : rows_under(most_rows, image.row_stride, image.halo_rows);
}

void schedule_computed_input(KernelSource& source, const DirectConv& conv, const InputPlace& place) {
    InputWriter(source, conv, place).write();
}

void schedule_copy_of_task(KernelSource& source, const DirectConv& conv, const InputPlace& place) {
    if (conv.input.vars.empty()) return;
    const std::string rows =
        rows_under(fmt::format("({})", place.rows_of_task), conv.loops.row_stride, conv.loops.halo_rows);
    source.schedule("// A padded copy of what a task reads, from which taps are read without conditions.");
    source.schedule(conv.input.func, {compute_at(place.reader, place.task), conv.vectorised_input(source),
                                      bound_storage(conv.output.vars.at(2), rows)});
}

}  // namespace onnx2halide
