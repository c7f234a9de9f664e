#include "ops/kernel_source.h"

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>

#include "tests/small_graph.h"

namespace onnx2halide {

namespace {

using enum ElementType;

/// A value outside of any graph.
struct Loose : Value {
    Loose(const char* name, TensorType of) {
        this->name = name;
        type = std::move(of);
    }
    Loose(const char* name, TensorType of, Layout layout) : Loose(name, std::move(of)) {
        type->layout = std::move(layout);
    }
};

const Target avx2 = Target::parse("x86-64-linux-avx2-fma");

KernelSource source_of(const Loose& output, KernelSource::Naming naming = KernelSource::Naming::model) {
    return {avx2, "kernel", {&output}, {&output}, naming};
}

}  // namespace

TEST_CASE("numbers read back as the same number") {
    const struct {
        double number;
        const char *as_float, *as_double;
    } rows[] = {
        {0, "0.0f", "0.0"},
        {1, "1.0f", "1.0"},
        {-0.0, "-0.0f", "-0.0"},
        {0.1, "0.1f", "0.1"},
        {1e-6, "1e-06f", "1e-06"},
        {1e30, "1e+30f", "1e+30"},
        {16777217, "16777216.0f", "16777217.0"},
        {INFINITY, "std::numeric_limits<float>::infinity()", "std::numeric_limits<double>::infinity()"},
        {-INFINITY, "-std::numeric_limits<float>::infinity()", "-std::numeric_limits<double>::infinity()"},
        {NAN, "std::numeric_limits<float>::quiet_NaN()", "std::numeric_limits<double>::quiet_NaN()"},
    };
    for (const auto& row : rows) {
        CHECK(float_text(row.number, false) == row.as_float);
        CHECK(float_text(row.number, true) == row.as_double);
    }
    const float least = std::nextafter(0.0f, 1.0f);
    CHECK(std::strtof(float_text(least, false).c_str(), nullptr) == least);
}

TEST_CASE("literals have the type in which kernels compute") {
    const struct {
        int64_t number;
        ElementType type;
        const char* text;
    } rows[] = {
        {3, float32, "Expr(3.0f)"},
        {3, float16, "Expr(3.0f)"},
        {3, float64, "Expr(3.0)"},
        {1, boolean, "cast<bool>(1)"},
        {0, boolean, "cast<bool>(0)"},
        {-7, int32, "Expr(-7)"},
        {INT32_MIN, int32, "Expr(int32_t(-2147483648))"},
        {-7, int8, "Expr(int8_t(-7))"},
        {255, uint8, "Expr(uint8_t(255))"},
        {INT64_MAX, int64, "Expr(int64_t(9223372036854775807))"},
        {INT64_MIN, int64, "Expr(std::numeric_limits<int64_t>::min())"},
        {-1, uint64, "Expr(uint64_t(18446744073709551615u))"},
    };
    for (const auto& row : rows) CHECK(KernelSource::literal(row.number, row.type) == row.text);
    CHECK(KernelSource::literal(0.5, float32) == "Expr(0.5f)");
    CHECK(KernelSource::literal(0.5, float64) == "Expr(0.5)");
}

TEST_CASE("kernels compute narrow floats as float and bytes of bool as conditions") {
    const std::pair<ElementType, const char*> rows[] = {{float32, "float"},  {float16, "float"}, {bfloat16, "float"},
                                                        {float64, "double"}, {boolean, "bool"},  {int8, "int8_t"},
                                                        {uint64, "uint64_t"}};
    for (const auto& [type, text] : rows) CHECK(KernelSource::compute_type(type) == text);
}

TEST_CASE("elements are read as they are computed with") {
    const TensorType scalar(float32, {});
    Loose half("half", {float16, {2, 3}}), flag("flag", {boolean, {2, 3}}), plain("plain", {float32, {2, 3}}),
        two("two", scalar), sized("sized", {int64, {}});
    two.known = KnownElements{{}, {2}};
    sized.known = KnownElements{{Dim::symbol("batch") * 2}, {}};
    Loose result("y", {float32, {2, 3}});
    KernelSource source = source_of(result);
    const Coordinates at = source.vars(2);
    const struct {
        const Value* value;
        const char *read, *element;
    } rows[] = {
        {&plain, "plain(x, y)", "plain(x, y)"},
        {&half, "cast<float>(half(x, y))", "half(x, y)"},
        {&flag, "(flag(x, y) != 0)", "flag(x, y)"},
        {&two, "Expr(2.0f)", "Expr(2.0f)"},
        {&sized, "cast<int64_t>((batch * 2))", "cast<int64_t>((batch * 2))"},
    };
    for (const auto& row : rows) {
        CHECK(source.read(row.value, at) == row.read);
        CHECK(source.element(row.value, at) == row.element);
    }
    CHECK(source.inputs() == std::vector<const Value*>{&plain, &half, &flag});  // literals are no inputs
    CHECK(source.symbols() == std::set<std::string>{"batch"});
}

TEST_CASE("coordinates are printed in the order of the layout") {
    const TensorType image(float32, {1, 3, 8, 4});
    Loose rows("rows", image), last("last", image, channels_last(4)), channel("channel", {float32, {3, 1, 1}}),
        result("y", image, channels_last(4));
    KernelSource source = source_of(result);
    const Coordinates at = source.vars(4);
    CHECK(at == Coordinates{"n", "c", "y", "x"});
    CHECK(source.read(&rows, at) == "rows(x, y, c, n)");
    CHECK(source.read(&last, at) == "last(c, x, y, n)");
    CHECK(source.read_broadcast(&channel, at) == "channel(0, 0, c)");
    CHECK(source.read_broadcast(&last, at) == "last(c, x, y, 0)");
    const Loops loops = source.output_loops();
    CHECK(loops.func == "y_2");  // the Var y has the name
    CHECK(loops.vars == std::vector<std::string>{"c", "x", "y", "n"});
    CHECK(loops.extents == std::vector<Dim>{3, 4, 8, 1});
}

TEST_CASE("Vars of a rank always have the same names") {
    Loose result("out", {float32, {}});
    KernelSource source = source_of(result);
    CHECK(source.vars(0).empty());
    CHECK(source.vars(3) == Coordinates{"z", "y", "x"});
    CHECK(source.vars(5) == Coordinates{"n", "c", "z", "y", "x"});
    CHECK(source.vars(6) == Coordinates{"d0", "d1", "d2", "d3", "d4", "d5"});
    CHECK(KernelSource::axis("r", 1) == "r.y");
    CHECK(KernelSource::axis("r", 4) == "r[4]");
}

TEST_CASE("a class reads as if written by hand") {
    const Dim batch = Dim::symbol("batch");
    Loose image("image", {float32, {batch, 4}}), scale("scale", {float32, {4}}), sum("sum", {float32, {batch}}),
        result("out", {float16, {batch}});
    KernelSource source(avx2, "sum_out", {&sum, &result}, {&result});
    const Coordinates at = source.vars(1);
    source.comment("Node 0  sum = Sum(image, scale)");
    const std::string k = source.rdom("k", {4});
    source.store(&sum, at, "0.0f");
    const std::string pixel = source.read(&image, {"x", k}), factor = source.read(&scale, {k});
    source.line("sum_2(x) += " + pixel + " * " + factor + ";");
    source.comment("Node 1  out = Cast(sum)");
    source.define(&result, at, source.read(&sum, at));
    source.param("lanes", 8);
    source.schedule("out", {"vectorize(x, lanes)", "parallel(x)"});
    CHECK(source.text() == R"(class sum_out : public Halide::Generator<sum_out> {
public:
    GeneratorParam<int> lanes{"lanes", 8};

    Input<Buffer<float, 2>> image{"image"};  // 4, batch
    Input<Buffer<float, 1>> scale{"scale"};  // 4
    Input<int32_t> batch{"batch"};
    Output<Buffer<float16_t, 1>> out{"out"};  // batch

    void generate() {
        onnx::dense(image, {4, batch});
        onnx::dense(scale, {4});
        onnx::dense(out, {batch});

        // Node 0  sum = Sum(image, scale)
        k = RDom(0, 4);
        sum_2(x) = 0.0f;
        sum_2(x) += image(k, x) * scale(k);

        // Node 1  out = Cast(sum)
        out(x) = cast<float16_t>(sum_2(x));
    }

    void schedule() {
        if (using_autoscheduler()) {
            batch.set_estimate(16);
            onnx::estimate(image, {4, 16});
            onnx::estimate(scale, {4});
            onnx::estimate(out, {16});
            return;
        }
        out.vectorize(x, lanes)
            .parallel(x);
    }

private:
    Var x{"x"};
    RDom k;
    Func sum_2{"sum_2"};
};
HALIDE_REGISTER_GENERATOR(sum_out, sum_out)
)");
    const std::string naive = source.text(KernelSource::Schedule::naive);
    CHECK(naive.find("        sum_2.compute_root();\n") != std::string::npos);
    CHECK(naive.find("vectorize") == std::string::npos);
}

