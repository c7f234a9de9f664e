#include "ops/node_generator.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "ops/directives.h"
#include "ops/names.h"

namespace onnx2halide {

namespace {

void schedule_on_gpu(KernelSource& source, const Loops& loops) {
    if (loops.vars.empty()) {
        source.schedule(fmt::format("{}.gpu_single_thread();", loops.func));
        return;
    }
    // gpu_blocks takes three loops at most, so the loops beyond the innermost become one.
    const std::string thread = source.var("thread"), block = source.var("block");
    std::string outer;
    for (size_t i = 1; i < loops.vars.size(); ++i) {
        if (outer.empty()) {
            outer = loops.vars[i];
            continue;
        }
        const std::string fused = source.var("fused");
        source.schedule(fmt::format("{}.fuse({}, {}, {});", loops.func, outer, loops.vars[i], fused));
        outer = fused;
    }
    if (outer.empty()) {
        source.schedule("// A block's threads read elements that follow each other.");
        source.schedule(fmt::format("{}.gpu_tile({}, {}, {}, {}, TailStrategy::GuardWithIf);", loops.func,
                                    loops.vars[0], block, thread, source.param("threads", 64)));
    } else {
        const std::string outer_block = source.var("outer_block"), outer_thread = source.var("outer_thread");
        const std::string run_threads = source.param("run_threads", 16), runs = source.param("runs", 4);
        source.schedule("// A block's threads are the elements of a few short runs that follow each other in memory.");
        source.schedule(fmt::format("{}.gpu_tile({}, {}, {}, {}, {}, {}, {}, {}, TailStrategy::GuardWithIf);",
                                    loops.func, loops.vars[0], outer, block, outer_block, thread, outer_thread,
                                    run_threads, runs));
    }
}

}  // namespace

Loops turning_loops(const Loops& loops) {
    Loops turning{loops.func, {}, {}, loops.element};
    for (size_t i = 0; i < loops.vars.size(); ++i) {
        if (loops.extents[i].is(1)) continue;
        turning.vars.push_back(loops.vars[i]);
        turning.extents.push_back(loops.extents[i]);
    }
    return turning;
}

bool is_parallel_work(const Dim& elements) {
    return !elements.constant() || *elements.constant() >= 2 * elements_of_a_task;
}

void parallelise(KernelSource& source, const Loops& loops, size_t tile) {
    if (!is_parallel_work(product(loops.extents))) return;
    const Loops turning = turning_loops(loops);
    size_t turning_in_tile = 0;
    for (size_t i = 0; i < std::min(tile, loops.extents.size()); ++i) turning_in_tile += loops.extents[i].is(1) ? 0 : 1;
    tile = std::max<size_t>(1, turning_in_tile);
    if (turning.vars.size() > tile) source.schedule(loops.func, parallel_outermost(source, turning, tile));
}

std::string fuse_all(KernelSource& source, const std::vector<std::string>& loops, const std::string& role,
                     std::vector<std::string>& directives) {
    std::string fused = loops.at(0);
    for (size_t i = 1; i < loops.size(); ++i) {
        const std::string both = source.var(role);
        directives.push_back(fmt::format("fuse({}, {}, {})", fused, loops[i], both));
        fused = both;
    }
    return fused;
}

/// Whether a loop is a reduction's, r.x, which Halide fuses with no other and splits for no tasks.
static bool is_of_reduction(const std::string& loop) { return loop.find_first_of(".[") != std::string::npos; }

std::string turns_of_a_task(KernelSource& source, const Dim& elements, const Dim& count) {
    if (const auto length = elements.constant())
        return source.param("rows",
                            static_cast<int>(elements_of_a_task / std::clamp<int64_t>(*length, 1, elements_of_a_task)));
    return fmt::format("rows_of_task({}, {}, {}, 1)", source.dim(count), source.dim(elements),
                       source.param("elements", elements_of_a_task));
}

std::vector<std::string> parallel_outermost(KernelSource& source, const Loops& turning, size_t tile) {
    std::vector<std::string> directives;
    std::vector<Dim> inside(turning.extents.begin(), turning.extents.end() - 1);
    std::string loop = turning.vars.back();
    const bool may_turn_once = !turning.extents.back().constant();
    if (may_turn_once && turning.vars.size() > tile + 1 && !is_of_reduction(loop) &&
        !is_of_reduction(turning.vars.end()[-2])) {
        loop = fuse_all(source, {turning.vars.end()[-2], loop}, "both", directives);
        inside.pop_back();
    }
    const auto elements = product(inside).constant();
    const bool is_small = elements && *elements<elements_of_a_task&& * elements> 0;
    if (is_small && !is_of_reduction(loop)) {
        const std::string task = source.var("task");
        const int64_t count = ceil_div(elements_of_a_task, *elements);
        directives.push_back(guarded_split(loop, task, source.param(loop + "_of_task", static_cast<int>(count))));
        loop = task;
    }
    directives.push_back(fmt::format("parallel({})", loop));
    return directives;
}

/// The lanes of vectors along a loop that `lanes` do not fill to the end. In the last one elements that lie scattered
/// are read one by one, with a branch each: of a short vector these are few, and the others are read as fast.
static int lanes_with_rest(const KernelSource& source, const std::string& loop, int lanes) {
    constexpr int short_vector = 4;
    return source.reads_scattered_along(loop) ? std::min(lanes, short_vector) : lanes;
}

/// The lanes of vectors along a loop that is shorter than those of the machine: a power of two; 1 for none.
static int lanes_of_short_loop(const KernelSource& source, const std::string& loop, int64_t extent) {
    constexpr int64_t least = 4;
    const int64_t whole = extent & -extent, most = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(extent)));
    if (whole == extent) return static_cast<int>(whole);
    // Without masks the rest, which fills no vector, is computed element by element.
    const auto cycles = [&](int64_t lanes) {
        return extent / lanes + (source.target().has_masks ? 1 : extent % lanes);
    };
    int64_t best = whole;
    for (int64_t lanes = lanes_with_rest(source, loop, static_cast<int>(most)); lanes > whole; lanes /= 2) {
        if (cycles(lanes) < cycles(best)) best = lanes;
    }
    return best < least ? 1 : static_cast<int>(best);
}

