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

/// Element types, numbered like ONNX's TensorProto.DataType. Kernels represent strings as numbers, see StringTable.
enum class ElementType : int32_t {
    box = -1,  // the number of a box, for a value that is not a tensor: see BoxType
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

/// The properties of an element type.
struct ElementInfo {
    ElementType type;
    std::string_view name;         // in messages and in the output of `ops`: float32, bool
    std::string_view halide_name;  // in generators: float, uint8_t; empty if kernels do not support the type
    std::string_view c_name;       // in headers
    int bits;                      // of an element as ONNX stores it; 0 if its size varies
    int bytes;                     // of an element in a kernel's memory; 0 for `undefined`
    bool floating, integer, is_signed;
};
const ElementInfo& info(ElementType type);
bool is_float(ElementType type);                // float16, bfloat16, float32, float64
bool is_integer(ElementType type);              // int8…int64, uint8…uint64; not bool
bool is_narrow_float(ElementType type);         // float16 and bfloat16, which kernels compute in float32
ElementType compute_element(ElementType type);  // the type that kernels compute in: float32 for narrow floats
bool is_minifloat(ElementType type);  // floats of 8 and 4 bits: kernels store their codes and compute in float32
bool is_packed(ElementType type);     // 4 and 2 bits: several share a byte in ONNX's files and at the model's ports

/// The element type of a code in ONNX's TensorProto.DataType; undefined if there is none.
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
    std::shared_ptr<const BoxType> box;  // of a value that is not a tensor: `element` is then box, and `shape` empty

    TensorType() = default;
    TensorType(ElementType element, std::vector<Dim> shape)
        : element(element), shape(std::move(shape)), layout(row_major(this->shape.size())) {}

    size_t rank() const { return shape.size(); }
    Dim elements() const { return product(shape); }
    Dim bytes() const { return elements() * info(element).bytes; }
    /// For a packed type, the uint8 vector in which ONNX stores a row-major tensor, the first element of each byte in
    /// its lowest bits. For any other type, the type itself.
    TensorType packed() const;
    bool is_row_major() const { return layout == row_major(rank()); }
    /// The extents in memory order, innermost first.
    std::vector<Dim> extents() const;
    /// The axis along which elements are adjacent in memory: the innermost whose extent is not 1; nullopt if there is
    /// none.
    std::optional<size_t> innermost_axis() const;
    /// `float32 1x3x224x224`
    std::string text() const;
    bool operator==(const TensorType& other) const;
};

/// The layout that begins with these axes, followed by the missing ones in row-major order.
Layout completed(Layout axes, size_t rank);

/// Whether tensors of type `a` and `b` with the same elements have them in the same order in memory. Axis i of `b` is
/// axis axes_of_b_in_a[i] of `a`; axes of extent 1 do not matter.
bool same_memory_order(const TensorType& a, const std::vector<int>& axes_of_b_in_a, const TensorType& b);

/// An axis in [0, rank) from one in [-rank, rank). Throws CompileError, whose text calls it `what`, if it is out of
/// range.
size_t normalised_axis(int64_t axis, size_t rank, std::string_view what = "axis");

}  // namespace onnx2halide
