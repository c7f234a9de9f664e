#include "compiler/graph/box_type.h"

#include <fmt/format.h>

namespace onnx2halide {

namespace {

/// An extent that may differ between the items of a box.
Dim any_extent() { return Dim::symbol("?", 0); }

std::optional<BoxType> joined_items(const BoxType& a, const BoxType& b) {
    BoxType result = a.rank == BoxType::Rank::unset ? b : a;
    if (a.holds_boxes() || b.holds_boxes()) {
        const auto item = joined(a.item, b.item);
        if (!item) return std::nullopt;
        result.item = *item;
        return result;
    }
    if (a.item.element != b.item.element || a.key != b.key) return std::nullopt;
    if (a.rank == BoxType::Rank::unset || b.rank == BoxType::Rank::unset) return result;
    if (b.rank == BoxType::Rank::any || a.item.rank() != b.item.rank()) {
        result.rank = BoxType::Rank::any;
        result.item = TensorType(a.item.element, {});
    }
    for (size_t axis = 0; axis < result.item.rank(); ++axis) {
        if (a.item.shape[axis] != b.item.shape[axis]) result.item.shape[axis] = any_extent();
    }
    return result;
}

}  // namespace

std::string BoxType::text() const {
    std::string inner = item.text();
    if (!holds_boxes() && rank != Rank::known) inner = info(item.element).name;
    switch (kind) {
    case Kind::sequence: return "sequence of " + inner;
    case Kind::optional: return "optional " + inner;
    default: return fmt::format("map of {} to {}", info(key).name, inner);
    }
}

TensorType boxed(BoxType type) {
    TensorType result(ElementType::box, {});
    result.box = std::make_shared<const BoxType>(std::move(type));
    return result;
}

TensorType boxed(BoxType::Kind kind, const TensorType& item) {
    TensorType plain = item.box ? item : TensorType(item.element, item.shape);
    for (Dim& dim : plain.shape) {
        if (!dim.constant()) dim = any_extent();
    }
    return boxed({kind, std::move(plain)});
}

TensorType sequence_of_any(ElementType element, BoxType::Rank rank) {
    return boxed({BoxType::Kind::sequence, TensorType(element, {}), rank});
}

bool is_kind(const TensorType& type, BoxType::Kind kind) { return type.box && type.box->kind == kind; }

std::optional<TensorType> joined(const TensorType& a, const TensorType& b) {
    if (!a.box || !b.box) return std::nullopt;
    if (a.box->kind == b.box->kind) {
        const auto items = joined_items(*a.box, *b.box);
        return items ? std::optional(boxed(*items)) : std::nullopt;
    }
    if (is_optional(b)) return joined(b, a);
    if (!is_optional(a)) return std::nullopt;
    const auto item = joined(a.box->item, b);
    return item ? std::optional(boxed(BoxType::Kind::optional, *item)) : std::nullopt;
}

}  // namespace onnx2halide