static std::string short_vectors(const std::string& loop, int64_t extent, int lanes) {
    if (lanes == extent) return fmt::format("vectorize({})", loop);
    const char* tail = extent % lanes == 0 ? "" : ", TailStrategy::GuardWithIf";
    return fmt::format("vectorize({}, {}{})", loop, lanes, tail);
}

void vectorise(KernelSource& source, const Loops& loops, bool is_update) {
    int lanes = source.target().lanes(loops.element);
    if (loops.vars.empty() || lanes == 1) return;
    const Dim& extent = loops.extents[0];
    const auto innermost = extent.constant();
    if (innermost && *innermost < lanes) {
        if (const int width = lanes_of_short_loop(source, loops.vars[0], *innermost); width > 1)
            source.schedule(loops.func, {short_vectors(loops.vars[0], *innermost, width)});
        return;
    }
    if (!floor_mod(extent, lanes).is(0)) lanes = lanes_with_rest(source, loops.vars[0], lanes);
    const std::string tail = is_update ? "TailStrategy::GuardWithIf" : tail_strategy(extent, lanes, false);
    source.schedule(
        fmt::format("{}.vectorize({}, {}, {});", loops.func, loops.vars[0], source.lanes(loops.element, lanes), tail));
}

Loops split_blocks(KernelSource& source, const Loops& loops, int64_t size) {
    const std::string x = loops.vars[0], block = source.var(x + "_block"), inner = source.var(x + "_in");
    source.schedule(fmt::format("{}.split({}, {}, {}, {}, TailStrategy::GuardWithIf).unroll({});", loops.func, x, block,
                                inner, size, inner));
    Loops blocks = loops;
    blocks.vars[0] = block;
    blocks.extents[0] = ceil_div(blocks.extents[0], size);
    return blocks;
}

