#include "ops/schedule/read_ahead.h"

#include <catch2/catch.hpp>

namespace onnx2halide {

TEST_CASE("operands in a far cache are distant, in runs longer than cache lines but not pages") {
    const Target target = Target::parse("x86-64-linux-avx512_skylake");
    CHECK(is_distant(2 << 20, 256, target));
    CHECK_FALSE(is_distant(1 << 20, 256, target));
    CHECK_FALSE(is_distant(2 << 20, 32, target));
    CHECK_FALSE(is_distant(2 << 20, 3072 * 4, target));
}

TEST_CASE("distant operands are prefetched but on targets that follow runs") {
    CHECK(prefetches_distant(2 << 20, 256, Target::parse("x86-64-linux-avx512_skylake")));
    CHECK(prefetches_distant(2 << 20, 256, Target::parse("arm-64-linux")));
    CHECK_FALSE(prefetches_distant(2 << 20, 256, Target::parse("x86-64-linux-avx2-fma-f16c-avx-sse41")));
}

TEST_CASE("the next weights are prefetched during the sums for many items") {
    CHECK(hides_next_weights(49, 1 << 20));
    CHECK_FALSE(hides_next_weights(1, 1 << 20));
    CHECK_FALSE(hides_next_weights(49, 1 << 15));
}

TEST_CASE("few iterations are unrolled, which divide the loop") {
    CHECK(unrolled_iterations(144) == 4);
    CHECK(unrolled_iterations(18) == 2);
    CHECK(unrolled_iterations(37) == 1);
}

TEST_CASE("a prefetch is of the same loop, some iterations later") {
    CHECK(prefetch("image", "ci", "pixels * 144 / 4") ==
          "prefetch(image, ci, ci, pixels * 144 / 4, PrefetchBoundStrategy::NonFaulting)");
}

}  // namespace onnx2halide
