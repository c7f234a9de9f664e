#include "compiler/graph/tensor_type.h"

#include <catch2/catch.hpp>

namespace onnx2halide {

namespace {

using enum ElementType;

TensorType with_layout(TensorType type, Layout layout) {
    type.layout = std::move(layout);
    return type;
}

}  // namespace

TEST_CASE("the table of element types is indexed by their numbers") {
    for (int i = 0; i <= static_cast<int>(int2); ++i)
        CHECK(static_cast<int>(info(static_cast<ElementType>(i)).type) == i);
    CHECK(info(static_cast<ElementType>(99)).type == undefined);
    CHECK(info(static_cast<ElementType>(-2)).type == undefined);
}

TEST_CASE("kinds of element types") {
    const auto kinds = [](ElementType type) {
        return std::string(is_float(type) ? "float " : "") + (is_narrow_float(type) ? "narrow " : "") +
               (is_integer(type) ? "integer " : "") + (is_minifloat(type) ? "minifloat " : "") +
               (is_packed(type) ? "packed " : "") + std::to_string(info(type).bytes);
    };
    const std::pair<ElementType, const char*> rows[] = {
        {float32, "float 4"},
        {float64, "float 8"},
        {float16, "float narrow 2"},
        {bfloat16, "float narrow 2"},
        {boolean, "1"},
        {uint8, "integer 1"},
        {int8, "integer 1"},
        {uint16, "integer 2"},
        {int16, "integer 2"},
        {int32, "integer 4"},
        {uint32, "integer 4"},
        {int64, "integer 8"},
        {uint64, "integer 8"},
        {string, "8"},
        {complex64, "8"},
        {float8e4m3fn, "minifloat 1"},
        {float8e5m2fnuz, "minifloat 1"},
        {float8e8m0, "minifloat 1"},
        {float4e2m1, "minifloat packed 1"},
        {int4, "packed 1"},
        {uint2, "packed 1"},
    };
    for (const auto& [type, expected] : rows) {
        INFO(info(type).name);
        CHECK(kinds(type) == expected);
    }
}

TEST_CASE("packed elements share bytes") {
    CHECK(TensorType(int4, {3, 5}).packed() == TensorType(uint8, {8}));
    CHECK(TensorType(float4e2m1, {2, 2}).packed() == TensorType(uint8, {2}));
    CHECK(TensorType(uint2, {}).packed() == TensorType(uint8, {1}));
    CHECK(TensorType(int2, {0, 3}).packed() == TensorType(uint8, {0}));
    CHECK(TensorType(float8e5m2, {3}).packed() == TensorType(float8e5m2, {3}));
    CHECK(TensorType(int4, {Dim::symbol("n"), 4}).packed() == TensorType(uint8, {Dim::symbol("n") * 2}));
}

TEST_CASE("layouts list axes innermost first") {
    const struct {
        size_t rank;
        Layout row_major, channels_last;
    } rows[] = {
        {0, {}, {}},
        {1, {0}, {0}},
        {2, {1, 0}, {1, 0}},
        {3, {2, 1, 0}, {1, 2, 0}},
        {4, {3, 2, 1, 0}, {1, 3, 2, 0}},
        {5, {4, 3, 2, 1, 0}, {1, 4, 3, 2, 0}},
    };
    for (const auto& row : rows) {
        CHECK(row_major(row.rank) == row.row_major);
        CHECK(channels_last(row.rank) == row.channels_last);
    }
}

TEST_CASE("size, memory order and text of a tensor type") {
    const Dim batch = Dim::symbol("batch");
    TensorType type(float32, {batch, 3, 8, 4});
    CHECK(type.text() == "float32 [batch, 3, 8, 4]");
    CHECK(type.elements().text() == "(batch * 96)");
    CHECK(type.bytes().text() == "(batch * 384)");
    CHECK(type.extents() == std::vector<Dim>{4, 8, 3, batch});
    CHECK(type.is_row_major());
    type.layout = channels_last(4);
    CHECK(type.extents() == std::vector<Dim>{3, 4, 8, batch});
    CHECK_FALSE(type.is_row_major());
    CHECK(TensorType(boolean, {}).text() == "bool scalar");
    CHECK(TensorType(boolean, {}).bytes() == Dim(1));
}

TEST_CASE("memory order is the same if axes longer than 1 have the same order") {
    const TensorType image(float32, {1, 3, 8, 4}), one_channel(float32, {2, 1, 8, 4});
    const TensorType image_last = with_layout(image, channels_last(4));
    const struct {
        TensorType a;
        std::vector<int> axes;
        TensorType b;
        bool same;
    } rows[] = {
        {image, {0, 1, 2, 3}, image, true},
        {image, {0, 1, 2, 3}, image_last, false},
        {one_channel, {0, 1, 2, 3}, with_layout(one_channel, channels_last(4)), true},
        {image_last, {0, 2, 3, 1}, TensorType(float32, {1, 8, 4, 3}), true},  // Transpose to NHWC moves nothing
        {image, {0, 2, 3, 1}, TensorType(float32, {1, 8, 4, 3}), false},
        {image, {1, 2, 3}, TensorType(float32, {3, 8, 4}), true},  // Squeeze
    };
    for (const auto& row : rows) CHECK(same_memory_order(row.a, row.axes, row.b) == row.same);
}

}  // namespace onnx2halide