TEST_CASE("equal computations on values of other names have the same canonical text") {
    const auto text = [](const char* in, const char* out, ElementType type, int64_t width) {
        Loose input(in, {type, {2, width}}), result(out, {type, {2, width}});
        KernelSource source = source_of(result, KernelSource::Naming::canonical);
        const Coordinates at = source.vars(2);
        source.store(&result, at, "-" + source.element(&input, at));
        return source.text();
    };
    CHECK(text("a", "b", float32, 8) == text("c", "d", float32, 8));
    CHECK(text("a", "b", float32, 8) != text("a", "b", float32, 9));
    CHECK(text("a", "b", float32, 8) != text("a", "b", int32, 8));
}

TEST_CASE("tails of split loops never write where they must not") {
    const Dim batch = Dim::symbol("batch"), many = Dim::symbol("many", 8);
    const struct {
        Dim extent;
        bool may_recompute;
        const char* tail;
    } rows[] = {
        {16, false, "TailStrategy::RoundUp"},       {16, true, "TailStrategy::RoundUp"},
        {17, false, "TailStrategy::GuardWithIf"},   {17, true, "TailStrategy::ShiftInwards"},
        {7, true, "TailStrategy::GuardWithIf"},     {batch, true, "TailStrategy::GuardWithIf"},
        {many, true, "TailStrategy::ShiftInwards"}, {many, false, "TailStrategy::GuardWithIf"},
    };
    for (const auto& row : rows) CHECK(tail_strategy(row.extent, 8, row.may_recompute) == row.tail);
}

