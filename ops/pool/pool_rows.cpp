#include <algorithm>

#include <fmt/format.h>

#include "ops/pool/pool.h"
#include "ops/reduce/reduction.h"
#include "ops/schedule/directives.h"
#include "ops/schedule/loop_schedule.h"
#include "ops/schedule/row_schedule.h"
#include "ops/schedule/shifted_vectors.h"

namespace onnx2halide {

namespace {

// Roles under which the algorithm stores names for the schedule, of output 0.
constexpr const char *rows_role = "rows", *across_role = "across";

}  // namespace

bool WindowPool::has_rows() const {
    // Shorter rows fill no vectors: channels do, which is worth changing the layout and back.
    constexpr int64_t least = 8, most_taps = 16;
    const Window window = this->window();
    const bool always_spans =
        std::all_of(window.begin(), window.end(), [](const WindowAxis& axis) { return axis.always_spans_input(); });
    return in(0).is_row_major() && !is_narrow_float(in(0).element) && always_spans &&
           window.back().kernel <= most_taps && out(0).shape.back().constant().value_or(least) >= least;
}

bool WindowPool::pools_rows(const KernelSource& source) const {
    return has_rows() && out(0).is_row_major() && !source.target().is_gpu() && source.output_count() == 1;
}

std::string WindowPool::element_of_row(KernelSource& source, const Coordinates& taps, const std::string& column) const {
    Window window = this->window();
    Coordinates at = source.vars(in(0).rank());
    at.back() = column;
    for (size_t i = 0; i + 1 < window.size(); ++i) {
        at[i + 2] = window[i].tap(source, at[i + 2], taps[window.size() - 2 - i]);
        // The nearest element of the input is in the window, too, unless dilation skips some.
        if (formula().starts_with_first && window[i].dilation == 1 && window[i].reaches_outside())
            at[i + 2] = held_inside(source, window[i], at[i + 2]);
    }
    const Dim width = window.back().input;
    window.back() = {};
    window.back().input = window.back().output = width;
    return read_padded(source, input(0), window, at, neutral());
}

/// Reduces along all axes but the last, for whole rows of the padded input, then along the last.
void WindowPool::define_rows(KernelSource& source) const {
    const WindowAxis columns = window().back();
    const Coordinates at = source.vars(out(0).rank());
    const bool is_max = formula().starts_with_first;
    const std::string nothing = is_max ? lowest_literal(in(0).element) : neutral();
    const auto call = [&](const std::string& func, const std::string& column) {
        Coordinates place = at;
        place.back() = column;
        return KernelSource::call(func, out(0), place);
    };

    const std::string rows = source.func(output(0)->name + "_rows");
    std::vector<Dim> extents = {columns.input};
    for (size_t i = window().size() - 1; i-- > 0;) extents.push_back(window()[i].kernel);
    const std::string across = source.rdom("across", extents), column = KernelSource::axis(across, 0);
    Coordinates taps;
    for (size_t i = 1; i < extents.size(); ++i) taps.push_back(KernelSource::axis(across, i));
    source.line(fmt::format("{} = {};", call(rows, at.back()), nothing));
    source.line(
        fmt::format("{} = {};", call(rows, column),
                    fill_in(formula().combine, call(rows, column), term(element_of_row(source, taps, column)), "")));

    std::string along = call(rows, columns.tap(source, at.back(), "0"));
    for (int64_t tap = 1; tap < columns.kernel; ++tap) {
        const std::string next = call(rows, columns.tap(source, at.back(), std::to_string(tap)));
        along = is_max ? fmt::format("max({}, {})", along, next) : fmt::format("{} + {}", along, next);
    }
    source.define(output(0), at, fill_in(formula().finish, fmt::format("({})", along), "", count(source)));
    source.keep(output(0), rows_role, rows);
    source.keep(output(0), across_role, across);
}

/// Computes several rows of windows, as wide as the input's, before their results: what has just been stored in partial
/// vectors is not loaded at once.
void WindowPool::schedule_rows(KernelSource& source) const {
    constexpr int64_t most_rows = 8, elements = 1 << 13;
    const int64_t rows_at_once = std::clamp<int64_t>(
        elements / std::max<int64_t>(1, window().back().input.constant().value_or(1)), 1, most_rows);
    Loops loops = source.output_loops();
    const Dim& count = loops.extents[1];
    const std::string &x = loops.vars[0], y = loops.vars[1], tile = source.var(y + "_tile"),
                      &rows = source.kept(output(0), rows_role);
    const auto height = static_cast<int>(std::min(rows_at_once, count.constant().value_or(rows_at_once)));
    source.schedule("// Several rows of windows, as wide as the input's, stay in the nearest cache.");
    source.schedule(loops.func, {fmt::format("split({0}, {1}, {0}, {2}, {3})", y, tile, source.param("rows", height),
                                             tail_strategy(count, height, true))});
    source.schedule(rows, {compute_at(loops.func, tile), fmt::format("vectorize({}, {}, TailStrategy::RoundUp)", x,
                                                                     source.target().lanes(loops.element))});
    schedule_across(source, rows + ".update()");
    const Loops whole = loops;
    loops.vars[1] = tile;
    loops.extents[1] = ceil_div(count, height);
    if (is_parallel_work(flops())) parallelise(source, loops, 2);
    vectorise_shifted(source, whole);
}

/// Schedules all taps for a vector of a row.
void WindowPool::schedule_across(KernelSource& source, const std::string& update) const {
    const Window window = this->window();
    const std::string &across = source.kept(output(0), across_role), column = KernelSource::axis(across, 0),
                      columns = source.rvar("columns");
    const int width = filled(window.back().input, source.target().lanes(in(0).element));
    Directives order = {column}, unrolled;
    int64_t taps = 1;
    for (size_t i = 1; i < window.size(); ++i) {
        const std::string tap = KernelSource::axis(across, i);
        taps *= window[window.size() - 1 - i].kernel;
        order.push_back(tap);
        if (taps <= unrolled_taps) unrolled.push_back(unroll(tap));
    }
    order.push_back(columns);
    source.schedule(
        update,
        joined({guarded_split(column, columns, std::to_string(width)), reorder(order), vectorize(column)}, unrolled));
}

}  // namespace onnx2halide
