#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ops/axis_operand.h"
#include "ops/composite.h"
#include "ops/families.h"

namespace onnx2halide {

namespace {

/// Discrete Fourier transforms of many rows. A transform of first * second elements is `second` ones of `first`
/// elements, a rotation of what they give, and `first` ones of `second` elements: n (first + second) products instead
/// of n * n. A prime length has one factor, and so has one that only a run knows.
class Fourier : public NodeGenerator {
public:
    explicit Fourier(const Node& node)
        : NodeGenerator(node), is_inverse_(node.integer("inverse", 0) != 0),
          is_onesided_(node.integer("onesided", node.op_type == "STFT") != 0) {}

    void algorithm(KernelSource& source) const override;
    void schedule(KernelSource& source) const override;
    std::vector<Check> checks() const override {
        if (length().constant()) return {};
        return {{"the transform's number of elements", length(), 1, largest_factor}};
    }
    Dim flops() const override { return out(0).elements() * 4 * (factors().first + factors().second); }

protected:
    bool is_inverse_, is_onesided_;

    /// The longest transform.
    static constexpr int64_t most = 1 << 24;
    /// Products of two numbers below this one fit an int.
    static constexpr int64_t largest_factor = 46340;

    /// The transform's length and the output's axis that it runs along.
    virtual Dim length() const = 0;
    virtual size_t axis() const = 0;
    /// The place of the n-th element that is transformed of the row at `at`, and what it is multiplied by, if anything.
    struct Element {
        Coordinates at;
        std::string factor;
    };
    virtual Element element(KernelSource& source, const Coordinates& at, const std::string& n) const = 0;
    /// Elements that there are to transform; those behind are zero.
    virtual Dim given() const { return length(); }

