#include <numeric>
#include <string_view>
#include <utility>

#include "compiler/passes/node_replacement.h"
#include "compiler/passes/passes.h"
#include "ops/ml/label_encoder.h"
#include "ops/ml/maps.h"
#include "ops/text/ngrams.h"

namespace onnx2halide {

namespace {

Value* lookup(NodeReplacement& replacement, Value* input, const Encoding& encoding) {
    return replacement.add("Lookup", 1,
                           {input, replacement.add("keys", encoding.keys), replacement.add("values", encoding.values),
                            replacement.add("otherwise", encoding.otherwise),
                            encoding.missing ? replacement.add("missing", *encoding.missing) : nullptr},
                           {}, own_domain);
}

/// A value, cast unless it has this type.
Value* converted(NodeReplacement& replacement, Value* x, ElementType to) {
    return x->checked_type().element == to ? x : replacement.add(cast(x, to));
}

/// The numbers of categories: 0, 1, and so on.
std::vector<int64_t> numbers_of(const Constant& categories) {
    std::vector<int64_t> numbers(categories.elements());
    std::iota(numbers.begin(), numbers.end(), 0);
    return numbers;
}

/// From each category to its column. Of equal categories the last one counts.
Encoding columns_of(const Constant& categories) {
    Node encoder;
    encoder.attributes = {{"keys_tensor", categories}, {"values_int64s", numbers_of(categories)}};
    StringTable strings;
    return read_encoding(encoder, strings);
}

/// OneHotEncoder with zeros = 0, whose message for an unknown float needs the float.
Value* one_hot_of_known(NodeReplacement& replacement, const Node& node, const Constant& categories) {
    using enum ElementType;
    Value* element = node.inputs.at(0);
    const ElementType own = element->checked_type().element;
    if (own != string && own != float64) element = converted(replacement, element, is_float(own) ? float32 : int64);
    const Encoding columns = columns_of(categories);
    return replacement.add("OneHotOfKnown", 1,
                           {element, replacement.add("keys", columns.keys), replacement.add("columns", columns.values)},
                           {{"columns", categories.elements()}}, own_domain);
}

/// Looks up the number of each element's category and compares it with all numbers.
Value* one_hot(NodeReplacement& replacement, const Node& node, StringTable& strings) {
    const Constant categories = read_categories(node, strings);
    if (node.integer("zeros", 1) == 0) return one_hot_of_known(replacement, node, categories);
    Value* element = converted(replacement, node.inputs.at(0), categories.element);
    Value* number = lookup(replacement, element, columns_of(categories));
    Value* column = replacement.add("Unsqueeze", 11, {number}, {{"axes", std::vector<int64_t>{-1}}});
    return replacement.add(
        "Equal", 13,
        {column, replacement.add("numbers", ElementType::int64, {categories.elements()}, numbers_of(categories))});
}

Value* encode(NodeReplacement& replacement, const Node& node, StringTable& strings) {
    return lookup(replacement, node.inputs.at(0), read_encoding(node, strings));
}

Value* vectorise(NodeReplacement& replacement, const Node& node, StringTable& strings) {
    const Ngrams ngrams = read_ngrams(node, strings);
    Value* items = node.inputs.at(0);
    if (items->checked_type().element == ElementType::int32) items = converted(replacement, items, ElementType::int64);
    return replacement.add("WeighNgrams", 1,
                           {items, replacement.add("pool", ngrams.pool), replacement.add("lengths", ngrams.lengths),
                            replacement.add("columns", ngrams.columns),
                            ngrams.weights ? replacement.add("weights", *ngrams.weights) : nullptr},
                           {{"mode", node.string("mode")},
                            {"max_skip_count", node.integer("max_skip_count")},
                            {"columns", ngrams.column_count}},
                           own_domain);
}

Value* zip_map(NodeReplacement& replacement, const Node& node, StringTable& strings) {
    Value* labels = replacement.add("labels", read_labels(node, strings));
    return replacement.add("MapRows", 1, {node.inputs.at(0), labels}, {}, own_domain);
}

Value* vectorise_map(NodeReplacement& replacement, const Node& node, StringTable& strings) {
    const Vocabulary vocabulary = read_vocabulary(node, strings);
    Value *keys = replacement.add("keys", vocabulary.keys), *columns = replacement.add("columns", vocabulary.columns);
    return replacement.add("RowOfMap", 1, {node.inputs.at(0), keys, columns}, {}, own_domain);
}

/// The function that replaces each operator.
constexpr struct {
    std::string_view op;
    Value* (*expand)(NodeReplacement& replacement, const Node& node, StringTable& strings);
} encoders[] = {
    {"ai.onnx.ml.LabelEncoder", encode},          {"ai.onnx.ml.CategoryMapper", encode},
    {"ai.onnx.ml.OneHotEncoder", one_hot},        {"ai.onnx.ml.ZipMap", zip_map},
    {"ai.onnx.ml.DictVectorizer", vectorise_map}, {"TfIdfVectorizer", vectorise},
};

}  // namespace

void expand_encoders(Graph& graph) {
    std::vector<std::pair<Node*, decltype(encoders[0].expand)>> found;
    for (const auto& node : graph.nodes()) {
        for (const auto& encoder : encoders) {
            if (node->qualified_op() == encoder.op) found.emplace_back(node.get(), encoder.expand);
        }
    }
    for (const auto& [node, expand] : found) {
        NodeReplacement replacement(graph, *node);
        Value* result = expand(replacement, *node, *graph.strings);
        replacement.replace(node->outputs.at(0), result);
        graph.remove(node);
    }
}

}  // namespace onnx2halide
