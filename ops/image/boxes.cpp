#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "compiler/graph/box_type.h"
#include "ops/families.h"
#include "ops/host_node.h"
#include "ops/known_elements.h"

namespace onnx2halide {

namespace {

/// An operator on sequences or optional values: a function in runtime/box_operators.c.
class BoxNode : public HostNode {
public:
    using HostNode::HostNode;
    bool takes_non_tensors() const override { return true; }
    bool takes_strings() const override { return true; }
    bool takes_packed_types() const override { return true; }

protected:
    /// ONNX has these operators for sequences of tensors only.
    const BoxType& sequence(size_t i) const {
        if (!is_sequence(in(i)) || in(i).box->holds_boxes())
            throw CompileError("input {} is {}, expected a sequence of tensors", i, in(i).text());
        return *in(i).box;
    }

    void check_tensor(size_t i) const {
        if (in(i).box) throw CompileError("input {} is a {}, expected a tensor", i, in(i).text());
    }

    void check_position(size_t i) const {
        check_tensor(i);
        const bool is_index = in(i).element == ElementType::int64 || in(i).element == ElementType::int32;
        if (!is_index || !in(i).elements().is(1))
            throw CompileError("position is {}, expected one int32 or int64", in(i).text());
    }

    /// The type of a tensor taken out of such a box as output 0. If the box does not have a rank, it is the one
    /// declared by the model. Extents that differ from tensor to tensor are found at run time.
    TensorType taken_out(const BoxType& box) const {
        TensorType type = box.item;
        if (box.rank != BoxType::Rank::known) {
            const auto& declared = output(0)->declared;
            if (!declared || declared->box)
                throw CompileError("the rank of output 0 is not known: neither the {} nor the model determines it",
                                   box.text());
            type = boxed(box.kind, TensorType(box.item.element, declared->shape)).box->item;
        }
        for (size_t axis = 0; axis < type.rank(); ++axis) {
            if (!type.shape[axis].constant()) type.shape[axis] = found(0, axis);
        }
        return type;
    }

    /// A tensor's rank and extents, -1 for those found at run time: `2, (const int64_t[]){3, -1}`
    static std::vector<std::string> expected_dims(const TensorType& type) {
        std::vector<int64_t> dims;
        for (const Dim& dim : type.shape) dims.push_back(dim.constant().value_or(-1));
        return {fmt::to_string(dims.size()),
                dims.empty() ? "NULL" : fmt::format("(const int64_t[]){{{}}}", fmt::join(dims, ", "))};
    }
};

/// SequenceEmpty (11)
class SequenceEmpty : public BoxNode {
public:
    using BoxNode::BoxNode;

    std::vector<TensorType> infer() const override {
        const ElementType element = element_type_of(static_cast<int32_t>(node_.integer("dtype", 1)));
        if (element == ElementType::undefined)
            throw CompileError("dtype is {}, which ONNX does not define", node_.integer("dtype"));
        return {sequence_of_any(element, BoxType::Rank::unset)};
    }
    HostCall host_call() const override { return {"onnx2halide_empty_box", {"ONNX2HALIDE_EMPTY_SEQUENCE"}, 0}; }
};

/// SequenceConstruct (11)
class SequenceConstruct : public BoxNode {
public:
    using BoxNode::BoxNode;

    std::vector<TensorType> infer() const override {
        if (node_.inputs.empty()) throw CompileError("has no inputs, expected tensors");
        std::optional<TensorType> type;
        for (size_t i = 0; i < node_.inputs.size(); ++i) {
            check_tensor(i);
            const TensorType own = boxed(BoxType::Kind::sequence, in(i));
            type = type ? joined(*type, own) : own;
            if (!type)
                throw CompileError("input {} has type {}, expected {} as input 0", i, info(in(i).element).name,
                                   info(in(0).element).name);
        }
        return {*type};
    }
    HostCall host_call() const override { return {"onnx2halide_sequence_construct", {}, node_.inputs.size(), 1, true}; }
};

/// SequenceInsert (11), by default at the end.
class SequenceInsert : public BoxNode {
public:
    using BoxNode::BoxNode;

