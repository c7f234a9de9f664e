#include <fmt/format.h>

#include "ops/axis_operand.h"
#include "ops/elementwise/elementwise.h"
#include "ops/families.h"

namespace onnx2halide {

namespace {

/// A scalar operand as Halide text, whether it is known or read at run time.
std::string scalar(KernelSource& source, const Value* value) {
    return source.read(value, Coordinates(value->checked_type().rank(), "0"));
}

ElementType result_type(const Node& node) {
    const auto type = static_cast<ElementType>(node.integer("output_datatype", 1));
    if (!is_float(type) && !is_integer(type))
        throw CompileError("output_datatype is {}, expected a number's", static_cast<int>(type));
    return type;
}

/// Converts `expression`, a double, to elements of a type.
std::string converted(const std::string& expression, ElementType type) {
    return cast_text(expression, compute_element(type));
}

/// A window as a sum of cosines of multiples of an angle that completes one period.
struct WindowFormula {
    std::string_view op, formula;  // of the angle {t}
};
constexpr WindowFormula window_formulas[] = {
    {"BlackmanWindow", "Expr(0.42) - cos({t}) / 2 + Expr(0.08) * cos(2 * {t})"},
    {"HammingWindow", "(25 - 21 * cos({t})) / 46"},
    {"HannWindow", "(1 - cos({t})) / 2"},
};

class WindowFunction : public NodeGenerator {
public:
    using NodeGenerator::NodeGenerator;

    std::vector<TensorType> infer() const override {
        if (!in(0).elements().is(1)) throw CompileError("size is {}, expected a scalar", in(0).text());
        const Dim size = is_known_at_run_time(node_, 0) ? shape_operand(0, 1)[0] : single_dim(0);
        if (prove_less_equal(size, -1) == Proof::yes) throw CompileError("size is {}, expected 0 or more", size.text());
        return {TensorType(result_type(node_), {size})};
    }

    void algorithm(KernelSource& source) const override {
        const Coordinates at = source.vars(1);
        const bool is_periodic = node_.integer("periodic", 1) != 0;
        const Dim period = max(out(0).shape[0] - (is_periodic ? 0 : 1), Dim(1));
        const std::string angle = fmt::format("(Expr(6.283185307179586) * {} / {})", at[0], source.dim(period));
        for (const WindowFormula& row : window_formulas) {
            if (row.op != node_.op_type) continue;
            const std::string text = fmt::format(fmt::runtime(row.formula), fmt::arg("t", angle));
            source.define(output(0), at, converted(text, out(0).element));
        }
    }
};

/// MelWeightMatrix: a triangle over the bins of a spectrum for each band; bands have equal widths in mel.
class MelWeightMatrix : public NodeGenerator {
public:
    using NodeGenerator::NodeGenerator;

    std::vector<TensorType> infer() const override {
        for (size_t i = 0; i < 5; ++i) {
            if (!in(i).elements().is(1)) throw CompileError("input {} is {}, expected a scalar", i, in(i).text());
        }
        return {TensorType(result_type(node_), shape())};
    }

    void algorithm(KernelSource& source) const override;

    void schedule(KernelSource& source) const override {
        source.schedule(fmt::format("{}.compute_root();", source.kept(output(0), "edges")));
        NodeGenerator::schedule(source);
    }

private:
    std::vector<Dim> shape() const {
        if (is_known_at_run_time(node_, 0) || is_known_at_run_time(node_, 1)) {
            if (const auto shape = declared_numbers(node_, 2)) return *shape;
        }
        const std::vector<Dim> shape = {floor_div(single_dim(1), 2) + 1, single_dim(0)};
        if (prove_less_equal(shape[0], 0) == Proof::yes || prove_less_equal(shape[1], 0) == Proof::yes)
            throw CompileError("the matrix has shape {}, expected 1x1 or more", shape_text(shape));
        return shape;
    }
};

void MelWeightMatrix::algorithm(KernelSource& source) const {
    const Coordinates at = source.vars(2);
    const std::string edges = source.func(output(0)->name + "_edges"), i = source.var("i");
    source.keep(output(0), "edges", edges);
    const auto number = [&](size_t input) {
        return fmt::format("cast<double>({})", scalar(source, this->input(input)));
    };
    const auto mel = [&](size_t input) { return fmt::format("onnx::mel({})", number(input)); };
    source.line(
        fmt::format("{0}({1}) = cast<int>(floor(({2} + 1) * onnx::hertz({3} + {1} * ({4} - {3}) / ({5} + 2)) / {6}));",
                    edges, i, number(1), mel(3), mel(4), number(0), number(2)));
    const std::string &bin = at[0], &band = at[1];
    const auto edge = [&](int i) { return fmt::format("{}({} + {})", edges, band, i); };
    const std::string low = edge(0), middle = edge(1), high = edge(2);
    const auto ratio = [](const std::string& a, const std::string& b) {
        return fmt::format("cast<double>({}) / max({}, 1)", a, b);
    };
    // If a slope has no bin of its own, the middle is 1.
    const std::string rising =
        fmt::format("select({0} == {1}, Expr(1.0), {2})", middle, low,
                    ratio(fmt::format("{} - {}", bin, low), fmt::format("{} - {}", middle, low)));
    const std::string falling = ratio(fmt::format("{} - {}", high, bin), fmt::format("{} - {}", high, middle));
    source.define(
        output(0), at,
        converted(fmt::format("select({0} >= {1} && {0} < {2}, {3}, {0} >= {4} && {0} <= {1}, {5}, Expr(0.0))", bin,
                              middle, high, falling, low, rising),
                  out(0).element));
}

}  // namespace

std::vector<Operator> signal_operators() {
    std::vector<Operator> rows = {{"MelWeightMatrix", 17, make<MelWeightMatrix>}};
    for (const WindowFormula& row : window_formulas) rows.push_back({row.op, 17, make<WindowFunction>});
    return rows;
}

}  // namespace onnx2halide