const Node* view_of(const Value* value) {
    return value && value->producer && make_generator(*value->producer)->is_view() ? value->producer : nullptr;
}

Loops fuse_innermost(KernelSource& source, const Loops& loops, size_t count) {
    Loops fused = loops;
    const auto is_pitched = [](const Value* value) { return value->pitch().has_value(); };
    if (std::any_of(source.inputs().begin(), source.inputs().end(), is_pitched) ||
        std::any_of(source.outputs().begin(), source.outputs().end(), is_pitched))
        return fused;
    const int lanes = source.target().lanes(loops.element);
    while (count-- > 1 && fused.extents[0].constant() && *fused.extents[0].constant() % lanes != 0) {
        const std::string both = source.var(fused.vars[0] + fused.vars[1]);
        source.schedule(fmt::format("{}.fuse({}, {}, {});", loops.func, fused.vars[0], fused.vars[1], both));
        fused.extents[1] *= fused.extents[0];
        fused.vars[1] = both;
        fused.vars.erase(fused.vars.begin());
        fused.extents.erase(fused.extents.begin());
    }
    return fused;
}

bool has_long_nodes(const KernelSource& source) {
    return std::any_of(source.defined().begin(), source.defined().end(),
                       [](const Value* value) { return make_generator(*value->producer)->is_long(); });
}

/// Makes vectors of elements of neighbouring rows where a row fills none and elements take much more than to pick them
/// out of their rows. Returns whether it did.
static bool schedule_short_rows(KernelSource& source, Loops loops) {
    const int lanes = source.target().lanes(loops.element);
    if (loops.vars.size() < 2 || is_of_reduction(loops.vars[0]) || is_of_reduction(loops.vars[1])) return false;
    const auto row = loops.extents[0].constant(), rows = loops.extents[1].constant();
    if (!row || *row >= lanes || !rows || *rows < lanes || !has_long_nodes(source)) return false;
    source.schedule("// A row fills no vector: vectors have elements of neighbouring rows.");
    source.schedule(loops.func, {fmt::format("vectorize({}, {}, {})", loops.vars[1], source.lanes(loops.element, lanes),
                                             tail_strategy(loops.extents[1], lanes, false)),
                                 fmt::format("unroll({})", loops.vars[0])});
    loops.extents[0] *= lanes;
    loops.extents[1] = ceil_div(*rows, lanes);
    parallelise(source, loops);
    return true;
}

void schedule_loops(KernelSource& source, const Loops& loops) {
    const Loops turning = turning_loops(loops);
    if (source.target().is_gpu()) return schedule_on_gpu(source, turning);
    if (schedule_short_rows(source, turning)) return;
    vectorise(source, turning);
    parallelise(source, turning);
}

void NodeGenerator::schedule(KernelSource& source) const {
    for (size_t i = 0; i < source.output_count(); ++i) schedule_loops(source, source.output_loops(i));
}

HostCall NodeGenerator::host_call() const { throw std::logic_error(node_.label() + " is no call of the host"); }

size_t NodeGenerator::first_axis(size_t i) const { return out(0).rank() - std::min(out(0).rank(), in(i).rank()); }

Dim NodeGenerator::flops() const { return has_output(0) ? out(0).elements() : Dim(0); }

const Value* NodeGenerator::input(size_t i) const {
    if (!node_.has_input(i)) throw CompileError("input {} is missing", i);
    return node_.inputs[i];
}

const Value* NodeGenerator::output(size_t i) const {
    if (!node_.has_output(i)) throw CompileError("output {} is missing", i);
    return node_.outputs[i];
}

