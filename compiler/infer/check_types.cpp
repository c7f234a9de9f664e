#include "compiler/infer/check_types.h"

#include <algorithm>

#include "compiler/graph/box_type.h"

namespace onnx2halide {

namespace {

bool can_be_counted(const TensorType& type) {
    try {
        return prove_less_equal(type.elements(), Dim::unbounded) != Proof::no;
    } catch (const CompileError&) {
        return false;
    }
}

/// Of a tensor: what the runtime's arrays of extents have room for (ONNX2HALIDE_MAX_RANK).
constexpr size_t max_rank = 16;

/// Checks the items of a box, which are exchanged with the caller as kernels hold them in memory.
void check_box(const Value& value) {
    const TensorType* inner = &*value.type;
    while (inner->box) inner = &inner->box->item;
    if (info(inner->element).halide_name.empty() || is_packed(inner->element))
        throw CompileError("value '{}' is a {}, which is not supported", value.name, value.type->text());
}

/// Checks kind and element type only: what models declare about the shapes of items is often incomplete or wrong.
void check_declared_box(const Value& value) {
    const auto any = [](const TensorType& type) {
        BoxType box = *type.box;
        if (!box.holds_boxes()) box.rank = BoxType::Rank::unset;
        return boxed(std::move(box));
    };
    if (!joined(any(*value.type), any(*value.declared)))
        throw CompileError("output '{}' is a {}, but the model declares a {}", value.name, value.type->text(),
                           value.declared->text());
}

}  // namespace

void check_type(const Value& value) {
    const ElementInfo& element = info(value.checked_type().element);
    if (element.halide_name.empty())
        throw CompileError("value '{}' has type {}, which is not supported", value.name, element.name);
    if (value.type->box) return check_box(value);
    if (value.type->rank() > max_rank)
        throw CompileError("value '{}' has {} axes, expected at most {}", value.name, value.type->rank(), max_rank);
    const auto is_negative = [](const Dim& extent) { return extent.constant().value_or(0) < 0; };
    if (std::any_of(value.type->shape.begin(), value.type->shape.end(), is_negative))
        throw CompileError("value '{}' has shape {}, expected extents of 0 or more", value.name,
                           shape_text(value.type->shape));
    if (!can_be_counted(*value.type)) {
        throw CompileError("value '{}' has shape {}, expected at most {} elements", value.name,
                           shape_text(value.type->shape), Dim::unbounded);
    }
}

void check_takes(const NodeGenerator& generator, const std::vector<Value*>& values, std::string_view what) {
    for (size_t i = 0; i < values.size(); ++i) {
        if (!values[i]) continue;
        const TensorType& type = values[i]->checked_type();
        const bool is_tiny = is_minifloat(type.element) || is_packed(type.element),
                   is_string = type.element == ElementType::string;
        if ((is_tiny && !generator.takes_packed_types()) || (is_string && !generator.takes_strings()))
            throw CompileError("{} {} has type {}, which is not supported", what, i, info(type.element).name);
        if (type.box && !generator.takes_non_tensors())
            throw CompileError("{} {} is a {}, expected a tensor", what, i, type.text());
    }
}

void check_indices(const NodeGenerator& generator, const Node& node) {
    for (const IndexCheck& check : generator.index_checks()) {
        const ElementType type = node.inputs.at(check.input)->checked_type().element;
        if (type != ElementType::int32 && type != ElementType::int64)
            throw CompileError("input {} has type {}, expected int32 or int64", check.input, info(type).name);
    }
}

void check_declared(const Value& value) {
    if (!value.declared) return;
    const TensorType &found = *value.type, &declared = *value.declared;
    if (found.box && declared.box) return check_declared_box(value);
    if (found.element != declared.element)
        throw CompileError("output '{}' is {}, but the model declares {}", value.name, found.text(), declared.text());
}

bool contradicts(const TensorType& declared, const TensorType& found) {
    if (declared.box || found.box) return false;
    const auto is_open = [](const Dim& dim) { return !dim.constant(); };
    // A declaration with open dims is often wrong about the rank and the other dims, too. Declarations of single
    // elements are often wrong about the rank: the conditions of loops are scalars or have a dim of 1.
    if (std::any_of(declared.shape.begin(), declared.shape.end(), is_open)) return false;
    if (declared.elements().is(1) && found.elements().is(1)) return false;
    if (found.rank() != declared.rank()) return true;
    for (size_t i = 0; i < found.rank(); ++i) {
        if (prove_equal(declared.shape[i], found.shape[i]) == Proof::no) return true;
    }
    return false;
}

}  // namespace onnx2halide
