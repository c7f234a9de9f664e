#include "ops/read_ahead.h"

#include <catch2/catch.hpp>

namespace onnx2halide {

TEST_CASE("operands in a far cache are prefetched, in runs longer than cache lines but not pages") {
    CHECK(is_distant(2 << 20, 256));
    CHECK_FALSE(is_distant(1 << 20, 256));
    CHECK_FALSE(is_distant(2 << 20, 32));
    CHECK_FALSE(is_distant(2 << 20, 3072 * 4));
}

TEST_CASE("iterations that read a cache line are unrolled, and prefetch the same line of the next tile") {
    CHECK(turns_of_line(144, 4) == 16);
    CHECK(turns_of_line(24, 4) == 8);
    CHECK(turns_of_line(37, 4) == 1);
    CHECK(turns_of_line(64, 2) == 32);
    CHECK(
        read_ahead({"image", 144}, "ci", 16, "pixels") ==
        Directives{"unroll(ci, 16)", "prefetch(image, ci, ci, pixels * 144 / 16, PrefetchBoundStrategy::NonFaulting)"});
}

}  // namespace onnx2halide
