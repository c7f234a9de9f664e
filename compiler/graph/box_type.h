#pragma once

#include <optional>
#include <string>

#include "compiler/graph/tensor_type.h"

namespace onnx2halide {

/// The type of a value that is not a tensor: a sequence, an optional value or a map. At run time the value is the
/// number of a box. Number 0 is an absent optional value, which also reads as an empty sequence.
struct BoxType {
    enum class Kind { sequence, optional, map };
    /// What is known about the tensors inside.
    enum class Rank {
        unset,  // there are none yet
        known,  // all have the rank of `item`, and its extents where these are constant
        any,    // ranks differ or are unknown
    };
    Kind kind;
    TensorType item;  // the type of its items, tensors or boxes; of a map's values
    Rank rank = Rank::known;
    ElementType key = ElementType::undefined;  // the type of a map's keys

    bool holds_boxes() const { return item.box != nullptr; }
    /// `sequence of float32 2x?`
    std::string text() const;
    bool operator==(const BoxType&) const = default;
};

TensorType boxed(BoxType type);
/// The type of a box whose items have this type.
TensorType boxed(BoxType::Kind kind, const TensorType& item);
/// The type of a sequence of tensors of which only the element type is known.
TensorType sequence_of_any(ElementType element, BoxType::Rank rank = BoxType::Rank::any);

bool is_kind(const TensorType& type, BoxType::Kind kind);
inline bool is_sequence(const TensorType& type) { return is_kind(type, BoxType::Kind::sequence); }
inline bool is_optional(const TensorType& type) { return is_kind(type, BoxType::Kind::optional); }

/// The type that covers both `a` and `b`; nullopt if either is not a box, or if their items differ in element type, key
/// type or kind. An optional box also covers the box that is its item.
std::optional<TensorType> joined(const TensorType& a, const TensorType& b);

}  // namespace onnx2halide
