#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/graph/dim.h"

namespace onnx2halide {

struct BoxType;

/// Element types, numbered as ONNX's TensorProto.DataType. Kernels hold strings as numbers, see StringTable.
enum class ElementType : int32_t {
    box = -1,  // of a value that is no tensor: the number of a box, see BoxType
    undefined = 0,
    float32 = 1,
    uint8 = 2,
    int8 = 3,
    uint16 = 4,
    int16 = 5,
    int32 = 6,
    int64 = 7,
    string = 8,
    boolean = 9,
    float16 = 10,
    float64 = 11,
    uint32 = 12,
    uint64 = 13,
    complex64 = 14,
    complex128 = 15,
    bfloat16 = 16,
    float8e4m3fn = 17,
    float8e4m3fnuz = 18,
    float8e5m2 = 19,
    float8e5m2fnuz = 20,
    uint4 = 21,
    int4 = 22,
    float4e2m1 = 23,
    float8e8m0 = 24,
    uint2 = 25,
    int2 = 26,
};

/// What is known of an element type, one row a type.
struct ElementInfo {
    ElementType type;
    std::string_view name;         // as messages and `ops` say it: float32, bool
    std::string_view halide_name;  // as generators say it: float, uint8_t; empty where kernels cannot hold it
    std::string_view c_name;       // as headers say it
    int bits;                      // of an element as ONNX stores it; 0 where it has no fixed size
    int bytes;                     // of an element in a kernel's memory, likewise
    bool floating, integer, is_signed;
};
const ElementInfo& info(ElementType type);
bool is_float(ElementType type);                // float16, bfloat16, float32, float64
bool is_integer(ElementType type);              // int8…int64, uint8…uint64; not bool
bool is_narrow_float(ElementType type);         // float16 and bfloat16: kernels compute them in float32
ElementType compute_element(ElementType type);  // in which kernels compute: float32 for narrow floats
bool is_minifloat(ElementType type);  // floats of 8 and 4 bits: kernels hold their codes, and compute in float32
bool is_packed(ElementType type);     // 4 and 2 bits: several share a byte in ONNX's files and at the model's ends

/// The element type of ONNX's code; undefined where it has none.
ElementType element_type_of(int32_t code);

/// The order of a tensor's axes in memory, innermost first. A row-major tensor of rank 4 is {3, 2, 1, 0}.
using Layout = std::vector<int>;
Layout row_major(size_t rank);
/// Axis 1 (channels) innermost, then the spatial axes from the last, the batch outermost: {1, 3, 2, 0}.
Layout channels_last(size_t rank);

/// Element type, shape (ONNX's axis order, outermost first) and layout of a tensor.
struct TensorType {
    ElementType element = ElementType::undefined;
    std::vector<Dim> shape;
    Layout layout;                       // always rank() axes
    std::shared_ptr<const BoxType> box;  // what a value is that is no tensor; then `element` is box, and it has no axes

    TensorType() = default;
    TensorType(ElementType element, std::vector<Dim> shape)
        : element(element), shape(std::move(shape)), layout(row_major(this->shape.size())) {}

    size_t rank() const { return shape.size(); }
    Dim elements() const { return product(shape); }
    Dim bytes() const { return elements() * info(element).bytes; }
    /// The bytes that hold a row-major tensor of a packed type as ONNX does, the first element in the lowest bits; of
    /// other types the tensor itself.
    TensorType packed() const;
    bool is_row_major() const { return layout == row_major(rank()); }
    /// Extents in the order of memory, innermost first.
    std::vector<Dim> extents() const;
    /// The axis along which elements follow each other in memory: the innermost that has not the extent 1; none where
    /// all have.
    std::optional<size_t> innermost_axis() const;
    /// `float32 1x3x224x224`
    std::string text() const;
    bool operator==(const TensorType& other) const;
};

/// A layout that begins with these axes; those that are missing follow, the last first.
Layout completed(Layout axes, size_t rank);

/// Whether a tensor of type `a` and one of type `b` hold the same elements in the same order in memory when their axes
/// correspond in memory order, leaving out axes of extent 1.
bool same_memory_order(const TensorType& a, const std::vector<int>& axes_of_b_in_a, const TensorType& b);

}  // namespace onnx2halide
