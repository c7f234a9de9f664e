#include "ops/conv/winograd_places.h"

#include <catch2/catch.hpp>

using namespace onnx2halide;

namespace {

KernelAxis axis(int kernel, int stride, int places) { return {kernel, stride, 1, places}; }

/// The loops of a square kernel that keeps an image's size.
WinogradLoops square(int64_t kernel, int64_t inputs, int64_t channels, int64_t size) {
    const WindowAxis one{kernel, 1, 1, kernel / 2, kernel / 2, size, size};
    return WinogradLoops({one, one}, 1, inputs, channels);
}

}  // namespace

TEST_CASE("kernels are divided into as many taps as minimise a tile's products", "[winograd]") {
    const auto is = [](const KernelAxis& axis, int taps, int parts, int outputs) {
        CHECK(axis.taps() == taps);
        CHECK(axis.parts() == parts);
        CHECK(axis.outputs() == outputs);
    };
    is(axis(3, 1, 4), 3, 1, 2);
    is(axis(3, 1, 8), 3, 1, 6);
    is(axis(3, 1, 5), 3, 1, 3);
    is(axis(3, 1, 7), 3, 1, 5);
    is(axis(5, 1, 6), 5, 1, 2);
    is(axis(5, 1, 7), 5, 1, 3);
    is(axis(5, 1, 8), 5, 1, 4);
    is(axis(6, 1, 6), 3, 2, 4);
    is(axis(7, 1, 6), 4, 2, 3);
    is(axis(7, 1, 8), 4, 2, 5);
    is(axis(9, 1, 6), 3, 3, 4);
    // With stride s, every s-th tap.
    is(axis(3, 2, 6), 2, 2, 5);
    is(axis(3, 2, 3), 2, 2, 2);
    is(axis(7, 2, 6), 4, 2, 3);
    is(axis(11, 4, 6), 3, 4, 4);
    is(axis(16, 2, 6), 4, 4, 3);
    is(axis(3, INT32_MAX, 1), 1, 3, 1);
    CHECK(axis(3, INT32_MAX, 1).taps_of_phase() == 1);
    // Without transforms a tile is a single output.
    is(axis(1, 1, 1), 1, 1, 1);
    is(axis(2, 2, 1), 1, 2, 1);
    CHECK_FALSE(axis(1, 1, 1).has_transforms(4));
    CHECK_FALSE(axis(3, 1, 1).has_transforms(1));
    CHECK(axis(3, 1, 1).has_transforms(5));
    CHECK_FALSE(axis(3, 1, 1).has_transforms(2));
    CHECK_FALSE(axis(3, 1, 1).has_transforms(9));
}

TEST_CASE("if rows are not transformed, their taps are parts, which share tiles", "[winograd]") {
    const KernelAxis stride_1 = axis(5, 1, 1), stride_2 = axis(5, 2, 1);
    CHECK(stride_1.parts() == 5);
    CHECK(stride_1.tiled_parts() == 1);
    CHECK(stride_1.shifts() == 5);
    CHECK(stride_2.parts() == 5);
    CHECK(stride_2.tiled_parts() == 2);
    const KernelAxis row = axis(3, 1, 1);
    CHECK(has_tiles({row, row}, {1, 6}));
    CHECK(has_tiles({row, axis(1, 1, 1)}, {6, 1}));
    CHECK_FALSE(has_tiles({row, row}, {1, 1}));
    CHECK_FALSE(has_tiles({row, row}, {6, 1}));
}

TEST_CASE("tiles of integers hold them exactly", "[winograd]") {
    const auto holds = [](int kernel, const PerAxis& places, int64_t largest_sum) {
        WinogradLoops loops = square(kernel, 64, 64, 28);
        loops.element = ElementType::int16;
        loops.largest_sum = largest_sum;
        return loops.with_places(places).holds_integers();
    };
    // The sums are multiplied by powers of two: 8 along an axis of 5 or 6 places, 2 along others.
    CHECK(holds(3, {6, 6}, INT32_MAX / 64));
    CHECK_FALSE(holds(3, {6, 6}, INT32_MAX / 64 + 1));
    CHECK(holds(3, {6, 4}, INT32_MAX / 16));
    CHECK_FALSE(holds(3, {6, 4}, INT32_MAX / 16 + 1));
    CHECK(holds(3, {1, 5}, INT32_MAX / 8));
    CHECK(holds(3, {4, 4}, INT32_MAX / 4));
    // Weights of 5 taps are up to 31 times as large at a place along each axis.
    CHECK_FALSE(holds(5, {6, 6}, 1));
    CHECK(holds(5, {1, 6}, 1));
    // There are no transforms of integers to more places.
    CHECK_FALSE(holds(3, {1, 8}, 1));
}

TEST_CASE("tiles are as large as pays off for images and kernels", "[winograd]") {
    const auto target = Target::parse("x86-64-linux-avx512_skylake");
    const auto tile = [&](const WinogradLoops& loops) { return choose_winograd(loops, {}, target).value().places; };
    const auto places = [&](const WinogradLoops& loops) { return tile(loops)[0] * tile(loops)[1]; };
    CHECK(places(square(3, 64, 64, 8)) <= 6 * 6);
    CHECK(places(square(3, 64, 64, 224)) == most_places);
    CHECK(places(square(5, 96, 96, 27)) == most_places);
    CHECK(places(square(11, 1, 16, 60)) == 8);
    // Tiles of 5 or 3 outputs leave less of an image of 14 unused than those of 4 and 6.
    const PerAxis of_14 = tile(square(3, 256, 256, 14));
    CHECK((of_14[0] % 2 == 1 || of_14[1] % 2 == 1));
    // Only direct convolutions write results to memory while they compute.
    CHECK_FALSE(choose_winograd(square(3, 1, 32, 400), {}, target));
    // A requested algorithm is used even if it is slower.
    CHECK_FALSE(choose_winograd(square(3, 1, 1, 4), {}, target));
    CHECK(choose_winograd(square(3, 1, 1, 4), {ConvAlgorithm::winograd}, target));
}
