#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

#include "ops/composite_shapes.h"
#include "ops/families.h"
#include "ops/quantised.h"

namespace onnx2halide {

namespace {

/// An operand of FusedMatMul in the form of a matrix product's. With `transBatch` its outermost axis belongs to the
/// matrix, and the axes after that are the batch.
Value* matrices(Expansion& expansion, size_t i, const std::string& letter) {
    Value* x = expansion.input(i);
    const size_t rank = x->checked_type().rank();
    const bool moves_batch = expansion.node().integer("transBatch" + letter, 0) != 0;
    if (moves_batch && rank < 3)
        throw CompileError("input {} has shape {}, expected 3 axes or more", i, shape_text(x->type->shape));
    std::vector<int64_t> order(rank);
    std::iota(order.begin(), order.end(), 0);
    if (moves_batch) std::rotate(order.begin(), order.begin() + 1, order.end() - 1);
    if (expansion.node().integer("trans" + letter, 0) != 0 && rank > 1) std::swap(order[rank - 2], order[rank - 1]);
    if (std::is_sorted(order.begin(), order.end())) return x;
    return expansion.add(letter, {"Transpose", 13, {x}, {{"perm", order}}});
}

std::vector<Value*> expand_fused_matmul(Expansion& expansion) {
    Value *a = matrices(expansion, 0, "A"), *b = matrices(expansion, 1, "B");
    Value* product = expansion.add("product", {"MatMul", 13, {a, b}});
    const float alpha = expansion.node().real("alpha", 1.0f);
    if (alpha == 1.0f) return {product};
    Value* real = expansion.constant("alpha", make_constant(ElementType::float32, {}, std::vector{alpha}));
    Value* factor = expansion.add("alpha_like", {"CastLike", 15, {real, product}});
    return {expansion.add("scaled", {"Mul", 14, {product, factor}})};
}

/// A product with B', whose rows are integers of a few bits. Each block of a row has a scale and a zero point; g_idx,
/// if given, assigns each element to a block.
class MatMulNBits {
public:
    explicit MatMulNBits(Expansion& expansion)
        : expansion_(expansion), bits_(expansion.node().integer("bits", 4)), columns_(count("N")), depth_(count("K")),
          block_(count("block_size")) {
        if (bits_ != 2 && bits_ != 4 && bits_ != 8)
            throw CompileError("attribute bits is {}, expected 2, 4 or 8", bits_);
        if (block_ * bits_ % 8 != 0) throw CompileError("block_size is {}, expected blocks of whole bytes", block_);
        blocks_ = (depth_ + block_ - 1) / block_;
    }

    Value* make() {
        check_shape(1, {columns_, blocks_, block_ * bits_ / 8});
        check_elements(2, columns_ * blocks_);
        Value* scales = reshaped(expansion_, "scale", expansion_.input(2), {columns_, blocks_, 1});
        Value* rows = expansion_.has_input(groups_input) ? rows_in_groups(scales) : rows_in_blocks(scales);
        Value* b = expansion_.add("B", {"Transpose", 13, {rows}, {{"perm", std::vector<int64_t>{1, 0}}}});
        Value* product = expansion_.add("product", {"MatMul", 13, {expansion_.input(0), b}});
        Value* bias = expansion_.optional_input(5);
        return bias ? expansion_.add("biased", {"Add", 14, {product, bias}}) : product;
    }

private:
    static constexpr size_t groups_input = 4;

    Value* rows_in_blocks(Value* scales) {
        Value* elements = unpacked("elements", expansion_.input(1), {columns_, blocks_, block_});
        Value* real = dequantised(elements, zero_points(), scales);
        return without_padding("rows", reshaped(expansion_, "padded_rows", real, {columns_, blocks_ * block_}), 1);
    }