const std::vector<Dim>& NodeGenerator::dims(size_t i) const {
    const KnownElements* known = known_input(i);
    if (!known) throw UnknownElements(node_, i);
    return known->integers;
}

const Dim& NodeGenerator::single_dim(size_t i) const {
    check_single(i, dims(i).size());
    return dims(i)[0];
}

std::vector<int64_t> NodeGenerator::integers(size_t i) const {
    // A constant may have more elements than inference tracks.
    if (input(i)->constant) return input(i)->constant->integers();
    std::vector<int64_t> result;
    for (const Dim& dim : dims(i)) {
        if (!dim.constant())
            throw CompileError("input {} ('{}') must be known at compile time, it is {}", i, input(i)->name,
                               dim.text());
        result.push_back(*dim.constant());
    }
    return result;
}

std::vector<double> NodeGenerator::reals(size_t i) const {
    if (input(i)->constant) return input(i)->constant->reals();
    const KnownElements* known = known_input(i);
    if (!known) throw CompileError("input {} ('{}') must be known before run time", i, input(i)->name);
    return known->reals;
}

double NodeGenerator::single_real(size_t i) const {
    const std::vector<double> elements = reals(i);
    check_single(i, elements.size());
    return elements[0];
}

void NodeGenerator::check_single(size_t i, size_t elements) const {
    if (elements != 1) throw CompileError("input {} ('{}') has {} elements, expected 1", i, input(i)->name, elements);
}

std::vector<Dim> NodeGenerator::shape_operand(size_t i, std::optional<size_t> rank) const {
    const auto& declared = output(0)->declared;
    const auto is_number = [](const Dim& dim) { return dim.constant().has_value(); };
    const bool is_declared = declared && std::all_of(declared->shape.begin(), declared->shape.end(), is_number);
    if (known_input(i) || !is_declared) return dims(i);
    if (rank && declared->rank() != *rank) {
        throw CompileError("output '{}' is declared with rank {}, expected {}", output(0)->name, declared->rank(),
                           *rank);
    }
    return declared->shape;
}

const KnownElements* NodeGenerator::known_input(size_t i) const {
    const auto& known = input(i)->known;
    return known ? &*known : nullptr;
}

const KnownElements* NodeGenerator::tracked_input(size_t i) const {
    const auto& ratios = input(i)->ratios;
    return ratios ? &*ratios : known_input(i);
}

size_t NodeGenerator::normalised_axis(int64_t axis, size_t rank) {
    const auto signed_rank = static_cast<int64_t>(rank);
    if (axis < -signed_rank || axis >= signed_rank)
        throw CompileError("axis is {}, expected one in [{}, {}]", axis, -signed_rank, signed_rank - 1);
    return static_cast<size_t>(axis < 0 ? axis + signed_rank : axis);
}

std::vector<Check> NodeGenerator::axis_checks(const std::vector<Dim>& axes, size_t rank) {
    const auto signed_rank = static_cast<int64_t>(rank);
    std::vector<Check> checks;
    for (const Dim& axis : axes) {
        if (!axis.constant()) checks.push_back({"axis", axis, -signed_rank, signed_rank - 1});
    }
    return checks;
}

static std::string symbol_name(const Value& value, std::string_view role, size_t i) {
    const std::string name = fmt::format("{}_{}_{}", identifier(value.name), role, i);
    return value.namesake == 0 ? name : fmt::format("{}_of_{}", name, value.namesake + 1);
}

std::string extent_symbol_name(const Value& value, size_t axis) { return symbol_name(value, "extent", axis); }

std::string element_symbol_name(const Value& value, size_t i) { return symbol_name(value, "element", i); }

Dim extent_symbol(const Value& value, size_t axis, const Dim& max) {
    return Dim::symbol(extent_symbol_name(value, axis), 0, max.upper_bound().value_or(Dim::unbounded));
}

