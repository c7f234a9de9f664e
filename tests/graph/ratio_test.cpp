#include "compiler/graph/ratio.h"

#include <catch2/catch.hpp>

#include <cmath>

namespace onnx2halide {

namespace {

const Dim n = Dim::symbol("n", -Dim::unbounded);

/// A computation with a size, in floats and as a ratio.
struct Row {
    const char* name;
    float (*rounded)(float n);
    std::optional<Ratio> (*ratio)(const Ratio& n);
};

std::optional<Ratio> number(double value) { return Ratio::of(value); }

const Row rows[] = {
    {"n / 3", [](float n) { return n / 3; }, [](const Ratio& n) { return n / *number(3); }},
    {"n / -6", [](float n) { return n / -6; }, [](const Ratio& n) { return n / *number(-6); }},
    {"n * 0.75", [](float n) { return n * 0.75f; }, [](const Ratio& n) { return n * *number(0.75); }},
    {"n / 0.75", [](float n) { return n / 0.75f; }, [](const Ratio& n) { return n / *number(0.75); }},
    {"n / 320 + 1", [](float n) { return n / 320 + 1; },
     [](const Ratio& n) { return *(n / *number(320)) + *number(1); }},
    {"(n - 0.5) / 7", [](float n) { return (n - 0.5f) / 7; },
     [](const Ratio& n) { return *(n - *number(0.5)) / *number(7); }},
    {"n / 49 - n", [](float n) { return n / 49 - n; }, [](const Ratio& n) { return *(n / *number(49)) - n; }},
    {"n / 6 / 10", [](float n) { return n / 6 / 10; }, [](const Ratio& n) { return *(n / *number(6)) / *number(10); }},
};

}  // namespace

TEST_CASE("ratios round to the same integers as floats") {
    for (const Row& row : rows) {
        INFO(row.name);
        const Ratio ratio = row.ratio({n}).value();
        const Dim ceil = ratio.ceil(), floor = ratio.floor(), round = ratio.round(), truncate = ratio.truncate();
        for (int64_t size = -3000; size < 3000; ++size) {
            const int64_t given = size % 2 ? size : size * 25;
            const float rounded = row.rounded(static_cast<float>(given));
            const auto is = [&](const Dim& dim, float expected) {
                return dim.substitute({{"n", given}}).is(static_cast<int64_t>(expected));
            };
            const bool agree = is(ceil, std::ceil(rounded)) && is(floor, std::floor(rounded)) &&
                               is(round, std::nearbyint(rounded)) && is(truncate, std::trunc(rounded));
            if (!agree) FAIL("of " << given);
        }
    }
}

TEST_CASE("there is no ratio where rounded floats might give other integers") {
    const Ratio third = *(Ratio{n} / *number(3));
    CHECK_FALSE(third * *number(3));
    CHECK_FALSE(third + third);
    CHECK_FALSE(Ratio{n} / Ratio{n});
    CHECK_FALSE(Ratio{n} / *number(0));
    CHECK_FALSE(*(third / *number(100)) / *number(100));
    CHECK_FALSE(Ratio{n} * *number(1000));
    for (const double inexact : {0.1, 1e9, 1e-9, 4097.0, double(INFINITY), double(NAN)}) CHECK_FALSE(number(inexact));
}

TEST_CASE("ratios that are integers are dims") {
    CHECK(*(Ratio{n * 6} / *number(3)) == Ratio{n * 2});
    CHECK(*(*(Ratio{n} * *number(0.5)) * *number(2)) == Ratio{n});
    CHECK(*(Ratio{n} / *number(8)) == Ratio{n, 8});
    CHECK(Ratio{n, 8}.ceil().text() == "((n + 7) / 8)");
    CHECK(*number(-2.5) == Ratio{-5, 2});
    CHECK(*number(0) == Ratio{0});
}

}  // namespace onnx2halide
