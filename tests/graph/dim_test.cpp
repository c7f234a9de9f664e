#include "compiler/graph/dim.h"

#include <catch2/catch.hpp>

#include <random>

#include "compiler/graph/error.h"

namespace onnx2halide {

namespace {

const Dim b = Dim::symbol("b"), s = Dim::symbol("s"), h = Dim::symbol("h");
const Dim past = Dim::symbol("past", 0, 2048), tile = Dim::symbol("tile", 4, 16);

using Bounds = std::pair<std::optional<int64_t>, std::optional<int64_t>>;

std::string quotient_text(const Dim& a, const Dim& divisor) {
    const auto quotient = exact_div(a, divisor);
    return quotient ? quotient->text() : "none";
}

}  // namespace

TEST_CASE("dims print as Halide and as C") {
    const struct {
        Dim dim;
        const char *halide, *c;
    } rows[] = {
        {0, "0", "0"},
        {-3, "-3", "-3"},
        {b, "b", "b"},
        {b * 12, "(b * 12)", "(b * 12)"},
        {-b, "(-b)", "(-b)"},
        {2 + b, "(b + 2)", "(b + 2)"},
        {b - 1, "(b - 1)", "(b - 1)"},
        {1 - b, "(-b + 1)", "(-b + 1)"},
        {s * b * 2 - h, "(b * s * 2 - h)", "(b * s * 2 - h)"},
        {floor_div(b, 2), "(b / 2)", "floor_div(b, 2)"},
        {floor_div(b + s, h), "((b + s) / h)", "floor_div((b + s), h)"},
        {floor_mod(b, 2), "(b % 2)", "floor_mod(b, 2)"},
        {ceil_div(b, 2), "((b + 1) / 2)", "floor_div((b + 1), 2)"},
        {min(b, s), "min(b, s)", "min_dim(b, s)"},
        {max(b, 7), "max(b, 7)", "max_dim(b, 7)"},
        {max(b, 7) * 2 + 1, "(max(b, 7) * 2 + 1)", "(max_dim(b, 7) * 2 + 1)"},
    };
    for (const auto& row : rows) {
        CHECK(row.dim.text(DimSyntax::halide) == row.halide);
        CHECK(row.dim.text(DimSyntax::c) == row.c);
    }
    CHECK(shape_text({}) == "scalar");
    CHECK(shape_text({1, 3, 8}) == "1x3x8");
    CHECK(shape_text({1, b, b * 2}) == "[1, b, (b * 2)]");
}

TEST_CASE("equal dims are the same expression") {
    const struct {
        Dim left, right;
    } rows[] = {
        {b * s * h, h * b * s},
        {(b + 1) * (s + 2), b * s + 2 * b + s + 2},
        {b - b, 0},
        {product(std::vector<Dim>{b, s, 768}), b * s * 768},
        {product({}), 1},
        {floor_div(b * s * 768, b * 12), s * 64},
        {floor_div(b * 4 + 3, 4), b},
        {floor_div(b * 4 - 1, 4), b - 1},
        {floor_div(b * 4 + s, 4), b + floor_div(s, 4)},
        {floor_div(b, -2), floor_div(-b, 2)},
        {ceil_div(b * 4 + 1, 4), b + 1},
        {floor_mod(b * 4, 4), 0},
        {floor_mod(b * 4 + 5, 4), 1},
        {floor_mod(b * 5 + s * 4, 4), floor_mod(b, 4)},
        {floor_mod(b, 1), 0},
        {min(b, b), b},
        {min(b, 0), 0},
        {min(tile, 3), 3},
        {min(tile, 16), tile},
        {max(tile, 4), tile},
        {max(b + 1, b), b + 1},
        {max(s, b), max(b, s)},
        {max(b, max(b, s)), max(b, s)},
        {max(max(s, h), max(b, s)), max(b, max(s, h))},
        {max(max(b, 3), max(s, 5)), max(max(b, s), 5)},
        {min(b, min(s, b)), min(b, s)},
        {min(b, max(b, s)), b},
        {max(min(b, s), b), b},
        {max(max(b, s), max(b, s) + 1), max(b, s) + 1},
        {floor_div(floor_div(b + 1, 2) + 1, 2), floor_div(b + 3, 4)},
        {floor_div(floor_div(floor_div(b, 2), 3) - 1, 4), floor_div(b - 6, 24)},
        {floor_div(floor_div(b * 3 + 1, 2), 2), floor_div(b * 3 + 1, 4)},
        {floor_div(floor_div(b, 2) + s * h, 3), floor_div(b + s * h * 2, 6)},
        {floor_div(extent_of(b * 16 - s * 8), 4), extent_of(b * 2 - s) * 2},
    };
    for (const auto& row : rows) {
        CHECK(row.left == row.right);
        CHECK(row.left.text() == row.right.text());
    }
}

TEST_CASE("dims with other factors, atoms or terms are different expressions") {
    const struct {
        Dim left, right;
    } rows[] = {{b, 0}, {b, s}, {b, b + 1}, {b * 2, b * 3}, {b * s, b * h}, {b * b, b}, {max(b, s), min(b, s)}};
    for (const auto& row : rows) CHECK_FALSE(row.left == row.right);
}

TEST_CASE("integer divisions of dims round down") {
    const struct {
        int64_t a, b, quotient, remainder, ceiling;
    } rows[] = {
        {7, 2, 3, 1, 4}, {-7, 2, -4, 1, -3}, {7, -2, -4, -1, -3}, {-7, -2, 3, -1, 4}, {6, 3, 2, 0, 2}, {0, 5, 0, 0, 0},
    };
    for (const auto& row : rows) {
        CHECK(floor_div(Dim(row.a), row.b) == Dim(row.quotient));
        CHECK(floor_mod(Dim(row.a), row.b) == Dim(row.remainder));
        CHECK(ceil_div(Dim(row.a), row.b) == Dim(row.ceiling));
    }
}

TEST_CASE("exact division cancels factors or gives nothing") {
    const struct {
        Dim a, divisor;
        const char* quotient;
    } rows[] = {
        {b * s * 12, b * 4, "(s * 3)"},
        {b * s + b, b, "(s + 1)"},
        {b * 6, 4, "none"},
        {b, s, "none"},
        {b * s, b * b, "none"},
        {b + 1, b + 1, "1"},
        {(b + 1) * 2, b + 1, "2"},
        {b * (s * s * 4 + s * 136 + 1156), b * (s * s + s * 34 + 289), "4"},
        {(b + s) * (h - 3) * (b * h + 1), b * h + 1, "(-b * 3 + b * h + h * s - s * 3)"},
        {b * b - s * s, b + s, "(b - s)"},
        {b * b + s * s, b + s, "none"},
        {(b + 1) * 2 + 1, b + 1, "none"},
        {b * 2 + 1, b * 3 + 1, "none"},
        {b + 1, b * b, "none"},
        {b * INT64_MAX + s, b * 1 + s * INT64_MAX, "none"},
        {0, b, "0"},
        {0, 0, "none"},
        {b, 0, "none"},
        {past * 3, past, "3"},  // also where it may be 0: Reshape's -1 asks for the factor
        {INT64_MIN, -1, "none"},
    };
    for (const auto& row : rows) CHECK(quotient_text(row.a, row.divisor) == row.quotient);
}

TEST_CASE("bounds of dims follow from those of their symbols") {
    const std::optional<int64_t> none;
    const struct {
        Dim dim;
        Bounds bounds;
    } rows[] = {
        {5, {5, 5}},
        {INT64_MIN, {INT64_MIN, INT64_MIN}},
        {tile, {4, 16}},
        {tile * 3 - 1, {11, 47}},
        {-tile, {-16, -4}},
        {tile - past, {4 - 2048, 16}},
        {tile * past, {0, 16 * 2048}},
        {floor_div(past, tile), {0, 512}},
        {floor_mod(past, tile), {0, 15}},
        {floor_div(tile, past), {none, none}},
        {min(tile, past), {0, 16}},
        {max(tile, past), {4, 2048}},
        {b * s * h, {1, none}},  // beyond 64 bits
    };
    for (const auto& row : rows) {
        INFO(row.dim.text());
        CHECK(row.dim.bounds() == row.bounds);
    }
}

TEST_CASE("is_equal is 1, 0 or an expression") {
    const Dim axis = Dim::symbol("axis", -4, 3);
    CHECK(is_equal(b, b).is(1));
    CHECK(is_equal(tile, 3).is(0));
    CHECK(is_equal(axis, 1).bounds() == Bounds(0, 1));
    for (int64_t number = -4; number <= 3; ++number)
        CHECK(is_equal(axis, 1).substitute({{"axis", number}}).is(number == 1 ? 1 : 0));
}

TEST_CASE("questions about dims have three answers") {
    const struct {
        Dim a, b;
        Proof equal, less_equal;
    } rows[] = {
        {2, 2, Proof::yes, Proof::yes},
        {2, 3, Proof::no, Proof::yes},
        {3, 2, Proof::no, Proof::no},
        {b, s, Proof::unknown, Proof::unknown},
        {b, b + 1, Proof::no, Proof::yes},
        {b * s, s * b, Proof::yes, Proof::yes},
        {tile, 3, Proof::no, Proof::no},
        {tile, 4, Proof::unknown, Proof::unknown},
        {tile, 16, Proof::unknown, Proof::yes},
        {0, past, Proof::unknown, Proof::yes},
        {1, b, Proof::unknown, Proof::yes},
        {b, b * 2, Proof::no, Proof::yes},
        {INT64_MIN, INT64_MAX, Proof::no, Proof::yes},
        {INT64_MAX, INT64_MIN, Proof::no, Proof::no},
        {b, max(b, s), Proof::unknown, Proof::yes},
        {min(b, s), min(b, 3), Proof::unknown, Proof::unknown},
        {min(b, min(s, 3)), min(b, 5), Proof::unknown, Proof::yes},
        {max(b, s), max(h, max(b, s)), Proof::unknown, Proof::yes},
        {min(b, s), max(s, h), Proof::unknown, Proof::yes},
        {INT64_MIN, b, Proof::unknown, Proof::unknown},  // their difference exceeds 64 bits
    };
    for (const auto& row : rows) {
        INFO(row.a.text() << " and " << row.b.text());
        CHECK(prove_equal(row.a, row.b) == row.equal);
        CHECK(prove_less_equal(row.a, row.b) == row.less_equal);
    }
}

TEST_CASE("dims that overflow 64 bits are errors in the model") {
    const Dim large = int64_t{1} << 62;
    CHECK_THROWS_WITH(large + large, "a dimension exceeds 64 bits");
    CHECK_THROWS_WITH(large * 2, "a dimension exceeds 64 bits");
    CHECK_THROWS_WITH(b * large * 2, "a dimension exceeds 64 bits");
    CHECK_THROWS_WITH(-Dim(INT64_MIN), "a dimension exceeds 64 bits");
    CHECK_THROWS_WITH(floor_div(Dim(INT64_MIN), -1), "a dimension exceeds 64 bits");
    CHECK_THROWS_WITH(floor_div(b, 0), "a dimension is divided by 0");
    CHECK_THROWS_WITH(floor_mod(b, 0), "a dimension is divided by 0");
    CHECK_THROWS_AS(large * 2, CompileError);
}

TEST_CASE("symbols of a dim are listed and replaced") {
    const Dim dim = floor_div(b * s, 4) + max(h, 2) - floor_mod(past, tile) + min(b, 3);
    CHECK(dim.symbols() == std::set<std::string>{"b", "h", "past", "s", "tile"});
    CHECK(Dim(5).symbols().empty());
    CHECK(dim.substitute({{"b", 6}, {"h", 1}, {"past", 9}, {"tile", 4}}).text() == Dim(floor_div(s * 6, 4) + 4).text());
    CHECK(dim.substitute({{"b", 6}, {"h", 1}, {"past", 9}, {"tile", 4}, {"s", 3}}) == Dim(4 + 2 - 1 + 3));
    CHECK((b + s).substitute({{"b", s}}).text() == "(s * 2)");
}

TEST_CASE("whether a dim is positive is a condition in Halide's syntax") {
    const Dim excess = max(s - 50, Dim(0));
    CHECK((min(excess, Dim(1)) * 99).text() == "(select((s - 50) > 0, 1, 0) * 99)");
    CHECK((min(excess, Dim(1)) * 99).text(DimSyntax::c) == "(min_dim(max_dim((s - 50), 0), 1) * 99)");
    CHECK(min(excess, Dim(2)).text() == "min(max((s - 50), 0), 2)");
}

TEST_CASE("an extent is not negative, whatever the bounds of its number") {
    const Dim left = Dim::symbol("left", -Dim::unbounded), right = Dim::symbol("right", -Dim::unbounded);
    const Dim extent = extent_of(left + right);
    CHECK(extent.text() == "(left + right)");
    CHECK(extent == left + right);
    CHECK(extent.lower_bound() == 0);
    CHECK(prove_equal(extent, -1) == Proof::no);
    CHECK(prove_equal(left + right, -1) == Proof::unknown);
    CHECK(is_equal(extent, -1) == Dim(0));
    CHECK(extent - extent_of(left + right) == Dim(0));
    CHECK(extent.symbols() == std::set<std::string>{"left", "right"});
    CHECK(extent.substitute({{"left", 3}, {"right", 4}}) == Dim(7));
    const Dim height = Dim::symbol("height");
    CHECK(prove_less_equal(0, extent.number_of_extent().value()) == Proof::unknown);
    CHECK((extent * 4).number_of_extent() == (left + right) * 4);
    CHECK_FALSE((extent + 1).number_of_extent());
    CHECK(extent_of(height) == height);
    CHECK(extent_of(7) == Dim(7));
}

TEST_CASE("symbols and bounds of expressions with shared operands are found fast") {
    Dim dim = Dim::symbol("n");
    // Its text contains the symbol hundreds of times.
    for (int i = 0; i < 8; ++i) dim = max(dim - 3, floor_div(dim, 2) * 2 + i);
    CHECK(dim.symbols() == std::set<std::string>{"n"});
    CHECK(dim.lower_bound().has_value());
}

TEST_CASE("nested minima and maxima are compared fast") {
    Dim low = 0, high = 0;
    for (int i = 0; i < 24; ++i) {
        const Dim left = Dim::symbol("left" + std::to_string(i)), right = Dim::symbol("right" + std::to_string(i));
        low = i % 2 ? min(low + left, right) : max(low, right) + left;
        high = i % 2 ? max(high, left) : min(high + right, left);
    }
    CHECK(prove_less_equal(low, high) == Proof::unknown);
    CHECK(prove_less_equal(high, low) == Proof::unknown);
}

// Whatever form an expression takes, its values are those of plain arithmetic and within its bounds.
TEST_CASE("random dims agree with 64-bit arithmetic") {
    std::mt19937 random(7);
    const auto below = [&](int64_t end) { return static_cast<int64_t>(random() % static_cast<uint32_t>(end)); };
    const auto floored = [](int64_t p, int64_t q) { return p / q - (p % q != 0 && (p < 0) != (q < 0)); };
    for (int round = 0; round < 3000; ++round) {
        const std::map<std::string, int64_t> values = {
            {"past", below(2049)}, {"tile", 4 + below(13)}, {"b", 1 + below(50)}};
        std::vector<std::pair<Dim, int64_t>> known = {
            {past, values.at("past")}, {tile, values.at("tile")}, {b, values.at("b")}};
        for (int i = 0; i < 5; ++i) known.emplace_back(i - 2, i - 2);
        for (int i = 0; i < 6; ++i) {
            const auto [x, p] = known[random() % known.size()];
            const auto [y, q] = known[random() % known.size()];
            if (std::abs(p) > 1000000 || std::abs(q) > 1000000) continue;
            switch (below(7)) {
            case 0: known.emplace_back(x + y, p + q); break;
            case 1: known.emplace_back(x - y, p - q); break;
            case 2: known.emplace_back(x * y, p * q); break;
            case 3: known.emplace_back(min(x, y), std::min(p, q)); break;
            case 4: known.emplace_back(max(x, y), std::max(p, q)); break;
            case 5:
                if (q != 0 && !y.is(0)) known.emplace_back(floor_div(x, y), floored(p, q));
                break;
            default:
                if (q != 0 && !y.is(0)) known.emplace_back(floor_mod(x, y), p - q * floored(p, q));
            }
        }
        const auto& [dim, expected] = known.back();
        INFO(dim.text() << " with past " << values.at("past") << ", tile " << values.at("tile") << ", b "
                        << values.at("b"));
        const Dim number = dim.substitute({values.begin(), values.end()});
        REQUIRE(number == Dim(expected));
        REQUIRE(dim.lower_bound().value_or(INT64_MIN) <= expected);
        REQUIRE(dim.upper_bound().value_or(INT64_MAX) >= expected);
    }
}

}  // namespace onnx2halide
