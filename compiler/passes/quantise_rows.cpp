#include "compiler/passes/quantise_rows.h"

#include <vector>

#include "compiler/passes/match.h"
#include "compiler/passes/node_replacement.h"
#include "ops/product/product.h"

namespace onnx2halide {

namespace {

/// The level of MatMulNBits that permits int8.
constexpr int64_t int8_level = 4;

/// The range of rows' elements.
constexpr int64_t largest_byte = 127;

bool may_quantise(const Node& node, const Target& target) {
    const int64_t size = node.integer("block_size");
    const Node* packing = node.inputs[1]->producer;
    constexpr int64_t most_steps = (1 << 24) / (255 * largest_byte);  // whose sum is exact as a float
    return node.integer("accuracy_level", 0) == int8_level && packing && packing->op_type == "PackMatMulWeights" &&
           size % quad == 0 && size <= most_steps && steps_at_once(ElementType::uint8, size, target) == quad;
}

/// Rows whose blocks are symmetrically quantised to [-largest_byte, largest_byte].
struct QuantisedRows {
    Value *integers, *scales, *sums;
};

QuantisedRows quantised(NodeReplacement& nodes, Value* rows, int64_t blocks, int64_t size) {
    constexpr float largest = largest_byte, least_scale = 0x1p-120f;  // whose reciprocal is a number
    const auto constant = [&](const std::string& role, float number) {
        return nodes.add(role, ElementType::float32, {}, std::vector{number});
    };
    const auto integers = [&](const std::string& role, const std::vector<int64_t>& all) {
        return nodes.add(role, ElementType::int64, {static_cast<int64_t>(all.size())}, all);
    };
    const auto reshaped = [&](Value* x, std::vector<int64_t> last) {
        std::vector<int64_t> shape(rows->checked_type().rank() - 1, 0);
        shape.insert(shape.end(), last.begin(), last.end());
        return nodes.add("Reshape", 13, {x, integers("shape", shape)});
    };
    const auto reduced = [&](const std::string& op, Value* x) {
        return nodes.add(op, 1, {x}, {{"axes", std::vector<int64_t>{-1}}}, own_domain);
    };
    Value* in_blocks = reshaped(rows, {blocks, size});
    Value* most = reduced("LargestMagnitude", in_blocks);
    Value* scale = nodes.add("Div", 14, {most, constant("largest", largest)});
    Value* inverse = nodes.add("Where", 16,
                               {nodes.add("Greater", 13, {scale, constant("least", least_scale)}),
                                nodes.add("Reciprocal", 13, {scale}), constant("zero", 0)});
    Value* rounded = nodes.add("Round", 11, {nodes.add("Mul", 14, {in_blocks, inverse})});
    Value* bytes = nodes.add(cast(rounded, ElementType::int8));
    Value* scaled_sum = nodes.add("Mul", 14, {reduced("SumAsFloat", bytes), scale});
    return {reshaped(bytes, {blocks * size}), reshaped(scale, {blocks}), reshaped(scaled_sum, {blocks})};
}

}  // namespace

void quantise_rows(Graph& graph, Node& node, const Target& target) {
    if (!may_quantise(node, target)) return;
    const int64_t depth = node.integer("depth"), bits = node.integer("bits"), size = node.integer("block_size");
    NodeReplacement nodes(graph, node);
    Value* a = node.inputs[0];
    if (a->checked_type().element != ElementType::float32) a = nodes.add(cast(a, ElementType::float32));
    const QuantisedRows rows = quantised(nodes, a, depth / size, size);
    Node packing = *node.inputs[1]->producer;
    packing.attributes["steps"] = quad;
    if (bits == 8) packing.attributes.erase("bits");
    std::vector<Value*> inputs = node.inputs;
    inputs.resize(7, nullptr);
    inputs[0] = rows.integers;
    inputs[1] = nodes.add("PackMatMulWeights", 1, packing.inputs, packing.attributes, own_domain);
    inputs[5] = rows.scales;
    inputs[6] = rows.sums;
    nodes.replace(node.outputs[0], nodes.add("PackedMatMulBytes", 1, inputs, node.attributes, own_domain));
}

}  // namespace onnx2halide
