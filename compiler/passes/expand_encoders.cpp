#include <algorithm>
#include <numeric>
#include <string_view>

#include "compiler/passes/expansion.h"
#include "compiler/passes/passes.h"
#include "ops/label_encoder.h"

namespace onnx2halide {

namespace {

Value* lookup(Expansion& expansion, Value* input, const Encoding& encoding) {
    return expansion.add("Lookup", 1,
                         {input, expansion.add("keys", encoding.keys), expansion.add("values", encoding.values),
                          expansion.add("otherwise", encoding.otherwise),
                          encoding.missing ? expansion.add("missing", *encoding.missing) : nullptr},
                         {}, "onnx2halide");
}

/// The number of each element's category, compared with all numbers.
Value* one_hot(Expansion& expansion, const Node& node, StringTable& strings) {
    const Constant categories = read_categories(node, strings);
    const int64_t count = categories.elements();
    std::vector<int64_t> numbers(count);
    std::iota(numbers.begin(), numbers.end(), 0);
    Node encoder;
    encoder.attributes = {{"keys_tensor", categories}, {"values_int64s", numbers}};

    Value* element = node.inputs.at(0);
    if (element->checked_type().element != categories.element)
        element = expansion.add("Cast", 13, {element}, {{"to", static_cast<int64_t>(ElementType::int64)}});
    Value* number = lookup(expansion, element, read_encoding(encoder, strings));
    Value* column = expansion.add("Unsqueeze", 11, {number}, {{"axes", std::vector<int64_t>{-1}}});
    return expansion.add("Equal", 13, {column, expansion.add("numbers", ElementType::int64, {count}, numbers)});
}

}  // namespace

void expand_encoders(Graph& graph) {
    std::vector<Node*> encoders;
    for (const auto& node : graph.nodes()) {
        constexpr std::string_view types[] = {"LabelEncoder", "CategoryMapper", "OneHotEncoder"};
        const bool is_encoder = std::find(std::begin(types), std::end(types), node->op_type) != std::end(types);
        if (is_encoder && node->domain == "ai.onnx.ml") encoders.push_back(node.get());
    }
    for (Node* node : encoders) {
        Expansion expansion(graph, *node);
        Value* result = node->op_type == "OneHotEncoder"
                            ? one_hot(expansion, *node, *graph.strings)
                            : lookup(expansion, node->inputs.at(0), read_encoding(*node, *graph.strings));
        expansion.replace(node->outputs.at(0), result);
        graph.remove(node);
    }
}

}  // namespace onnx2halide
