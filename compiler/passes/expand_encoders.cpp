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
                           {}, "onnx2halide");
}

/// Looks up the number of each element's category and compares it with all numbers.
Value* one_hot(NodeReplacement& replacement, const Node& node, StringTable& strings) {
    const Constant categories = read_categories(node, strings);
    const int64_t count = categories.elements();
    std::vector<int64_t> numbers(count);
    std::iota(numbers.begin(), numbers.end(), 0);
    Node encoder;
    encoder.attributes = {{"keys_tensor", categories}, {"values_int64s", numbers}};

    Value* element = node.inputs.at(0);
    if (element->checked_type().element != categories.element)
        element = replacement.add("Cast", 13, {element}, {{"to", static_cast<int64_t>(ElementType::int64)}});
    Value* number = lookup(replacement, element, read_encoding(encoder, strings));
    Value* column = replacement.add("Unsqueeze", 11, {number}, {{"axes", std::vector<int64_t>{-1}}});
    return replacement.add("Equal", 13, {column, replacement.add("numbers", ElementType::int64, {count}, numbers)});
}

Value* encode(NodeReplacement& replacement, const Node& node, StringTable& strings) {
    return lookup(replacement, node.inputs.at(0), read_encoding(node, strings));
}

Value* vectorise(NodeReplacement& replacement, const Node& node, StringTable& strings) {
    const Ngrams ngrams = read_ngrams(node, strings);
    Value* items = node.inputs.at(0);
    if (items->checked_type().element == ElementType::int32)
        items = replacement.add("Cast", 13, {items}, {{"to", static_cast<int64_t>(ElementType::int64)}});
    return replacement.add("WeighNgrams", 1,
                           {items, replacement.add("pool", ngrams.pool), replacement.add("lengths", ngrams.lengths),
                            replacement.add("columns", ngrams.columns),
                            ngrams.weights ? replacement.add("weights", *ngrams.weights) : nullptr},
                           {{"mode", node.string("mode")},
                            {"max_skip_count", node.integer("max_skip_count")},
                            {"columns", ngrams.column_count}},
                           "onnx2halide");
}

/// Adds a call of a function of the runtime, whose errors name the model's node.
Value* call_host(NodeReplacement& replacement, const Node& node, const std::string& op, std::vector<Value*> inputs) {
    Value* result = replacement.add(op, 1, std::move(inputs), {}, "onnx2halide");
    result->producer->origin = node.label();
    return result;
}

Value* zip_map(NodeReplacement& replacement, const Node& node, StringTable& strings) {
    Value* labels = replacement.add("labels", read_labels(node, strings));
    return call_host(replacement, node, "MapRows", {node.inputs.at(0), labels});
}

Value* vectorise_map(NodeReplacement& replacement, const Node& node, StringTable& strings) {
    const Vocabulary vocabulary = read_vocabulary(node, strings);
    Value *keys = replacement.add("keys", vocabulary.keys), *columns = replacement.add("columns", vocabulary.columns);
    return call_host(replacement, node, "RowOfMap", {node.inputs.at(0), keys, columns});
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