    Value* rows_in_groups(Value* scales) {
        Value* groups = expansion_.input(groups_input);
        const Dim numbers = groups->checked_type().elements();
        if (!numbers.is(depth_) && !numbers.is(blocks_ * block_))
            throw CompileError("input {} (g_idx) has {} elements, expected {}", groups_input, numbers.text(), depth_);
        groups = without_padding("group", groups, 0);
        const auto of_elements = [&](const std::string& role, Value* of_blocks) {
            return expansion_.add(role, {"Gather", 13, {of_blocks, groups}, {{"axis", int64_t{1}}}});
        };
        Value* elements = unpacked("elements", expansion_.input(1), {columns_, blocks_ * block_, 1});
        Value* zero = zero_points();
        if (expansion_.has_input(3)) zero = of_elements("zero_of_elements", zero);
        Value* real = dequantised(without_padding("rows", elements, 1), zero, of_elements("scale_of_elements", scales));
        return reshaped(expansion_, "real_rows", real, {columns_, depth_});
    }

    Value* dequantised(Value* elements, Value* zero, Value* scales) {
        Value* centred = expansion_.add("centred", {"Sub", 14, {like_scales("blocks", elements), zero}});
        return expansion_.add("real", {"Mul", 14, {centred, scales}});
    }

    /// Removes the padding of the last block.
    Value* without_padding(const std::string& role, Value* x, int64_t axis) {
        return x->checked_type().shape[axis].is(depth_) ? x : part(expansion_, role, x, axis, 0, depth_);
    }

    int64_t count(const std::string& attribute) const {
        const int64_t number = expansion_.node().integer(attribute);
        if (number < 1 || number > std::numeric_limits<int32_t>::max())
            throw CompileError("attribute {} is {}, expected a positive number", attribute, number);
        return number;
    }

    void check_shape(size_t i, const std::vector<Dim>& expected) const {
        const std::vector<Dim>& found = expansion_.input(i)->checked_type().shape;
        if (!std::equal(found.begin(), found.end(), expected.begin(), expected.end(), may_be_equal))
            throw CompileError("input {} has shape {}, expected {}", i, shape_text(found), shape_text(expected));
    }

    void check_elements(size_t i, int64_t expected) const {
        const TensorType& type = expansion_.input(i)->checked_type();
        if (prove_equal(type.elements(), expected) == Proof::no)
            throw CompileError("input {} has shape {}, expected {} elements", i, shape_text(type.shape), expected);
    }

    Value* unpacked(const std::string& role, Value* bytes, const std::vector<int64_t>& shape) {
        return onnx2halide::unpacked(expansion_, role, bytes, bits_, shape);
    }

    /// The zero point of each block; the middle of the range if they are omitted.
    Value* zero_points() {
        Value* given = expansion_.optional_input(3);
        if (!given) {
            const auto middle = static_cast<float>(1 << (bits_ - 1));
            return like_scales("zero_point", expansion_.constant("middle", make_constant(ElementType::float32, {},
                                                                                         std::vector{middle})));
        }
        if (given->checked_type().element != ElementType::uint8) {
            check_elements(3, columns_ * blocks_);
            return reshaped(expansion_, "zero_point", given, {columns_, blocks_, 1});
        }
        const int64_t in_byte = 8 / bits_, bytes = (blocks_ + in_byte - 1) / in_byte;
        check_elements(3, columns_ * bytes);
        Value* rows = reshaped(expansion_, "zero_bytes", given, {columns_, bytes});
        Value* all = unpacked("zero_points", rows, {columns_, bytes * in_byte, 1});
        return like_scales("zero_point", part(expansion_, "zero_of_blocks", all, 1, 0, blocks_));
    }

    Value* like_scales(const std::string& role, Value* x) {
        return expansion_.add(role, {"CastLike", 15, {x, expansion_.input(2)}});
    }

