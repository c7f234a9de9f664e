#include "ops/signal/fourier_node.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ops/schedule/directives.h"
#include "ops/schedule/loop_schedule.h"

namespace onnx2halide {

namespace {

/// The longest transform.
constexpr int64_t longest = 1 << 24;
/// The largest number such that the product of two below it fits in an int.
constexpr int64_t largest_factor = 46340;
/// The longest transforms whose roots are stored for each result and element.
constexpr int64_t longest_of_table = 256;

}  // namespace

std::vector<Check> FourierNode::checks() const {
    std::vector<Check> checks;
    if (!length().constant()) checks.push_back({"the transform's number of elements", length(), 1, largest_factor});
    const size_t last = in(0).rank() - 1;
    if (!is_complex()) checks.push_back({fmt::format("dim {} of '{}'", last, input(0)->name), in(0).shape[last], 1, 2});
    return checks;
}

void FourierNode::check_length() const {
    const auto length = this->length().constant();
    if (!length) return;
    if (*length < 1 || *length > longest)
        throw CompileError("the transform has {} elements, expected 1 to {}", *length, longest);
    if (prove_less_equal(factors().first, largest_factor) == Proof::no)
        throw CompileError("the transform's {} elements are not a product of numbers up to {}", *length,
                           largest_factor);
}

void FourierNode::check_signal() const {
    if (!is_float(in(0).element)) throw CompileError("input 0 has type {}, expected floats", info(in(0).element).name);
    const std::vector<Dim>& shape = in(0).shape;
    const auto may_be = [&](int64_t parts) { return prove_equal(shape.back(), parts) != Proof::no; };
    if (shape.size() < 2 || (!may_be(1) && !may_be(2)))
        throw CompileError("input 0 has shape {}, expected a last axis of 1 or 2", shape_text(shape));
}

Dim FourierNode::bins() const { return is_onesided_ && !is_inverse_ ? floor_div(length(), 2) + 1 : length(); }

/// The factors with the smallest difference, as their sum is what a transform costs.
FourierNode::Factors FourierNode::factors(int64_t length) {
    int64_t second = 1;
    for (int64_t divisor = 1; divisor * divisor <= length; ++divisor) {
        if (length % divisor == 0) second = divisor;
    }
    return {length / second, second};
}

FourierNode::Factors FourierNode::factors() const {
    const auto number = length().constant();
    return number ? factors(*number) : Factors{length(), 1};
}

std::optional<bool> FourierNode::is_complex() const {
    const auto parts = in(0).shape.back().constant();
    return parts ? std::optional(*parts == 2) : std::nullopt;
}

ElementType FourierNode::type() const {
    return prove_less_equal(33, length()) == Proof::yes ? in(0).element : ElementType::float64;
}

std::string FourierNode::widened(const std::string& number) const {
    const std::string wide = KernelSource::compute_type(type());
    return wide == KernelSource::compute_type(in(0).element) ? number : fmt::format("cast<{}>({})", wide, number);
}

bool FourierNode::has_table() const { return prove_less_equal(factors().first, longest_of_table) == Proof::yes; }

void FourierNode::define_roots(KernelSource& source) const {
    const std::string_view type = this->type() == ElementType::float64 ? "double" : "float";
    if (const auto length = this->length().constant()) {
        const std::string roots = source.local(output(0)->name + "_roots");
        source.keep(output(0), "roots", roots);
        source.line(fmt::format("Buffer<{0}> {1} = onnx::roots_of_unity<{0}>({2}, {3});", type, roots, *length,
                                is_inverse_ ? 1 : -1));
        return;
    }
    define(source, "roots");
    const std::string part = source.var("part"), i = source.var("i");
    const std::string angle =
        fmt::format("Expr({}6.283185307179586) * {} / {}", is_inverse_ ? "" : "-", i, source.dim(length()));
    source.line(fmt::format("{}({}, {}) = cast<{}>(select({} == 0, cos({}), sin({})));",
                            source.kept(output(0), "roots"), part, i, type, part, angle, angle));
}

Coordinates FourierNode::row(KernelSource& source, const Coordinates& first) const {
    const Coordinates at = source.vars(out(0).rank());
    Coordinates result = first;
    for (size_t i = at.size() - 1; i-- > 0;) {
        if (i != axis()) result.push_back(at[i]);
    }
    return result;
}

void FourierNode::define(KernelSource& source, const std::string& role) const {
    source.keep(output(0), role, source.func(output(0)->name + "_" + role));
}

std::string FourierNode::call(KernelSource& source, const std::string& role, const Coordinates& first) const {
    return fmt::format("{}({})", source.kept(output(0), role), fmt::join(row(source, first), ", "));
}

void FourierNode::define_input(KernelSource& source) const {
    const std::string n = source.var("n_signal");
    const Coordinates at = source.vars(out(0).rank());
    const std::string middle = source.dim(floor_div(length(), 2));
    std::string place = n, inside;
    if (is_real_result()) place = fmt::format("select({0} > {1}, {2} - {0}, {0})", n, middle, source.dim(length()));
    if (is_real_result() || prove_less_equal(length(), given()) != Proof::yes) {
        inside = fmt::format("{} < {}", place, source.dim(given()));
        place = fmt::format("clamp({}, 0, {})", place, source.dim(given() - 1));
    }
    const std::string zero = KernelSource::literal(0.0, type());
    const auto part = [&](const std::string& number) {
        Element element = this->element(source, at, place);
        element.at.back() = number;
        std::string text = widened(source.read(input(0), element.at));
        if (!element.factor.empty()) text += " * " + widened(element.factor);
        return inside.empty() ? text : fmt::format("select({}, {}, {})", inside, text, zero);
    };
    const std::string parts = source.dim(in(0).shape.back());
    std::string im = is_complex() == false ? zero
                     : is_complex()        ? part("1")
                                           : fmt::format("select({0} == 2, {1}, {2})", parts,
                                                         part(fmt::format("min(1, {} - 1)", parts)), zero);
    if (is_real_result() && is_complex() != false) im = fmt::format("select({0} > {1}, -{2}, {2})", n, middle, im);
    define(source, "signal");
    source.line(fmt::format("{} = Tuple({}, {});", call(source, "signal", {n}), part("0"), im));
}

std::string FourierNode::root(KernelSource& source, const std::string& place) const {
    return fmt::format("Tuple({0}(0, {1}), {0}(1, {1}))", source.kept(output(0), "roots"), place);
}

std::string FourierNode::turned(KernelSource& source, const Dim& factor, const std::string& k,
                                const std::string& n) const {
    const Dim stride = exact_div(length(), factor).value();
    return root(source, fmt::format("{} * {} % {}{}", k, n, source.dim(factor),
                                    stride.is(1) ? "" : fmt::format(" * {}", source.dim(stride))));
}

void FourierNode::algorithm(KernelSource& source) const {
    const auto [first, second] = factors();
    define_roots(source);
    define_input(source);
    const std::string zero = KernelSource::literal(0.0, type()), k1 = source.var("k1"), n2 = source.var("n2");
    const std::string zeros = fmt::format("Tuple({0}, {0})", zero);
    const std::string n1 = KernelSource::axis(source.rdom("n1", {first}), 0);
    source.keep(output(0), "n1", n1);
    std::string factor = turned(source, first, k1, n1);
    if (has_table()) {
        const std::string n = source.var("n_signal");
        define(source, "factors");
        const std::string& table = source.kept(output(0), "factors");
        source.line(fmt::format("{}({}, {}) = {};", table, k1, n, turned(source, first, k1, n)));
        factor = fmt::format("{}({}, {})", table, k1, n1);
    }
    define(source, "parts");
    source.line(fmt::format("{} = {};", call(source, "parts", {k1, n2}), zeros));
    source.line(fmt::format("{0} = onnx::add_product({0}, {1}, {2});", call(source, "parts", {k1, n2}),
                            call(source, "signal", {fmt::format("{} * {} + {}", n1, second, n2)}), factor));
    const Coordinates at = source.vars(out(0).rank());
    const std::string& k = at[axis()];
    std::string result = call(source, "parts", {k, "0"});
    if (second > 1) {
        const std::string k2 = source.var("k2"), r2 = KernelSource::axis(source.rdom("r2", {second}), 0);
        source.keep(output(0), "n2", r2);
        define(source, "turned");
        source.line(fmt::format("{} = onnx::add_product({}, {}, {});", call(source, "turned", {k1, n2}), zeros,
                                call(source, "parts", {k1, n2}), root(source, fmt::format("{} * {}", k1, n2))));
        define(source, "spectrum");
        source.line(fmt::format("{} = {};", call(source, "spectrum", {k1, k2}), zeros));
        source.line(fmt::format("{0} = onnx::add_product({0}, {1}, {2});", call(source, "spectrum", {k1, k2}),
                                call(source, "turned", {k1, r2}), turned(source, second, k2, r2)));
        result = call(source, "spectrum",
                      {fmt::format("{} % {}", k, source.dim(first)), fmt::format("{} / {}", k, source.dim(first))});
    }
    std::string text =
        is_real_result() ? result + "[0]" : fmt::format("select({0} == 0, {1}[0], {1}[1])", at.back(), result);
    if (is_inverse_) text = fmt::format("{} / {}", text, source.dim(length()));
    if (type() != in(0).element) text = fmt::format("cast<{}>({})", KernelSource::compute_type(in(0).element), text);
    source.define(output(0), at, text);
}

void FourierNode::schedule_on_gpu(KernelSource& source) const {
    const auto at_root = [&](const std::string& role) {
        source.schedule(fmt::format("{}.compute_root();", source.kept(output(0), role)));
    };
    if (!length().constant()) at_root("roots");
    at_root("parts");
    if (factors().second > 1) at_root("spectrum");
    NodeGenerator::schedule(source);
}

std::string FourierNode::schedule_rows(KernelSource& source) const {
    const Loops loops = source.output_loops();
    const Coordinates at = source.vars(out(0).rank());
    std::vector<std::string> order = {at.back(), at[axis()]}, rows;
    for (const std::string& var : loops.vars) {
        if (var != order[0] && var != order[1]) rows.push_back(var);
    }
    order.insert(order.end(), rows.begin(), rows.end());
    std::vector<std::string> directives = {reorder(order)};
    if (!is_real_result()) directives.push_back(unroll(order[0]));
    std::string place = "compute_root()";
    if (!rows.empty()) {
        const std::string row = fuse_all(source, rows, "row", directives);
        if (is_parallel_work(flops())) directives.push_back(parallel(row));
        place = compute_at(loops.func, row);
    }
    source.schedule(loops.func, directives);
    return place;
}

/// Schedules row by row, in vectors of adjacent results of the first transforms.
void FourierNode::schedule(KernelSource& source) const {
    if (source.target().is_gpu()) return schedule_on_gpu(source);
    if (has_table()) source.schedule(fmt::format("{}.compute_root();", source.kept(output(0), "factors")));
    if (!length().constant()) source.schedule(fmt::format("{}.compute_root();", source.kept(output(0), "roots")));
    const std::string place = schedule_rows(source);

    const auto [first, second] = factors();
    const int most_lanes = source.target().lanes(type());
    const int lanes = static_cast<int>(std::min<int64_t>(most_lanes, first.constant().value_or(most_lanes)));
    const std::string k1 = source.var("k1");
    const std::string vectors = fmt::format("vectorize({}, {}, TailStrategy::GuardWithIf)", k1, lanes);
    source.schedule(source.kept(output(0), "signal"), {place});
    std::vector<std::pair<std::string, std::string>> sums = {{"parts", "n1"}};
    if (second > 1) {
        source.schedule(source.kept(output(0), "turned"), {place, vectors});
        sums.push_back({"spectrum", "n2"});
    }
    for (const auto& [role, step] : sums) {
        const std::string &func = source.kept(output(0), role), tile = source.var("k1_tile");
        source.schedule(func, {place, vectors});
        source.schedule(func + ".update()",
                        {guarded_split(k1, tile, std::to_string(lanes)),
                         fmt::format("reorder({}, {}, {})", k1, source.kept(output(0), step), tile), vectorize(k1)});
    }
}

}  // namespace onnx2halide
