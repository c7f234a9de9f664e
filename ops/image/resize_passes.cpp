#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "ops/axis_map.h"
#include "ops/axis_operand.h"
#include "ops/image/resize.h"
#include "ops/schedule/directives.h"
#include "ops/schedule/loop_schedule.h"
#include "ops/schedule/shifted_vectors.h"

// How a Resize interpolates: along one axis after the other, so that an element costs the sum of the axes' taps instead
// of their product. Elements of a vector along a resized axis are gathered one by one, which costs ten times as much as
// a contiguous vector; so a pass along that axis is placed where the other axes are smallest.

namespace onnx2halide {

namespace {

/// A sum of more taps is a loop of the kernel, a shorter one is unrolled.
constexpr int64_t most_taps_unrolled = 64;
/// With fewer slices, threads would wait for each other: a pass is then computed as a whole.
constexpr int64_t least_slices = 16;

}  // namespace

Dim Resize::first_tap(const Axis& axis) const {
    const int64_t reach = mode_ == "linear" ? 1 : 2;
    if (!antialias_) return 1 - reach;
    const auto in = axis.input.constant(), out = axis.output.constant();
    // A scale known only at run time reaches as far as the ratio of the extents: an extra tap has weight 0.
    if (axis.scale_at || (axis.scale == 0 && !(in && out))) {
        // A rounded size may be half an element larger than the scaled input.
        const int64_t parts = ratio_policy() == "stretch" ? 1 : 2;
        return 1 -
               max(Dim(reach), ceil_div(axis.input * (reach * parts), max(axis.output * parts - (parts - 1), Dim(1))));
    }
    const double scale = axis.scale != 0 ? axis.scale : static_cast<double>(*out) / static_cast<double>(*in);
    return static_cast<int64_t>(std::floor(-static_cast<double>(reach) / std::min(scale, 1.0))) + 1;
}

Resize::Run Resize::run(const Target& target) const {
    const std::vector<Axis> axes = this->axes();
    const std::vector<Dim> extents = out(0).extents();
    Run run{0, 1, {}};
    const auto is_filled = [&] {
        return !run.extent.constant() || *run.extent.constant() >= target.lanes(out(0).element);
    };
    while (run.axes < out(0).rank() && !run.picked && (run.axes == 0 || !is_filled())) {
        const size_t axis = out(0).layout[run.axes];
        const bool is_resized =
            std::any_of(axes.begin(), axes.end(), [&](const Axis& each) { return each.axis == axis; });
        if (is_resized) run.picked = axis;
        run.extent *= extents[run.axes++];
    }
    return run;
}

std::vector<Resize::Axis> Resize::passes(const Target& target) const {
    std::vector<Axis> passes;
    for (const int number : out(0).layout) {
        for (const Axis& axis : axes()) {
            if (axis.axis == static_cast<size_t>(number)) passes.push_back(axis);
        }
    }
    const auto picked = run(target).picked;
    const auto is_late = [&](const Axis& axis) { return picked && axis.axis != *picked && axis.grows(); };
    // The outermost first, as the next pass then needs only a row of this one.
    std::reverse(passes.begin(), passes.end());
    const auto late =
        std::stable_partition(passes.begin(), passes.end(), [&](const Axis& axis) { return !is_late(axis); });
    std::reverse(late, passes.end());
    return passes;
}

std::vector<Dim> Resize::extents_after(const std::vector<Axis>& passes, size_t count) const {
    std::vector<Dim> extents = out(0).extents();
    for (size_t i = 0; i < extents.size(); ++i) {
        for (size_t j = count; j < passes.size(); ++j) {
            if (passes[j].axis == static_cast<size_t>(out(0).layout[i])) extents[i] = passes[j].input;
        }
    }
    return extents;
}

std::string Resize::filter(const std::string& distance) const {
    if (mode_ == "linear") return fmt::format("max(1 - {}, 0.0f)", distance);
    return fmt::format("onnx::cubic({}, {})", distance,
                       KernelSource::literal(node_.real("cubic_coeff_a", -0.75f), ElementType::float64));
}

Resize::Taps Resize::define_taps(KernelSource& source, const Axis& axis) const {
    const std::string at = source.vars(out(0).rank())[axis.axis], tap = source.var("t");
    const std::string place =
        fmt::format("{}({})", table(source, axis, "place", at, this->place(source, axis, at)), at);
    const Dim before = first_tap(axis);
    const std::string whole = fmt::format("cast<int>(floor({}))", place);
    const std::string first =
        fmt::format("{}({})", table(source, axis, "first", at, shifted(source, whole, before)), at);
    std::string distance = fmt::format("abs({} + {} - {})", first, tap, place);
    if (antialias_ && !before.is(mode_ == "linear" ? 0 : -1))
        distance += fmt::format(" * min({}, 1.0f)", scale(source, axis));
    std::string weight = filter(distance);
    if (exclude_outside_)
        weight = fmt::format("select({0} + {1} < 0 || {0} + {1} >= {2}, Expr(0.0), {3})", first, tap,
                             source.dim(axis.input), weight);
    const std::string arguments = fmt::format("{}, {}", at, tap);
    if (exclude_outside_ || antialias_) {
        const std::string raw = table(source, axis, "weight_of_tap", arguments, weight);
        const std::string all = source.rdom("k", {taps(axis)});
        weight = fmt::format("{0}({2}, {1}) / sum({0}({2}, {3}))", raw, tap, at, KernelSource::axis(all, 0));
    }
    const ElementType type = is_float(out(0).element) ? out(0).element : ElementType::float32;
    weight = fmt::format("cast<{}>({})", KernelSource::compute_type(type), weight);
    const std::string element = fmt::format("clamp({} + {}, 0, {})", first, tap, source.dim(axis.input - 1));
    return {table(source, axis, "tap", arguments, element), table(source, axis, "weight", arguments, weight), at};
}

Resize::Taps Resize::spread(KernelSource& source, const Axis& axis, const Taps& taps) const {
    const Run run = this->run(source.target());
    if (run.picked != axis.axis || run.axes == 1) return taps;
    const Coordinates vars = source.vars(out(0).rank());
    const std::vector<Dim> extents = out(0).extents();
    std::string place;
    Dim inside = 1;
    for (size_t i = 0; i < run.axes; ++i) {
        const std::string& var = vars[out(0).layout[i]];
        place += i == 0 ? var : fmt::format(" + {} * {}", var, source.dim(inside));
        if (i + 1 < run.axes) inside *= extents[i];
    }
    const std::string i = source.var("i"), tap = source.var("t"), arguments = fmt::format("{}, {}", i, tap);
    const auto spread = [&](const char* role, const std::string& func) {
        return table(source, axis, role, arguments, fmt::format("{}({} / {}, {})", func, i, source.dim(inside), tap));
    };
    return {spread("taps_of_run", taps.place), spread("weights_of_run", taps.weight), place};
}

std::string Resize::interpolated(KernelSource& source, const Axis& axis, const std::string& previous) const {
    const Taps taps = spread(source, axis, define_taps(source, axis));
    Coordinates from = source.vars(out(0).rank());
    const auto term = [&](const std::string& tap) {
        from[axis.axis] = fmt::format("{}({}, {})", taps.place, taps.at, tap);
        std::string element =
            previous.empty() ? source.read(input(0), from) : KernelSource::call(previous, out(0), from);
        if (previous.empty() && !is_float(out(0).element)) element = fmt::format("cast<float>({})", element);
        return fmt::format("{}({}, {}) * {}", taps.weight, taps.at, tap, element);
    };
    const auto count = this->taps(axis).constant();
    if (!count || *count > most_taps_unrolled || source.target().is_gpu()) {
        const std::string domain = source.rdom("k", {this->taps(axis)});
        return fmt::format("sum({}, {})", domain, term(KernelSource::axis(domain, 0)));
    }
    const std::string sum = source.local("along_" + source.vars(out(0).rank())[axis.axis]), tap = source.local("tap");
    source.line(fmt::format("Expr {} = {};", sum, term("0")));
    source.line(fmt::format("for (int {0} = 1; {0} < {1}; ++{0}) {2} += {3};", tap, *count, sum, term(tap)));
    return sum;
}

void Resize::interpolate(KernelSource& source) const {
    const std::vector<Axis> passes = this->passes(source.target());
    const Coordinates at = source.vars(out(0).rank());
    std::string previous;
    for (size_t i = 0; i + 1 < passes.size(); ++i) {
        const std::string result = interpolated(source, passes[i], previous);
        previous = source.func(fmt::format("{}_along_{}", output(0)->name, at[passes[i].axis]));
        source.keep(output(0), fmt::format("pass {}", i), previous);
        source.line(fmt::format("{} = {};", KernelSource::call(previous, out(0), at), result));
    }
    const std::string result = interpolated(source, passes.back(), previous), outside = this->outside(source, passes);
    const std::string extrapolation = float_text(node_.real("extrapolation_value", 0.0f), false);
    source.define(
        output(0), at,
        result_of(outside.empty() ? result : fmt::format("select({}, Expr({}), {})", outside, extrapolation, result)));
}

namespace {

/// Fuses a run of the innermost loops.
Loops fuse_run(KernelSource& source, Loops loops, size_t axes) {
    const auto end = static_cast<ptrdiff_t>(axes);
    const Dim extent = product({loops.extents.begin(), loops.extents.begin() + end});
    Directives directives;
    const std::string run = fuse_all(source, {loops.vars.begin(), loops.vars.begin() + end}, "run", directives);
    if (!directives.empty()) source.schedule(loops.func, directives);
    loops.vars.erase(loops.vars.begin(), loops.vars.begin() + end - 1);
    loops.extents.erase(loops.extents.begin(), loops.extents.begin() + end - 1);
    loops.vars[0] = run;
    loops.extents[0] = extent;
    return loops;
}

/// The loop, outside of the `count` innermost ones, whose iterations are slices of a Func that need only a slice of the
/// Func's input; if the Func is computed as a whole, tasks are some of its iterations. Empty if there are too few.
std::string slice_by(KernelSource& source, const Loops& loops, size_t count, bool is_whole) {
    const auto first = static_cast<ptrdiff_t>(count);
    const Dim slices = product({loops.extents.begin() + first, loops.extents.end()});
    const Loops outer = nontrivial_loops({loops.func,
                                          {loops.vars.begin() + first, loops.vars.end()},
                                          {loops.extents.begin() + first, loops.extents.end()},
                                          loops.element});
    if (outer.vars.empty() || slices.constant().value_or(least_slices) < least_slices) return "";
    Loops inside = loops;
    inside.vars.resize(count);
    inside.extents.resize(count);
    if (!product({outer.extents.begin(), outer.extents.end() - 1}).constant()) {
        // From a fused loop over all slices Halide cannot recover the slice, and stores all up to it.
        if (is_whole) {
            const std::string task = source.var("task");
            const std::string iterations = iterations_of_a_task(source, product(inside.extents), outer.extents[0]);
            Directives tasks = {guarded_split(outer.vars[0], task, iterations), parallel(task)};
            for (size_t i = 1; i < outer.vars.size(); ++i) tasks.push_back(parallel(outer.vars[i]));
            source.schedule(loops.func, tasks);
        }
        return outer.vars[0];
    }
    Directives directives;
    inside.vars.push_back(fuse_all(source, outer.vars, "slice", directives));
    inside.extents.push_back(slices);
    if (!directives.empty()) source.schedule(loops.func, directives);
    if (is_whole) parallelise(source, inside, count);
    return inside.vars.back();
}

}  // namespace

void Resize::schedule_passes(KernelSource& source) const {
    const std::vector<Axis> passes = this->passes(source.target());
    const size_t run_axes = run(source.target()).axes;
    if (passes.size() > 1)
        source.schedule(
            "// A pass is computed slice by slice, where the next one needs it, unless there are few slices.");
    bool is_whole = true;
    for (size_t i = passes.size(); i-- > 0;) {
        Loops loops = source.output_loops();
        if (i + 1 < passes.size()) {
            loops.func = source.kept(output(0), fmt::format("pass {}", i));
            loops.extents = extents_after(passes, i + 1);
        }
        loops = fuse_run(source, loops, run_axes);
        const Layout& layout = out(0).layout;
        const auto axis = static_cast<size_t>(std::find(layout.begin(), layout.end(), passes[i].axis) - layout.begin());
        const size_t inside = std::max(axis + 2, run_axes + 1) - run_axes;  // the loops within a slice
        const std::string slice = i > 0 ? slice_by(source, loops, inside, is_whole) : "";
        if (is_whole && slice.empty()) parallelise(source, loops);
        vectorise_shifted(source, loops);
        is_whole = slice.empty();
        if (i == 0) continue;
        Directives place = {is_whole ? "compute_root()" : compute_at(loops.func, slice)};
        // One allocation for the slices of a task.
        if (!is_whole && !product(extents_after(passes, i)).constant()) place.push_back("store_in(MemoryType::Stack)");
        source.schedule(source.kept(output(0), fmt::format("pass {}", i - 1)), place);
    }
}

Dim Resize::flops() const {
    if (is_nearest()) return out(0).elements();
    const std::vector<Axis> passes = this->passes(Target());
    Dim flops = 0;
    for (size_t i = 0; i < passes.size(); ++i) flops += product(extents_after(passes, i + 1)) * taps(passes[i]) * 2;
    return flops;
}

}  // namespace onnx2halide