    Expansion& expansion_;
    int64_t bits_, columns_, depth_, block_, blocks_ = 0;
};

/// The values of the codes of MatMulBnb4, as in bitsandbytes: 4-bit floats, or NF4 (Dettmers et al., 2023), whose steps
/// divide a normal distribution evenly.
constexpr std::array<float, 16> fp4 = {0.0f,         0.0052083333f, 0.6666667f,   1.0f,           0.33333333f, 0.5f,
                                       0.16666667f,  0.25f,         -0.0f,        -0.0052083333f, -0.6666667f, -1.0f,
                                       -0.33333333f, -0.5f,         -0.16666667f, -0.25f};
constexpr std::array<float, 16> nf4 = {
    -1.0f,       -0.69619280f, -0.52507305f, -0.39491749f, -0.28444138f, -0.18477343f, -0.09105004f, 0.0f,
    0.07958030f, 0.16093020f,  0.24611230f,  0.33791524f,  0.44070983f,  0.56261700f,  0.72295684f,  1.0f,
};

/// A product with a matrix [N, K], or its transpose, of 4-bit codes, the first of each byte in its high bits. Its
/// blocks, row after row, have one scale each.
std::vector<Value*> expand_matmul_bnb4(Expansion& expansion) {
    const Node& node = expansion.node();
    const int64_t rows = node.integer("N"), columns = node.integer("K"), block = node.integer("block_size"),
                  type = node.integer("quant_type");
    if (rows < 1 || columns < 1 || block < 1)
        throw CompileError("N, K and block_size are {}, {} and {}, expected 1 or more", rows, columns, block);
    if (type != 0 && type != 1) throw CompileError("quant_type is {}, expected 0 or 1", type);
    const int64_t elements = rows * columns, blocks = (elements + block - 1) / block, bytes = (elements + 1) / 2;
    const auto check = [&](size_t i, int64_t expected) {
        if (prove_equal(expansion.input(i)->checked_type().elements(), expected) == Proof::no)
            throw CompileError("input {} has shape {}, expected {} elements", i,
                               shape_text(expansion.input(i)->checked_type().shape), expected);
    };
    check(1, bytes);
    check(2, blocks);
    Value* pairs =
        unpacked(expansion, "pairs", reshaped(expansion, "bytes", expansion.input(1), {bytes}), 4, {bytes, 2});
    Value* high_first = expansion.add(
        "codes", {"Gather", 13, {pairs, integer_constant(expansion, "order", {1, 0})}, {{"axis", int64_t{1}}}});
    Value* codes = part(expansion, "code", reshaped(expansion, "code_row", high_first, {bytes * 2}), 0, 0, elements);
    const auto& numbers = type == 0 ? fp4 : nf4;
    Value* table = expansion.constant(
        "numbers", make_constant(ElementType::float32, {16}, std::vector<float>(numbers.begin(), numbers.end())));
    Value* indices = expansion.add("index", {"Cast", 13, {codes}, {{"to", static_cast<int64_t>(ElementType::int32)}}});
    Value* real = expansion.add("real", {"Gather", 13, {table, indices}});
    Value* scales = expansion.add("scales", {"Cast",
                                             13,
                                             {reshaped(expansion, "scale_column", expansion.input(2), {blocks, 1})},
                                             {{"to", static_cast<int64_t>(ElementType::float32)}}});
    Value* spread =
        expansion.add("spread", {"Expand", 13, {scales, integer_constant(expansion, "blocks", {blocks, block})}});
    Value* scale = part(expansion, "scale", reshaped(expansion, "scale_row", spread, {blocks * block}), 0, 0, elements);
    Value* scaled = expansion.add("scaled", {"Mul", 14, {real, scale}});
    Value* matrix = expansion.add(
        "matrix", {"CastLike", 15, {reshaped(expansion, "real_matrix", scaled, {rows, columns}), expansion.input(0)}});
    if (node.integer("transB", 1) != 0)
        matrix = expansion.add("B", {"Transpose", 13, {matrix}, {{"perm", std::vector<int64_t>{1, 0}}}});
    return {expansion.add("product", {"MatMul", 13, {expansion.input(0), matrix}})};
}

std::vector<Value*> expand_matmul_n_bits(Expansion& expansion) { return {MatMulNBits(expansion).make()}; }

}  // namespace

std::vector<Operator> fused_product_operators() {
    return {
        {"FusedMatMul", 1, make_composite<expand_fused_matmul>, microsoft_domain},
        {"MatMulBnb4", 1, make_composite<expand_matmul_bnb4>, microsoft_domain},
        {"MatMulNBits", 1, make_composite<expand_matmul_n_bits>, microsoft_domain},
        {"TransposeMatMul", 1, make_composite<expand_fused_matmul>, microsoft_domain},
    };
}

}  // namespace onnx2halide