    /// Whether input 0 has imaginary parts; nothing where only a run knows.
    std::optional<bool> is_complex() const {
        const auto parts = in(0).shape.back().constant();
        return parts ? std::optional(*parts == 2) : std::nullopt;
    }
    std::vector<Check> parts_check() const {
        if (is_complex()) return {};
        const size_t last = in(0).rank() - 1;
        return {{fmt::format("dim {} of '{}'", last, input(0)->name), in(0).shape[last], 1, 2}};
    }
    /// Whether the output is real: the input is one half of a spectrum whose other half mirrors it.
    bool is_real_result() const { return is_inverse_ && is_onesided_; }
    Dim bins() const { return is_onesided_ && !is_inverse_ ? floor_div(length(), 2) + 1 : length(); }
    void check_length() const;
    void check_signal() const;

private:
    struct Factors {
        Dim first;
        int64_t second;
    };
    static Factors factors(int64_t length);
    Factors factors() const {
        const auto number = length().constant();
        return number ? factors(*number) : Factors{length(), 1};
    }
    /// The type of sums. Of short transforms these cost little, and double leaves nothing but the result's rounding.
    ElementType type() const {
        return prove_less_equal(33, length()) == Proof::yes ? in(0).element : ElementType::float64;
    }
    std::string widened(const std::string& number) const {
        const std::string wide = KernelSource::compute_type(type());
        return wide == KernelSource::compute_type(in(0).element) ? number : fmt::format("cast<{}>({})", wide, number);
    }
    bool has_table() const { return prove_less_equal(factors().first, 256) == Proof::yes; }
    Coordinates row(KernelSource& source, const Coordinates& first) const;
    std::string call(KernelSource& source, const std::string& role, const Coordinates& first) const;
    void define(KernelSource& source, const std::string& role) const;
    std::string root(KernelSource& source, const std::string& place) const;
    void define_input(KernelSource& source) const;
    std::string turned(KernelSource& source, const Dim& factor, const std::string& k, const std::string& n) const;
    void define_roots(KernelSource& source) const;
};

void Fourier::check_length() const {
    const auto length = this->length().constant();
    if (!length) return;
    if (*length < 1 || *length > most)
        throw CompileError("the transform has {} elements, expected 1 to {}", *length, most);
    if (prove_less_equal(factors().first, largest_factor) == Proof::no)
        throw CompileError("the transform's {} elements are no product of numbers up to {}", *length, largest_factor);
}

void Fourier::check_signal() const {
    if (!is_float(in(0).element)) throw CompileError("input 0 has type {}, expected floats", info(in(0).element).name);
    const std::vector<Dim>& shape = in(0).shape;
    const auto may_be = [&](int64_t parts) { return prove_equal(shape.back(), parts) != Proof::no; };
    if (shape.size() < 2 || (!may_be(1) && !may_be(2)))
        throw CompileError("input 0 has shape {}, expected a last axis of 1 or 2", shape_text(shape));
}

/// The two factors that are nearest, the larger one first.
Fourier::Factors Fourier::factors(int64_t length) {
    int64_t second = 1;
    for (int64_t divisor = 1; divisor * divisor <= length; ++divisor) {
        if (length % divisor == 0) second = divisor;
    }
    return {length / second, second};
}

/// Re and im of each power of the first root of unity.
void Fourier::define_roots(KernelSource& source) const {
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

/// Coordinates within a row's transform, then those of the row.
Coordinates Fourier::row(KernelSource& source, const Coordinates& first) const {
    const Coordinates at = source.vars(out(0).rank());
    Coordinates result = first;
    for (size_t i = at.size() - 1; i-- > 0;) {
        if (i != axis()) result.push_back(at[i]);
    }
    return result;
}

void Fourier::define(KernelSource& source, const std::string& role) const {
    source.keep(output(0), role, source.func(output(0)->name + "_" + role));
}

std::string Fourier::call(KernelSource& source, const std::string& role, const Coordinates& first) const {
    return fmt::format("{}({})", source.kept(output(0), role), fmt::join(row(source, first), ", "));
}

/// Re and im of the n-th element, as a Func.
void Fourier::define_input(KernelSource& source) const {
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

/// A root of unity, as a pair.
std::string Fourier::root(KernelSource& source, const std::string& place) const {
    return fmt::format("Tuple({0}(0, {1}), {0}(1, {1}))", source.kept(output(0), "roots"), place);
}

/// The root of a transform of `factor` elements for its k-th result and n-th element.
std::string Fourier::turned(KernelSource& source, const Dim& factor, const std::string& k, const std::string& n) const {
    const Dim stride = exact_div(length(), factor).value();
    return root(source, fmt::format("{} * {} % {}{}", k, n, source.dim(factor),
                                    stride.is(1) ? "" : fmt::format(" * {}", source.dim(stride))));
}

void Fourier::algorithm(KernelSource& source) const {
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

/// Row by row, in vectors of neighbouring results of the first transforms.
void Fourier::schedule(KernelSource& source) const {
    if (source.target().is_gpu()) {
        for (const char* role : {"roots", "parts", "spectrum"}) {
            if (role[0] == 'r' && length().constant()) continue;
            if (role[0] != 's' || factors().second > 1)
                source.schedule(fmt::format("{}.compute_root();", source.kept(output(0), role)));
        }
        return NodeGenerator::schedule(source);
    }
    if (has_table()) source.schedule(fmt::format("{}.compute_root();", source.kept(output(0), "factors")));
    if (!length().constant()) source.schedule(fmt::format("{}.compute_root();", source.kept(output(0), "roots")));
    const Loops loops = source.output_loops();
    const Coordinates at = source.vars(out(0).rank());
    std::vector<std::string> order = {at.back(), at[axis()]}, rows;
    for (const std::string& var : loops.vars) {
        if (var != order[0] && var != order[1]) rows.push_back(var);
    }
    order.insert(order.end(), rows.begin(), rows.end());
    std::vector<std::string> directives = {fmt::format("reorder({})", fmt::join(order, ", "))};
    if (!is_real_result()) directives.push_back(fmt::format("unroll({})", order[0]));
    std::string place = "compute_root()";
    if (!rows.empty()) {
        const std::string row = fuse_all(source, rows, "row", directives);
        if (is_parallel_work(flops())) directives.push_back(fmt::format("parallel({})", row));
        place = fmt::format("compute_at({}, {})", loops.func, row);
    }
    source.schedule(loops.func, directives);

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
                        {fmt::format("split({0}, {1}, {0}, {2}, TailStrategy::GuardWithIf)", k1, tile, lanes),
                         fmt::format("reorder({}, {}, {})", k1, source.kept(output(0), step), tile),
                         fmt::format("vectorize({})", k1)});
    }
}

/// DFT: along any axis but the last, which holds real and imaginary parts.
class DiscreteFourier : public Fourier {
public:
    using Fourier::Fourier;

    std::vector<TensorType> infer() const override {
        check_signal();
        if (has_input(1)) check_length();
        if (axis() == in(0).rank() - 1) throw CompileError("axis is {}, expected another than the last", axis());
        check_length();
        std::vector<Dim> shape = in(0).shape;
        shape[axis()] = bins();
        shape.back() = is_real_result() ? 1 : 2;
        return {TensorType(in(0).element, shape)};
    }

    std::vector<Check> checks() const override { return parts_check(); }

protected:
    Dim length() const override {
        if (has_input(1)) return single_dim(1);
        const Dim& extent = in(0).shape[axis()];
        return is_real_result() ? 2 * (extent - 1) : extent;
    }

    size_t axis() const override {
        if (node_.version < 20) return normalised_axis(node_.integer("axis", 1), in(0).rank());
        return normalised_axis(has_input(2) ? number(single_dim(2)) : -2, in(0).rank());
    }

    static int64_t number(const Dim& axis) {
        return axis.constant() ? *axis.constant()
                               : throw CompileError("axis must be known at compile time, it is {}", axis.text());
    }

    Dim given() const override { return in(0).shape[axis()]; }

    Element element(KernelSource&, const Coordinates& at, const std::string& n) const override {
        Coordinates from = at;
        from[axis()] = n;
        return {from, ""};
    }
};

/// STFT: of frames of a signal, that begin `frame_step` elements after each other.
class ShortTimeFourier : public Fourier {
public:
    using Fourier::Fourier;

    std::vector<TensorType> infer() const override {
        check_signal();
        if (in(0).rank() != 3) throw CompileError("input 0 has rank {}, expected 3", in(0).rank());
        if (has_input(2) && in(2).rank() != 1) throw CompileError("window has rank {}, expected 1", in(2).rank());
        check_length();
        if (has_input(2) && prove_equal(in(2).shape[0], length()) == Proof::no) {
            throw CompileError("window has shape {}, expected {}", shape_text(in(2).shape), length().text());
        }
        return {TensorType(in(0).element, {in(0).shape[0], frames(), bins(), 2})};
    }

    std::vector<Check> checks() const override {
        std::vector<Check> checks = Fourier::checks();
        if (known_input(1) && !single_dim(1).constant())
            checks.push_back({"frame_step", single_dim(1), 1, Dim::unbounded});
        return checks;
    }

protected:
    Dim length() const override {
        return has_input(3) ? single_dim(3) : has_input(2) ? in(2).shape.at(0) : in(0).shape.at(1);
    }

    size_t axis() const override { return 2; }

    Element element(KernelSource& source, const Coordinates& at, const std::string& n) const override {
        // A step that is known only at run time leads nowhere but into the signal.
        const std::string step =
            is_known_at_run_time(node_, 1)
                ? fmt::format("cast<int>({})", source.element(input(1), Coordinates(in(1).rank(), "0")))
                : source.dim(single_dim(1));
        std::string place = fmt::format("{} * {} + {}", at[1], step, n);
        if (is_known_at_run_time(node_, 1))
            place = fmt::format("clamp({}, 0, {})", place, source.dim(in(0).shape[1] - 1));
        return {{at[0], place, ""}, has_input(2) ? source.read(input(2), {n}) : ""};
    }

private:
    Dim frames() const {
        if (is_known_at_run_time(node_, 1)) {
            if (const auto shape = declared_numbers(node_, 4)) return (*shape)[1];
        }
        const Dim& step = single_dim(1);
        if (prove_less_equal(1, step) == Proof::no)
            throw CompileError("frame_step is {}, expected 1 or more", step.text());
        const Dim frames = floor_div(in(0).shape[1] - length(), step) + 1;
        if (prove_less_equal(frames, 0) == Proof::yes) {
            throw CompileError("a signal of {} elements is shorter than a frame of {}", in(0).shape[1].text(),
                               length().text());
        }
        return max(frames, Dim(0));
    }
};

/// Along an axis that only a run knows: along the middle one of three.
std::vector<Value*> expand_along_open_axis(Expansion& expansion) {
    const Node& node = expansion.node();
    Value *signal = expansion.input(0), *axis = expansion.input(2);
    Value* middle = expansion.constant("middle", make_constant(ElementType::int64, {}, std::vector<int64_t>{1}));
    const std::map<std::string, Attribute> kept = {{"kept", int64_t{1}}};  // the axis of real and imaginary parts
    Value* around = expansion.add("around", {"Around", 1, {signal, axis}, kept, "onnx2halide"});
    Value* along = expansion.add("along", {"DFT", 20, {around, expansion.optional_input(1), middle}, node.attributes});
    Value* shape = expansion.add("shape", {"Shape", 13, {signal}});
    return {expansion.add("as_given", {"Unaround", 1, {along, shape, axis}, kept, "onnx2halide"})};
}

std::unique_ptr<NodeGenerator> make_fourier(const Node& node) {
    if (node.version >= 20 && is_open_at_compile_time(node, 2))
        return std::make_unique<EarlyComposite>(node, expand_along_open_axis);
    return make<DiscreteFourier>(node);
}

}  // namespace

std::vector<Operator> fourier_operators() { return {{"DFT", 17, make_fourier}, {"STFT", 17, make<ShortTimeFourier>}}; }

}  // namespace onnx2halide
