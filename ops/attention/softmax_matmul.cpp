#include "ops/attention/softmax_matmul.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ops/attention/attention_schedule.h"
#include "ops/reduce/reduction.h"

namespace onnx2halide {

namespace {

// Roles under which the algorithm stores names for the schedule, all of output 0.
constexpr const char *rows_role = "rows", *key_role = "key", *max_role = "max", *exp_role = "exp",
                     *total_role = "total", *factor_role = "factor", *element_role = "element";

/// The vectors of a row's elements that are reduced together; the last one may extend past the row's end.
struct RowVectors {
    int width;
    Dim count;
    bool is_padded;
};

/// Up to four of the machine's vectors side by side.
RowVectors row_vectors(const Dim& elements, int lanes) {
    const auto number = elements.constant();
    int best = lanes;
    if (number) {
        const auto cycles = [&](int width) {
            return ceil_div(*number, width) * (std::max(1, width / lanes) + 1) +
                   std::bit_width(static_cast<unsigned>(width)) * 4;
        };
        for (int width = 4 * lanes; width > 1; width /= 2) {
            if (cycles(width) < cycles(best)) best = width;
        }
    }
    return {best, ceil_div(elements, best), !floor_mod(elements, best).is(0)};
}

/// An element: `exp(x, y, c, n)`
std::string of_element(const std::string& func, const Coordinates& at) {
    return fmt::format("{}({})", func, fmt::join(at.rbegin(), at.rend(), ", "));
}

/// A value per row: `max(y, c, n)`
std::string of_row(const std::string& func, const Coordinates& at) {
    return fmt::format("{}({})", func, fmt::join(at.rbegin() + 1, at.rend(), ", "));
}

}  // namespace

bool SoftmaxMatMul::can_compute_input(const Node& anchor, const Target&) const {
    const auto generator = make_generator(anchor);
    const auto* product = dynamic_cast<const MatMul*>(generator.get());
    const bool has_rows_of_its_own = dynamic_cast<const SoftmaxMatMul*>(product);
    return product && !has_rows_of_its_own && product->has_tiles_of_rows();
}

void SoftmaxMatMul::algorithm(KernelSource& source) const {
    define_rows(source);
    MatMul::algorithm(source);
}

void SoftmaxMatMul::define_rows(KernelSource& source) const {
    const Coordinates at = source.vars(rank());
    const auto func = [&](const char* role) {
        const std::string name = source.func(fmt::format("{}_{}", output(0)->name, role));
        source.keep(output(0), role, name);
        return name;
    };
    const ElementType element = sum_type();
    const RowVectors vectors = row_vectors(depth(), source.target().lanes(element));
    const std::string lowest = lowest_literal(element);
    std::string rows;
    if (vectors.is_padded) {
        rows = func(rows_role);
        Coordinates filled = at;
        filled.back() = KernelSource::axis(source.rdom("key", {depth()}), 0);
        source.keep(output(0), key_role, filled.back());
        source.line("// Rows are padded with scores that do not affect their softmax.");
        source.line(fmt::format("{} = {};", of_element(rows, at), lowest));
        source.line(fmt::format("{} = {};", of_element(rows, filled), source.read(input(0), filled)));
    }
    const std::string keys = source.rdom("keys", {vectors.width, vectors.count});
    source.keep(output(0), element_role, KernelSource::axis(keys, 0));
    Coordinates in_vectors = at;
    in_vectors.back() =
        fmt::format("{} * {} + {}", KernelSource::axis(keys, 1), vectors.width, KernelSource::axis(keys, 0));

    const auto score = [&](const Coordinates& place) {
        return vectors.is_padded ? of_element(rows, place) : source.read(input(0), place);
    };
    const std::string max = of_row(func(max_role), at), exp = func(exp_role), total = of_row(func(total_role), at),
                      factor = of_row(func(factor_role), at);
    source.line(fmt::format("{} = {};", max, lowest));
    source.line(fmt::format("{0} = max({0}, {1});", max, score(in_vectors)));
    source.line(fmt::format("{} = onnx::bounded_exp({} - {});", of_element(exp, at), score(at), max));
    source.line(fmt::format("{} = {};", total, KernelSource::literal(int64_t{0}, element)));
    source.line(fmt::format("{} += {};", total, of_element(exp, in_vectors)));
    source.line(fmt::format("{} = 1 / {};", factor, total));
}

std::string SoftmaxMatMul::a_element(KernelSource& source, const Coordinates& at, const std::string& k) const {
    Coordinates own = at;
    own.back() = k;
    return of_element(source.kept(output(0), exp_role), own);
}

std::string SoftmaxMatMul::result(KernelSource& source, const Coordinates& at, const std::string& sum) const {
    const std::string scaled = fmt::format("{} * {}", sum, of_row(source.kept(output(0), factor_role), at));
    if (!node_.integer("clears_nan", 0)) return scaled;
    return fmt::format("select(onnx::is_nan({}), 0, {})", of_row(source.kept(output(0), total_role), at), scaled);
}

void SoftmaxMatMul::schedule(KernelSource& source) const {
    AttentionLoops attention;
    attention.product = loops(source);
    if (const auto product = product_before(source, node_)) {
        attention.scores = static_cast<const MatrixProduct&>(*product).loops(source);
        attention.scores->output = {source.name(input(0)), {}, {}, sum_type()};
    }
    const RowVectors vectors = row_vectors(depth(), source.target().lanes(sum_type()));
    if (vectors.is_padded) {
        attention.rows = source.kept(output(0), rows_role);
        attention.key = source.kept(output(0), key_role);
    }
    attention.max = source.kept(output(0), max_role);
    attention.exp = source.kept(output(0), exp_role);
    attention.total = source.kept(output(0), total_role);
    attention.factor = source.kept(output(0), factor_role);
    attention.element = source.kept(output(0), element_role);
    attention.width = vectors.width;
    schedule_attention(source, attention);
}

}  // namespace onnx2halide