    std::vector<TensorType> infer() const override {
        const BoxType& box = sequence(0);
        check_tensor(1);
        if (has_input(2)) check_position(2);
        if (const auto type = joined(in(0), boxed(BoxType::Kind::sequence, in(1)))) return {*type};
        throw CompileError("input 1 has type {}, expected {} as the sequence has", info(in(1).element).name,
                           info(box.item.element).name);
    }
    HostCall host_call() const override { return {"onnx2halide_sequence_insert", {}, 3}; }
};

/// SequenceErase (11), by default the last tensor.
class SequenceErase : public BoxNode {
public:
    using BoxNode::BoxNode;

    std::vector<TensorType> infer() const override {
        sequence(0);
        if (has_input(1)) check_position(1);
        return {in(0)};
    }
    HostCall host_call() const override { return {"onnx2halide_sequence_erase", {}, 2}; }
};

/// SequenceAt (11)
class SequenceAt : public BoxNode {
public:
    using BoxNode::BoxNode;

    std::vector<TensorType> infer() const override {
        check_position(1);
        return {taken_out(sequence(0))};
    }
    HostCall host_call() const override { return {"onnx2halide_sequence_at", expected_dims(out(0)), 2}; }
};

/// SequenceLength (11)
class SequenceLength : public BoxNode {
public:
    using BoxNode::BoxNode;

    std::vector<TensorType> infer() const override {
        sequence(0);
        return {TensorType(ElementType::int64, {})};
    }
    HostCall host_call() const override { return {"onnx2halide_sequence_length", {}}; }
};

/// SplitToSequence (11): slices of one element, of the size that a scalar holds, or of the given sizes.
class SplitToSequence : public BoxNode {
public:
    using BoxNode::BoxNode;

    std::vector<TensorType> infer() const override {
        check_tensor(0);
        TensorType part(in(0).element, in(0).shape);
        if (!has_input(1) && !keeps_axis()) {
            part.shape.erase(part.shape.begin() + axis());
            return {boxed(BoxType::Kind::sequence, part)};
        }
        part.shape[axis()] = has_input(1) ? sizes() : Dim(1);
        return {boxed(BoxType::Kind::sequence, part)};
    }
    HostCall host_call() const override {
        return {"onnx2halide_split_to_sequence", {fmt::to_string(axis()), keeps_axis() ? "1" : "0"}, 2};
    }

private:
    size_t axis() const {
        if (in(0).rank() == 0) throw CompileError("input 0 is a scalar, expected an axis");
        return normalised_axis(node_.integer("axis", 0), in(0).rank());
    }
    bool keeps_axis() const { return node_.integer("keepdims", 1) != 0; }

    /// The extent of all parts along the axis if they are known to have the same, else a symbol.
    Dim sizes() const {
        check_tensor(1);
        const bool is_integer = in(1).element == ElementType::int64 || in(1).element == ElementType::int32;
        if (!is_integer || in(1).rank() > 1) throw CompileError("split is {}, expected int32 or int64", in(1).text());
        const Dim unknown = Dim::symbol("?", 0);
        const KnownElements* given = known_input(1);
        // Of however many parts, all of one size.
        const Node* fill = node_.inputs[1]->producer;
        if (!given && in(1).rank() == 1 && fill && fill->op_type == "ConstantOfShape" && fill->has("value")) {
            const auto size = known_elements(fill->tensor("value"));
            return size && !size->integers.empty() ? size->integers[0] : unknown;
        }
        if (!given || given->integers.empty()) return unknown;
        const Dim& first = given->integers[0];
        const auto is_first = [&](const Dim& size) { return size == first; };
        if (in(1).rank() == 1)
            return std::all_of(given->integers.begin(), given->integers.end(), is_first) ? first : unknown;
        const auto extent = in(0).shape[axis()].constant(), size = first.constant();
        if (size && *size < 1) throw CompileError("split is {}, expected 1 or more", *size);
        return extent && size && *extent % *size == 0 ? first : unknown;
    }
};

/// ConcatFromSequence (11)
class ConcatFromSequence : public BoxNode {
public:
    explicit ConcatFromSequence(const Node& node) : BoxNode(node), is_new_(node.integer("new_axis", 0) != 0) {}

