#include "compiler/passes/pack_n_bits.h"

#include "compiler/passes/constants.h"
#include "compiler/passes/match.h"
#include "compiler/passes/node_replacement.h"
#include "ops/product/matmul_n_bits.h"
#include "ops/product/product.h"

namespace onnx2halide {

namespace {

/// A constant matrix of integers of a few bits, with a scale for each column of a block of so many steps.
struct Blocks {
    const Node* dequantize;
    int64_t bits, size;
    bool has_columns_first;  // whether the matrix is stored as [columns, depth]
};

bool is_integer_of_few_bits(ElementType type) {
    using enum ElementType;
    return type == int4 || type == uint4 || type == int8 || type == uint8;
}

/// The blocks of a MatMul's or Gemm's right operand, which may be transposed after it is dequantised; nullopt if it is
/// something else.
std::optional<Blocks> blocks_of(const Node& node) {
    Value* weights = node.inputs[1];
    const auto axes = right_axes(node);
    if (!axes || !is_compile_time_constant(weights) || node.inputs[0]->checked_type().rank() < 2) return {};
    int64_t depth_axis = axes->inner;
    if (weights->producer && is_operator(*weights->producer, "Transpose")) {
        weights = weights->producer->inputs[0];
        depth_axis = 1 - depth_axis;  // a permutation of two axes that is no transposition has been removed
    }
    const Node* dequantize = weights->producer;
    if (!dequantize || !is_operator(*dequantize, "DequantizeLinear") || weights->checked_type().rank() != 2) return {};
    const TensorType& stored = dequantize->inputs[0]->checked_type();
    const int64_t axis = dequantize->integer("axis", 1), size = dequantize->integer("block_size", 0),
                  bits = info(stored.element).bits;
    const auto depth = stored.shape[depth_axis].constant();
    const auto sums_are_float32 = [](const Value* value) {
        return sum_type(value->checked_type().element) == ElementType::float32;
    };
    const bool has_blocks = is_integer_of_few_bits(stored.element) && size > 0 && depth &&
                            (axis + 2) % 2 == depth_axis && PackedMatMulNBits::has_whole_blocks(*depth, size, bits);
    if (!has_blocks || !sums_are_float32(node.inputs[0]) || !sums_are_float32(dequantize->inputs[1]) ||
        node.integer("transA", 0) != 0 || !stored.shape[1 - depth_axis].constant())
        return {};
    return Blocks{dequantize, bits, size, depth_axis == 1};
}

class Packing {
public:
    Packing(Graph& graph, const Node& node, const Blocks& blocks) : nodes_(graph, node), blocks_(blocks) {}

    Value* integers() { return packed(unsigned_bytes(blocks_.dequantize->inputs[0]), blocks_.bits); }
    Value* scales() { return packed(blocks_.dequantize->inputs[1]); }
    Value* zero_points() {
        Value* scales = blocks_.dequantize->inputs[1];
        if (blocks_.dequantize->has_input(2)) return packed(unsigned_bytes(blocks_.dequantize->inputs[2]));
        if (is_signed()) return nullptr;  // 0, the middle of the range
        std::vector<int64_t> shape;
        for (const Dim& extent : scales->checked_type().shape) shape.push_back(extent.number());
        const std::vector<uint8_t> zeros(scales->checked_type().elements().number());
        return packed(nodes_.add("zeros", ElementType::uint8, shape, zeros));
    }

private:
    NodeReplacement nodes_;
    Blocks blocks_;

    bool is_signed() const { return info(blocks_.dequantize->inputs[0]->checked_type().element).is_signed; }

    /// The integers, signed ones plus the middle of the range, as bytes.
    Value* unsigned_bytes(Value* integers) {
        if (!is_signed()) return nodes_.add(cast(integers, ElementType::uint8));
        Value* middle = nodes_.add("middle", ElementType::int32, {}, std::vector<int32_t>{1 << (blocks_.bits - 1)});
        Value* sum = nodes_.add("Add", 14, {nodes_.add(cast(integers, ElementType::int32)), middle});
        return nodes_.add(cast(sum, ElementType::uint8));
    }

    Value* packed(Value* matrix, int64_t bits = 0) {
        return nodes_.add("PackMatMulWeights", 1, {matrix},
                          {{"transB", int64_t{blocks_.has_columns_first}}, {"bits", bits}}, own_domain);
    }
};

}  // namespace

bool pack_n_bits(Graph& graph, Node& node) {
    const auto blocks = blocks_of(node);
    if (!blocks) return false;
    Packing packing(graph, node, *blocks);
    const std::vector<Dim>& shape = node.inputs[1]->checked_type().shape;
    const size_t depth_axis = right_axes(node)->inner;
    node.attributes["columns"] = shape[1 - depth_axis].number();
    node.attributes["depth"] = shape[depth_axis].number();
    node.attributes["bits"] = blocks->bits;
    node.attributes["block_size"] = blocks->size;
    graph.set_input(&node, 1, packing.integers());
    node.inputs.resize(5, nullptr);
    graph.set_input(&node, 3, packing.scales());
    graph.set_input(&node, 4, packing.zero_points());
    node.become("PackedMatMulNBits");
    return true;
}

}  // namespace onnx2halide