namespace {

/// The model's own value whose axis this one's is, as messages name it: what layouts and expansions of nodes put
/// between have names of their own.
const Value* of_model(const Value* value, size_t axis) {
    const auto is_like = [&](const Value* source) {
        return source && source->type && source->type->rank() == value->type->rank() &&
               source->type->shape[axis] == value->type->shape[axis];
    };
    for (const Node* node = value->producer; node; node = value->producer) {
        const bool is_own = !node->origin.empty() || node->domain == "onnx2halide";
        if (!is_own || node->inputs.empty() || !is_like(node->inputs[0])) break;
        value = node->inputs[0];
    }
    return value;
}

}  // namespace

void NodeGenerator::check_type_of_first(size_t i) const {
    if (in(i).element != in(0).element)
        throw CompileError("input {} has type {}, expected {} as input 0", i, info(in(i).element).name,
                           info(in(0).element).name);
}

void NodeGenerator::check_extent(std::vector<Check>& checks, size_t i, size_t axis, const Dim& expected,
                                 bool or_one) const {
    const Dim& own = in(i).shape.at(axis);
    if (prove_equal(own, expected) == Proof::yes || (or_one && own.is(1))) return;
    checks.push_back(
        {fmt::format("dim {} of '{}'", axis, of_model(input(i), axis)->name), own, expected, expected, or_one});
}

void NodeGenerator::check_broadcast(std::vector<Check>& checks, size_t i, size_t axes, const std::vector<Dim>& result,
                                    size_t first) const {
    for (size_t axis = 0; axis < axes && first + axis < result.size(); ++axis)
        check_extent(checks, i, axis, result[first + axis], true);
}

namespace {

/// An extent as one number that tells whether it is empty, 0 or 1, times what it is where it is not.
std::pair<Dim, Dim> split_extent(const Dim& extent) {
    for (const std::vector<Dim>& atoms : extent.products()) {
        for (const Dim& atom : atoms) {
            const bool is_flag = atom.lower_bound() == 0 && atom.upper_bound() == 1;
            const auto rest = is_flag ? exact_div(extent, atom) : std::nullopt;
            if (rest && rest->lower_bound().value_or(-1) >= 0) return {atom, *rest};
        }
    }
    return {1, extent};
}

/// What two extents are together, of which only a run may know whether they are equal or one is 1.
Dim broadcast_extent(const Dim& p, const Dim& q) {
    const auto is_certain = [](const Dim& extent) { return prove_less_equal(2, extent) == Proof::yes; };
    if (p.constant() && is_certain(p)) return p;
    if (is_certain(q)) return q;
    if (is_certain(p) || prove_equal(p, q) == Proof::yes) return p;
    // 0 beside 1 is 0. Extents that were joined before are joined as one, however often, with the same result.
    const auto [some_p, most_p] = split_extent(p);
    const auto [some_q, most_q] = split_extent(q);
    return max(most_p, most_q) * min(min(min(min(Dim(1), some_p), some_q), most_p), most_q);
}

}  // namespace

std::vector<Dim> broadcast(const std::vector<Dim>& a, const std::vector<Dim>& b) {
    const std::vector<Dim>&longer = a.size() >= b.size() ? a : b, &shorter = a.size() >= b.size() ? b : a;
    std::vector<Dim> result = longer;
    const size_t offset = longer.size() - shorter.size();
    for (size_t i = 0; i < shorter.size(); ++i) {
        const Dim &p = longer[offset + i], &q = shorter[i];
        if (q.is(1)) continue;
        if (p.is(1)) {
            result[offset + i] = q;
        } else if (prove_equal(p, q) == Proof::no) {
            throw CompileError("shapes {} and {} cannot be broadcast together", shape_text(a), shape_text(b));
        } else {
            result[offset + i] = broadcast_extent(p, q);
        }
    }
    return result;
}

}  // namespace onnx2halide
