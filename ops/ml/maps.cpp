#include "ops/ml/maps.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "compiler/graph/box_type.h"
#include "ops/constant_rows.h"
#include "ops/families.h"
#include "ops/host_node.h"
#include "ops/replaced_node.h"

namespace onnx2halide {

namespace {

using enum ElementType;

/// A sequence of maps from such keys to such values.
TensorType sequence_of_maps(ElementType key, ElementType value) {
    return boxed(BoxType::Kind::sequence, boxed({BoxType::Kind::map, TensorType(value, {}), BoxType::Rank::any, key}));
}

/// Throws CompileError unless a type is a map of tensors' elements.
const BoxType& checked_map(const TensorType& type) {
    if (!is_kind(type, BoxType::Kind::map) || type.box->holds_boxes())
        throw CompileError("input 0 is {}, expected a map of numbers or strings", type.text());
    return *type.box;
}

/// ZipMap (1) of the model. A pass replaces it by MapRows (see expand_encoders).
class ZipMap : public ReplacedNode {
public:
    using ReplacedNode::ReplacedNode;
    bool takes_non_tensors() const override { return true; }

    std::vector<TensorType> infer() const override {
        StringTable strings;
        const Constant labels = read_labels(node_, strings);
        if (in(0).element != float32) throw CompileError("input 0 is {}, expected float32", in(0).text());
        if (in(0).rank() != 1 && in(0).rank() != 2)
            throw CompileError("input 0 has rank {}, expected 1 or 2", in(0).rank());
        const Dim& columns = in(0).shape.back();
        if (prove_equal(columns, labels.elements()) == Proof::no)
            throw CompileError("input 0 has {} columns, expected {} as there are labels", columns.text(),
                               labels.elements());
        return {sequence_of_maps(labels.element, in(0).element)};
    }
};

/// A sequence of maps from input 1, the keys, to the elements of each row of input 0: the compiler's own operator, a
/// function in runtime/map_operators.c.
class MapRows : public HostNode {
public:
    using HostNode::HostNode;
    bool takes_non_tensors() const override { return true; }
    bool takes_strings() const override { return true; }

    std::vector<TensorType> infer() const override { return {sequence_of_maps(in(1).element, in(0).element)}; }
    HostCall host_call() const override { return {"onnx2halide_map_rows", {}, 2}; }
};

/// DictVectorizer (1) of the model. A pass replaces it by RowOfMap (see expand_encoders).
class DictVectorizer : public ReplacedNode {
public:
    using ReplacedNode::ReplacedNode;
    bool takes_non_tensors() const override { return true; }
    bool takes_strings() const override { return true; }

    std::vector<TensorType> infer() const override {
        StringTable strings;
        const Constant keys = read_vocabulary(node_, strings).keys;
        const BoxType& map = checked_map(in(0));
        if (map.key != keys.element)
            throw CompileError("the vocabulary has type {}, but the keys of input 0 have {}", info(keys.element).name,
                               info(map.key).name);
        return {TensorType(map.item.element, {1, keys.elements()})};
    }
};

/// The values of a map in the columns of their keys, 0 or an empty string elsewhere: the compiler's own operator, a
/// function in runtime/map_operators.c. Its further inputs are the constants of a Vocabulary.
class RowOfMap : public HostNode {
public:
    using HostNode::HostNode;
    bool takes_non_tensors() const override { return true; }
    bool takes_strings() const override { return true; }

    std::vector<TensorType> infer() const override {
        return {TensorType(checked_map(in(0)).item.element, {1, *in(2).shape[0].constant()})};
    }
    HostCall host_call() const override { return {"onnx2halide_row_of_map", {}, 3}; }
};

/// CastMap (1): a row, as in onnxruntime, of the values in the order of their keys, or each in the column numbered by
/// its key.
class CastMap : public HostNode {
public:
    explicit CastMap(const Node& node) : HostNode(node), columns_(read_columns()) {}
    bool takes_non_tensors() const override { return true; }
    bool takes_strings() const override { return true; }

    std::vector<TensorType> infer() const override {
        const BoxType& map = checked_map(in(0));
        if (map.key != int64 || (map.item.element != float32 && map.item.element != string))
            throw CompileError("input 0 is a {}, expected a map of int64 to float32 or string", map.text());
        return {TensorType(cast_to().element, {1, columns_ ? Dim(*columns_) : found(0, 1)})};
    }
    HostCall host_call() const override {
        const bool from_strings = in(0).box->item.element == string;
        return {"onnx2halide_cast_map",
                {from_strings ? "ONNX2HALIDE_STRING" : "ONNX2HALIDE_FLOAT32", std::string(cast_to().code),
                 fmt::to_string(columns_.value_or(-1))}};
    }

private:
    struct Target {
        std::string_view name, code;
        ElementType element;
    };

    Target cast_to() const {
        constexpr Target targets[] = {{"TO_FLOAT", "ONNX2HALIDE_FLOAT32", float32},
                                      {"TO_STRING", "ONNX2HALIDE_STRING", string},
                                      {"TO_INT64", "ONNX2HALIDE_INT64", int64}};
        const std::string name = node_.string("cast_to", "TO_FLOAT");
        for (const Target& target : targets) {
            if (target.name == name) return target;
        }
        throw CompileError("cast_to is '{}', expected TO_FLOAT, TO_STRING or TO_INT64", name);
    }

    /// The number of columns, if keys number them; nullopt if there are as many as keys.
    std::optional<int64_t> read_columns() const {
        const std::string form = node_.string("map_form", "DENSE");
        if (form == "DENSE") return std::nullopt;
        if (form != "SPARSE") throw CompileError("map_form is '{}', expected DENSE or SPARSE", form);
        const int64_t columns = node_.integer("max_map", 1);
        if (columns < 1 || columns >= Dim::unbounded)
            throw CompileError("max_map is {}, expected 1 to {}", columns, Dim::unbounded - 1);
        return columns;
    }

    std::optional<int64_t> columns_;
};

}  // namespace

Constant read_labels(const Node& node, StringTable& strings, const std::string& integers) {
    return read_items(node, integers, "classlabels_strings", strings);
}

Vocabulary read_vocabulary(const Node& node, StringTable& strings) {
    const Constant words = read_items(node, "int64_vocabulary", "string_vocabulary", strings);
    const std::vector<int64_t> keys = words.integers();
    std::vector<int64_t> columns(keys.size()), ascending(keys.size());
    std::iota(columns.begin(), columns.end(), 0);
    const auto is_less = [&](int64_t a, int64_t b) { return keys[a] < keys[b]; };
    std::stable_sort(columns.begin(), columns.end(), is_less);
    std::transform(columns.begin(), columns.end(), ascending.begin(), [&](int64_t column) { return keys[column]; });
    return {row_of(words.element, ascending), row_of(int64, columns)};
}

std::vector<Operator> map_operators() {
    return {{"ZipMap", 1, make<ZipMap>, ml_domain},
            {"DictVectorizer", 1, make<DictVectorizer>, ml_domain},
            {"CastMap", 1, make<CastMap>, ml_domain},
            {"MapRows", 1, make<MapRows>, own_domain},
            {"RowOfMap", 1, make<RowOfMap>, own_domain}};
}

}  // namespace onnx2halide
