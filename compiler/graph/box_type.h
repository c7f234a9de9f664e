#pragma once

#include <optional>
#include <string>

#include "compiler/graph/tensor_type.h"

namespace onnx2halide {

/// What a value is that is no tensor. A run holds it as the number of a box: 0 is an optional value that is not there,
/// and reads as a sequence of nothing.
struct BoxType {
    enum class Kind { sequence, optional, map };
    /// What is known of the tensors inside.
    enum class Rank {
        unset,  // there are none yet
        known,  // all have the rank of `item`, and the extents of those of its dims that are numbers
        any,    // they differ, or nobody knows
    };
    Kind kind;
    TensorType item;  // what it holds, a box or a tensor; of a map the values
    Rank rank = Rank::known;
    ElementType key = ElementType::undefined;  // of a map

    bool holds_boxes() const { return item.box != nullptr; }
    /// `sequence of float32 2x?`
    std::string text() const;
    bool operator==(const BoxType&) const = default;
};

TensorType boxed(BoxType type);
/// The type of a box of items that are like this one.
TensorType boxed(BoxType::Kind kind, const TensorType& item);
/// A sequence of tensors of which nothing is known but their elements' type.
TensorType sequence_of_any(ElementType element, BoxType::Rank rank = BoxType::Rank::any);

bool is_kind(const TensorType& type, BoxType::Kind kind);
inline bool is_sequence(const TensorType& type) { return is_kind(type, BoxType::Kind::sequence); }
inline bool is_optional(const TensorType& type) { return is_kind(type, BoxType::Kind::optional); }

/// What is one or the other of two boxes; an optional value may be what it holds. Nothing where they hold different
/// things.
std::optional<TensorType> joined(const TensorType& a, const TensorType& b);

}  // namespace onnx2halide