    std::vector<TensorType> infer() const override {
        const BoxType& box = sequence(0);
        TensorType type = box.item;
        if (box.rank != BoxType::Rank::known) {
            type = taken_out(box);
        } else if (is_new_) {
            type.shape.insert(type.shape.begin() + axis(box.item.rank() + 1), Dim(0));
        }
        for (size_t i = 0; i < type.rank(); ++i) {
            if (i == axis(type.rank()) || !type.shape[i].constant()) type.shape[i] = found(0, i);
        }
        return {TensorType(type.element, type.shape)};
    }
    HostCall host_call() const override {
        std::vector<std::string> arguments = expected_dims(out(0));
        arguments.push_back(fmt::to_string(axis(out(0).rank())));
        arguments.push_back(is_new_ ? "1" : "0");
        return {"onnx2halide_concat_from_sequence", arguments};
    }

private:
    size_t axis(size_t rank) const {
        if (rank == 0) throw CompileError("the sequence has scalars, expected tensors with an axis");
        return normalised_axis(node_.integer("axis"), rank);
    }

    bool is_new_;
};

/// Optional (15): the input or, without one, an empty optional of the type in an attribute.
class Optional : public BoxNode {
public:
    using BoxNode::BoxNode;

    std::vector<TensorType> infer() const override {
        if (has_input(0)) return {is_optional(in(0)) ? in(0) : boxed(BoxType::Kind::optional, in(0))};
        const auto type = node_.attributes.find("type");
        const auto* given = type == node_.attributes.end() ? nullptr : std::get_if<TensorType>(&type->second);
        if (!given) throw CompileError("has neither an input nor a type of known rank");
        return {boxed(BoxType::Kind::optional, *given)};
    }
    bool is_kernel() const override { return is_view(); }
    bool is_view() const override { return has_input(0) && in(0).box; }
    HostCall host_call() const override {
        if (!has_input(0)) return {"onnx2halide_empty_box", {"ONNX2HALIDE_NOTHING"}, 0};
        return {"onnx2halide_sequence_construct", {}, 1, 1, true};
    }
};

/// OptionalHasElement (15)
class OptionalHasElement : public BoxNode {
public:
    using BoxNode::BoxNode;

    std::vector<TensorType> infer() const override { return {TensorType(ElementType::boolean, {})}; }
    std::vector<std::optional<KnownElements>> known() const override {
        if (has_input(0) && is_optional(in(0))) return {};
        return {KnownElements{{has_input(0) ? 1 : 0}, {}}};
    }
    HostCall host_call() const override { return {"onnx2halide_optional_has_element", {}}; }
};

/// OptionalGetElement (15)
class OptionalGetElement : public BoxNode {
public:
    using BoxNode::BoxNode;

    std::vector<TensorType> infer() const override {
        if (!has_input(0)) throw CompileError("input 0 is missing");
        if (!is_optional(in(0))) return {in(0).box ? in(0) : TensorType(in(0).element, in(0).shape)};
        return {in(0).box->holds_boxes() ? in(0).box->item : taken_out(*in(0).box)};
    }
    std::vector<std::optional<KnownElements>> known() const override { return {input(0)->known}; }
    bool is_kernel() const override { return is_view(); }
    bool is_view() const override { return !is_optional(in(0)) && in(0).layout == out(0).layout; }
    HostCall host_call() const override {
        if (out(0).box) return {"onnx2halide_optional_get_box", {}};
        return {"onnx2halide_optional_get_tensor", expected_dims(out(0))};
    }
};

}  // namespace

std::vector<Operator> box_operators() {
    return {
        {"SequenceEmpty", 11, make<SequenceEmpty>},
        {"SequenceConstruct", 11, make<SequenceConstruct>},
        {"SequenceInsert", 11, make<SequenceInsert>},
        {"SequenceErase", 11, make<SequenceErase>},
        {"SequenceAt", 11, make<SequenceAt>},
        {"SequenceLength", 11, make<SequenceLength>},
        {"SplitToSequence", 11, make<SplitToSequence>},
        {"ConcatFromSequence", 11, make<ConcatFromSequence>},
        {"Optional", 15, make<Optional>},
        {"OptionalHasElement", 15, make<OptionalHasElement>},
        {"OptionalGetElement", 15, make<OptionalGetElement>},
    };
}

}  // namespace onnx2halide