TEST_CASE("loops shorter than a vector that fill a smaller one are vectors") {
    const auto relu = [](const char* shape) {
        return kernel_text(fmt::format("x = input float32[{}]\ny = Relu(x)\noutput y", shape));
    };
    CHECK(relu("4").find(".vectorize(x);") != std::string::npos);
    CHECK(relu("2").find(".vectorize(x);") != std::string::npos);
    CHECK(relu("3").find("vectorize") == std::string::npos);
    CHECK(relu("n,16").find(".vectorize(x, lanes, TailStrategy::RoundUp);") != std::string::npos);
}

TEST_CASE("rows that leave vectors unfilled fill them together, unless that takes many") {
    const auto run = [](const std::string& rows, const std::string& row) {
        const std::string text = kernel_text(
            fmt::format("x = input float32[{0},{1}]\nb = input float32[{1}]\ny = Add(x, b)\noutput y", rows, row));
        const std::string split = ".split(xy, xy, run, ";
        const size_t at = text.find(split);
        if (at == std::string::npos) return std::string();
        return text.substr(at + split.size(), text.find(')', at) - at - split.size());
    };
    CHECK(run("n", "4") == "lanes, TailStrategy::GuardWithIf");
    CHECK(run("n", "3") == "3 * lanes, TailStrategy::GuardWithIf");
    CHECK(run("16", "10") == "5 * lanes, TailStrategy::RoundUp");
    CHECK(run("n", "11") == "");
    CHECK(run("n", "16") == "");
    CHECK(run("3", "3") == "");
    CHECK(run("n", "m") == "");
}

TEST_CASE("what a run may broadcast has a version of its own along the axis of vectors alone") {
    const auto specialised = [](const std::string& rows, const std::string& columns) {
        const std::string text = kernel_text(
            fmt::format("a = input float32[n,40]\nb = input float32[{},{}]\ny = Add(a, b)\noutput y", rows, columns));
        const size_t at = text.find(".specialize(");
        return at == std::string::npos ? "" : text.substr(at, text.find(';', at) - at);
    };
    CHECK(specialised("n", "m") == ".specialize(m > 1)");
    CHECK(specialised("m", "40") == "");
    CHECK(specialised("m", "k") == ".specialize(k > 1)");
}

TEST_CASE("versions of tiles are for what is not broadcast") {
    const Dim rows = Dim::symbol("rows");
    Loose result("result", {float32, {rows, Dim::symbol("n")}});
    const auto versions = [&](const Dim& extent, const std::string& stage) {
        KernelSource source(avx2, "kernel", {&result}, {&result});
        source.broadcast_coordinate(extent, *result.type, 1, "x");
        source.schedule_versions(stage, "tile_versions(rows, 8)", {"parallel(y)"});
        const std::string text = source.text();
        const size_t at = text.find("tile.of(");
        return text.substr(at, text.find('\n', at) - at);
    };
    CHECK(versions(Dim::symbol("m"), "result") == "tile.of(result, m > 1)");
    CHECK(versions(Dim::symbol("n"), "result") == "tile.of(result)");
    CHECK(versions(Dim::symbol("m"), "sum.update()") == "tile.of(sum.update())");
}

}  // namespace onnx2halide
