#include "compiler/graph/tensor_type.h"

#include <algorithm>
#include <array>
#include <numeric>

#include <fmt/format.h>

#include "compiler/graph/box_type.h"
#include "compiler/graph/error.h"

namespace onnx2halide {

namespace {

using enum ElementType;

constexpr std::array<ElementInfo, 27> infos = {{
    {undefined, "undefined", "", "", 0, 0, false, false, false},
    {float32, "float32", "float", "float", 32, 4, true, false, true},
    {uint8, "uint8", "uint8_t", "uint8_t", 8, 1, false, true, false},
    {int8, "int8", "int8_t", "int8_t", 8, 1, false, true, true},
    {uint16, "uint16", "uint16_t", "uint16_t", 16, 2, false, true, false},
    {int16, "int16", "int16_t", "int16_t", 16, 2, false, true, true},
    {int32, "int32", "int32_t", "int32_t", 32, 4, false, true, true},
    {int64, "int64", "int64_t", "int64_t", 64, 8, false, true, true},
    {string, "string", "int64_t", "onnx2halide_string", 0, 8, false, false, true},
    {boolean, "bool", "uint8_t", "uint8_t", 8, 1, false, false, false},
    {float16, "float16", "float16_t", "uint16_t", 16, 2, true, false, true},
    {float64, "float64", "double", "double", 64, 8, true, false, true},
    {uint32, "uint32", "uint32_t", "uint32_t", 32, 4, false, true, false},
    {uint64, "uint64", "uint64_t", "uint64_t", 64, 8, false, true, false},
    {complex64, "complex64", "", "", 64, 8, false, false, true},
    {complex128, "complex128", "", "", 128, 16, false, false, true},
    {bfloat16, "bfloat16", "bfloat16_t", "uint16_t", 16, 2, true, false, true},
    {float8e4m3fn, "float8e4m3fn", "uint8_t", "uint8_t", 8, 1, false, false, true},
    {float8e4m3fnuz, "float8e4m3fnuz", "uint8_t", "uint8_t", 8, 1, false, false, true},
    {float8e5m2, "float8e5m2", "uint8_t", "uint8_t", 8, 1, false, false, true},
    {float8e5m2fnuz, "float8e5m2fnuz", "uint8_t", "uint8_t", 8, 1, false, false, true},
    {uint4, "uint4", "uint8_t", "uint8_t", 4, 1, false, false, false},
    {int4, "int4", "int8_t", "uint8_t", 4, 1, false, false, true},
    {float4e2m1, "float4e2m1", "uint8_t", "uint8_t", 4, 1, false, false, true},
    {float8e8m0, "float8e8m0", "uint8_t", "uint8_t", 8, 1, false, false, false},
    {uint2, "uint2", "uint8_t", "uint8_t", 2, 1, false, false, false},
    {int2, "int2", "int8_t", "uint8_t", 2, 1, false, false, true},
}};

constexpr ElementInfo box_info = {box, "box", "int64_t", "int64_t", 0, 8, false, false, true};

}  // namespace

const ElementInfo& info(ElementType type) {
    if (type == box) return box_info;
    const auto index = static_cast<size_t>(type);
    return infos[index < infos.size() ? index : 0];
}

ElementType element_type_of(int32_t code) {
    return code > 0 && static_cast<size_t>(code) < infos.size() ? static_cast<ElementType>(code) : undefined;
}

bool is_float(ElementType type) { return info(type).floating; }

bool is_integer(ElementType type) { return info(type).integer; }

bool is_narrow_float(ElementType type) { return type == float16 || type == bfloat16; }

ElementType compute_element(ElementType type) { return is_narrow_float(type) ? float32 : type; }

bool is_minifloat(ElementType type) {
    return (type >= float8e4m3fn && type <= float8e5m2fnuz) || type == float4e2m1 || type == float8e8m0;
}

bool is_packed(ElementType type) { return info(type).bits > 0 && info(type).bits < 8; }

Layout row_major(size_t rank) {
    Layout layout(rank);
    std::iota(layout.rbegin(), layout.rend(), 0);
    return layout;
}

Layout channels_last(size_t rank) {
    if (rank < 3) return row_major(rank);
    Layout layout = {1};
    for (int axis = static_cast<int>(rank) - 1; axis >= 2; --axis) layout.push_back(axis);
    layout.push_back(0);
    return layout;
}

std::vector<Dim> TensorType::extents() const {
    std::vector<Dim> result;
    for (const int axis : layout) result.push_back(shape[axis]);
    return result;
}

std::optional<size_t> TensorType::innermost_axis() const {
    const auto found = std::find_if(layout.begin(), layout.end(), [&](int axis) { return !shape[axis].is(1); });
    return found == layout.end() ? std::nullopt : std::optional(static_cast<size_t>(*found));
}

std::string TensorType::text() const {
    return box ? box->text() : fmt::format("{} {}", info(element).name, shape_text(shape));
}

bool TensorType::operator==(const TensorType& other) const {
    const bool same_box = box && other.box ? *box == *other.box : !box && !other.box;
    return same_box && element == other.element && shape == other.shape && layout == other.layout;
}

TensorType TensorType::packed() const {
    return is_packed(element) ? TensorType(uint8, {ceil_div(elements(), 8 / info(element).bits)}) : *this;
}

Layout completed(Layout axes, size_t rank) {
    for (const int axis : row_major(rank)) {
        if (std::find(axes.begin(), axes.end(), axis) == axes.end()) axes.push_back(axis);
    }
    return axes;
}

bool same_memory_order(const TensorType& a, const std::vector<int>& axes_of_b_in_a, const TensorType& b) {
    std::vector<int> in_a, in_b;
    for (const int axis : a.layout) {
        if (!a.shape[axis].is(1)) in_a.push_back(axis);
    }
    for (const int axis : b.layout) {
        if (!b.shape[axis].is(1)) in_b.push_back(axes_of_b_in_a[axis]);
    }
    return in_a == in_b;
}

size_t normalised_axis(int64_t axis, size_t rank, std::string_view what) {
    const auto signed_rank = static_cast<int64_t>(rank);
    if (axis < -signed_rank || axis >= signed_rank)
        throw CompileError("{} is {}, expected one in [{}, {}]", what, axis, -signed_rank, signed_rank - 1);
    return static_cast<size_t>(axis < 0 ? axis + signed_rank : axis);
}

}  // namespace onnx2halide
