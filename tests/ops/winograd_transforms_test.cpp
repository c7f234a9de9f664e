#include "templates/onnx2halide_winograd.h"

#include <utility>

#include <catch2/catch.hpp>

namespace {

double value(const Expr& expression) {
    const Expr simplified = Internal::simplify(cast<double>(expression));
    const auto* constant = simplified.as<Internal::FloatImm>();
    REQUIRE(constant);
    return constant->value;
}

/// An element that no other one is a simple multiple of.
Expr element(int i) { return cast<double>(i % 3 * 4 - 5) * (1 + i) / 4 + cast<double>(1) / (i + 2); }
Expr weight(int i) { return cast<double>(3 - i) / (i + 1) + cast<double>(3 * i) / 8; }

template <int taps, int places>
void check_filter() {
    constexpr int outputs = places - taps + 1;
    INFO(taps << " taps, " << places << " places");
    const auto product = [](int place) {
        return onnx::winograd::input<places>(place, element) * onnx::winograd::filter<taps, places>(place, weight);
    };
    for (int output = 0; output < outputs; ++output) {
        double expected = 0;
        for (int tap = 0; tap < taps; ++tap) expected += value(element(output + tap)) * value(weight(tap));
        CHECK(value(onnx::winograd::output<outputs, places>(output, product)) == Approx(expected).margin(1e-5));
    }
}

template <int places>
void check_lanes() {
    for (int place = 0; place < places; ++place) {
        const double lane = value(onnx::winograd::input_lanes<places>(place, element));
        CHECK(lane == Approx(value(onnx::winograd::input<places>(place, element))));
    }
}

int64_t integer_value(const Expr& expression) {
    const Expr simplified = Internal::simplify(cast<int64_t>(expression));
    const auto* constant = simplified.as<Internal::IntImm>();
    REQUIRE(constant);
    return constant->value;
}

/// Integers of 9 bits; the largest ones among them.
Expr integer(int i) { return cast<int16_t>(i % 2 == 0 ? 255 : i % 5 * 90 - 255); }
Expr integer_weight(int i) { return cast<int16_t>(i % 3 == 1 ? 37 - 80 * i : -255); }

template <int taps, int places>
void check_integers() {
    constexpr int outputs = places - taps + 1;
    INFO(taps << " taps, " << places << " places");
    const auto product = [](int place) {
        const Expr input = Internal::simplify(onnx::winograd::input<places>(place, integer)),
                   weight = Internal::simplify(onnx::winograd::filter<taps, places>(place, integer_weight));
        REQUIRE(input.type() == Int(16));
        REQUIRE(weight.type() == Int(16));
        return cast<uint32_t>(cast<int32_t>(input) * cast<int32_t>(weight));
    };
    for (int output = 0; output < outputs; ++output) {
        int64_t expected = 0;
        for (int tap = 0; tap < taps; ++tap)
            expected += integer_value(integer(output + tap)) * integer_value(integer_weight(tap));
        const Expr scaled = onnx::winograd::output<outputs, places>(output, product);
        CHECK(integer_value(onnx::winograd::quotient<places, 1>(scaled)) == expected);
    }
}

template <int places, int... taps>
void check_filters_of_integers(std::integer_sequence<int, taps...>) {
    (check_integers<taps + 2, places>(), ...);
}

template <int places, int... taps>
void check_filters(std::integer_sequence<int, taps...>) {
    (check_filter<taps + 2, places>(), ...);
    check_lanes<places>();
}

}  // namespace

TEST_CASE("Winograd's transforms compute the outputs of filters of all lengths", "[winograd]") {
    // From 2 taps to as many as leave two outputs.
    check_filters<3>(std::make_integer_sequence<int, 1>());
    check_filters<4>(std::make_integer_sequence<int, 2>());
    check_filters<5>(std::make_integer_sequence<int, 3>());
    check_filters<6>(std::make_integer_sequence<int, 4>());
    check_filters<7>(std::make_integer_sequence<int, 5>());
    check_filters<8>(std::make_integer_sequence<int, 6>());
}

TEST_CASE("Winograd's transforms of integers are exact", "[winograd]") {
    check_filters_of_integers<3>(std::make_integer_sequence<int, 1>());
    check_filters_of_integers<4>(std::make_integer_sequence<int, 2>());
    check_filters_of_integers<5>(std::make_integer_sequence<int, 3>());
    check_filters_of_integers<6>(std::make_integer_sequence<int, 4>());
}
