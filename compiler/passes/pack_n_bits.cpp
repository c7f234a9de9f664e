#include "compiler/passes/pack_n_bits.h"

#include <numeric>
#include <optional>

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

/// The steps of blocks in which a DequantizeLinear gives each column of a matrix one scale; 0 if there are none.
int64_t steps_of_block(const Node& dequantize, int64_t bits, int64_t depth_axis, int64_t depth) {
    const bool is_along_depth = (dequantize.integer("axis", 1) + 2) % 2 == depth_axis;
    if (const int64_t size = dequantize.integer("block_size", 0); size > 0) return is_along_depth ? size : 0;
    if (is_along_depth && !dequantize.inputs[1]->checked_type().elements().is(1)) return 0;
    // Sums of 4 bits are off by multiples of the sum of A's elements, which are subtracted before they grow too large.
    return bits == 8 ? depth : std::gcd(depth, int64_t{128});
}

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
    const int64_t bits = info(stored.element).bits;
    const auto depth = stored.shape[depth_axis].constant();
    const auto sums_are_float32 = [](const Value* value) {
        return sum_type(value->checked_type().element) == ElementType::float32;
    };
    if (!is_integer_of_few_bits(stored.element) || !depth || !stored.shape[1 - depth_axis].constant()) return {};
    const int64_t size = steps_of_block(*dequantize, bits, depth_axis, *depth);
    if (size == 0 || !BlockMatMul::has_whole_blocks(*depth, size, bits) || !sums_are_float32(node.inputs[0]) ||
        !sums_are_float32(dequantize->inputs[1]) || node.integer("transA", 0) != 0)
        return {};
    return Blocks{dequantize, bits, size, depth_axis == 1};
}

class Packing {
public:
    Packing(Graph& graph, Node& node, const Blocks& blocks)
        : nodes_(graph, node), dequantize_(*blocks.dequantize), blocks_(blocks) {
        const std::vector<Dim>& shape = dequantize_.inputs[0]->checked_type().shape;
        columns_ = shape[blocks.has_columns_first ? 0 : 1].number();
        depth_ = shape[blocks.has_columns_first ? 1 : 0].number();
    }

    std::map<std::string, Attribute> attributes() const {
        return {{"columns", columns_}, {"depth", depth_}, {"bits", blocks_.bits}, {"block_size", blocks_.size}};
    }
    Value* integers() { return packed(unsigned_bytes(dequantize_.inputs[0]), blocks_.bits); }
    Value* scales() { return packed(of_blocks(dequantize_.inputs[1])); }
    Value* zero_points() {
        if (is_signed() && !dequantize_.has_input(2)) return nullptr;  // 0, the middle of the range
        Value* zero = dequantize_.has_input(2) ? unsigned_bytes(dequantize_.inputs[2])
                                               : nodes_.add("zero", ElementType::uint8, {}, std::vector<uint8_t>{0});
        return packed(of_blocks(zero), blocks_.bits == 8 ? 8 : 0);
    }

private:
    NodeReplacement nodes_;
    const Node& dequantize_;
    Blocks blocks_;
    int64_t columns_, depth_;

    bool is_signed() const { return info(dequantize_.inputs[0]->checked_type().element).is_signed; }

    /// The integers, signed ones plus the middle of the range, as bytes.
    Value* unsigned_bytes(Value* integers) {
        if (!is_signed()) return nodes_.add(cast(integers, ElementType::uint8));
        Value* middle = nodes_.add("middle", ElementType::int32, {}, std::vector<int32_t>{1 << (blocks_.bits - 1)});
        Value* sum = nodes_.add("Add", 14, {nodes_.add(cast(integers, ElementType::int32)), middle});
        return nodes_.add(cast(sum, ElementType::uint8));
    }

    /// A number for each block and column, which may be given for columns or for all, as a matrix.
    Value* of_blocks(Value* numbers) {
        const auto in_order = [&](int64_t blocks, int64_t columns) {
            std::vector<int64_t> shape = {blocks, columns};
            if (blocks_.has_columns_first) std::swap(shape[0], shape[1]);
            return nodes_.add("shape", ElementType::int64, {2}, shape);
        };
        if (dequantize_.integer("block_size", 0) > 0 && numbers->checked_type().rank() == 2) return numbers;
        Value* matrix = nodes_.add("Reshape", 13, {numbers, in_order(1, -1)});
        return nodes_.add("Expand", 13, {matrix, in_order(depth_ / blocks_.size, columns_)});
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
    for (const auto& [name, value] : packing.attributes()) node.attributes[name] = value;
    graph.set_input(&node, 1, packing.integers());
    node.inputs.resize(5, nullptr);
    graph.set_input(&node, 3, packing.scales());
    graph.set_input(&node, 4, packing.zero_points());
    node.become("PackedMatMulNBits");
    return true;
}

}  // namespace onnx2halide
