#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "compiler/graph/new_node.h"
#include "compiler/passes/passes.h"

namespace onnx2halide {

namespace {

bool is_subnormal(uint32_t bits) {
    constexpr uint32_t exponent = 0x7f800000, fraction = 0x007fffff;
    return (bits & exponent) == 0 && (bits & fraction) != 0;
}

bool has_subnormals(const Constant& constant) {
    return constant.element == ElementType::float32 && std::ranges::any_of(constant.as<uint32_t>(), is_subnormal);
}

/// Whether a node multiplies computed tensors by weights and adds them up, or scales and shifts rows.
bool has_weights(const Node& node) {
    static constexpr std::array<std::string_view, 12> operators = {"Conv",
                                                                   "ConvTranspose",
                                                                   "MatMul",
                                                                   "Gemm",
                                                                   "PackedConv",
                                                                   "WinogradConv",
                                                                   "PackedMatMul",
                                                                   "BatchNormalization",
                                                                   "LayerNormalization",
                                                                   "InstanceNormalization",
                                                                   "GroupNormalization",
                                                                   "RMSNormalization"};
    return std::ranges::find(operators, node.op_type) != operators.end();
}

Constant flushed(const Constant& constant) {
    const auto elements = constant.as<uint32_t>();
    std::vector<uint32_t> bits(elements.begin(), elements.end());
    std::ranges::replace_if(bits, is_subnormal, 0);
    return make_constant(constant.element, constant.shape, bits);
}

}  // namespace

void flush_subnormals(Graph& graph) {
    std::unordered_map<const Value*, Value*> known;  // by the constant, which nodes may share: what they read instead
    for (Node* node : graph.snapshot()) {
        if (!has_weights(*node)) continue;
        for (size_t i = 0; i < node->inputs.size(); ++i) {
            Value* value = node->inputs[i];
            if (!value || !value->is_constant()) continue;
            const auto [place, is_new] = known.try_emplace(value, value);
            if (is_new && has_subnormals(*value->constant)) {
                Value* zeros = add_constant(graph, flushed(*value->constant), value->name);
                zeros->type = value->type;
                place->second = zeros;
            }
            if (place->second != value) graph.set_input(node, i, place->second);
        }
    }
}

}  // namespace onnx2halide
