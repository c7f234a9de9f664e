#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

#include "ops/composite_shapes.h"
#include "ops/families.h"
#include "ops/product/matmul_n_bits.h"
#include "ops/product/matmul_tile.h"
#include "ops/product/product.h"
#include "ops/quantised/quantised.h"

namespace onnx2halide {

namespace {

/// An operand of FusedMatMul in the form of a matrix product's. With `transBatch` its outermost axis belongs to the
/// matrix, and the axes after that are the batch.
Value* matrices(CompositeBuilder& builder, size_t i, const std::string& letter) {
    Value* x = builder.input(i);
    const size_t rank = x->checked_type().rank();
    const bool moves_batch = builder.node().integer("transBatch" + letter, 0) != 0;
    if (moves_batch && rank < 3)
        throw CompileError("input {} has shape {}, expected 3 axes or more", i, shape_text(x->type->shape));
    std::vector<int64_t> order(rank);
    std::iota(order.begin(), order.end(), 0);
    if (moves_batch) std::rotate(order.begin(), order.begin() + 1, order.end() - 1);
    if (builder.node().integer("trans" + letter, 0) != 0 && rank > 1) std::swap(order[rank - 2], order[rank - 1]);
    if (std::is_sorted(order.begin(), order.end())) return x;
    return builder.add(letter, {"Transpose", 13, {x}, {{"perm", order}}});
}

std::vector<Value*> expand_fused_matmul(CompositeBuilder& builder) {
    Value *a = matrices(builder, 0, "A"), *b = matrices(builder, 1, "B");
    Value* product = builder.add("product", {"MatMul", 13, {a, b}});
    const float alpha = builder.node().real("alpha", 1.0f);
    if (alpha == 1.0f) return {product};
    Value* real = builder.constant("alpha", make_constant(ElementType::float32, {}, std::vector{alpha}));
    Value* factor = builder.add("alpha_like", {"CastLike", 15, {real, product}});
    return {builder.add("scaled", {"Mul", 14, {product, factor}})};
}

/// A product with B', whose rows are integers of a few bits. Each block of a row has a scale and a zero point; g_idx,
/// if given, assigns each element to a block.
class MatMulNBits {
public:
    explicit MatMulNBits(CompositeBuilder& builder)
        : builder_(builder), bits_(builder.node().integer("bits", 4)), columns_(count("N")), depth_(count("K")),
          block_(count("block_size")) {
        if (bits_ != 2 && bits_ != 4 && bits_ != 8)
            throw CompileError("attribute bits is {}, expected 2, 4 or 8", bits_);
        if (block_ * bits_ % 8 != 0) throw CompileError("block_size is {}, expected blocks of whole bytes", block_);
        blocks_ = (depth_ + block_ - 1) / block_;
    }

    Value* make() {
        check_shape(1, {columns_, blocks_, block_ * bits_ / 8});
        check_elements(2, columns_ * blocks_);
        Value* scales = reshaped(builder_, "scale", builder_.input(2), {columns_, blocks_, 1});
        if (stays_packed()) return packed_product(scales);
        Value* rows = builder_.has_input(groups_input) ? rows_in_groups(scales) : rows_in_blocks(scales);
        Value* b = builder_.add("B", {"Transpose", 13, {rows}, {{"perm", std::vector<int64_t>{1, 0}}}});
        Value* product = builder_.add("product", {"MatMul", 13, {builder_.input(0), b}});
        Value* bias = builder_.optional_input(5);
        return bias ? builder_.add("biased", {"Add", 14, {product, bias}}) : product;
    }

private:
    static constexpr size_t groups_input = 4;

    /// Whether the integers stay as they are until they are multiplied, in order to read fewer bytes.
    bool stays_packed() const {
        const auto sums_are_float32 = [&](size_t i) {
            return sum_type(builder_.input(i)->type->element) == ElementType::float32;
        };
        for (size_t i = 1; i <= 3; ++i) {
            if (builder_.has_input(i) && !builder_.input(i)->constant) return false;
        }
        const bool has_rows = builder_.input(0)->checked_type().rank() > 1;
        return has_rows && BlockMatMul::has_whole_blocks(depth_, block_, bits_) && !builder_.has_input(groups_input) &&
               sums_are_float32(0) && sums_are_float32(2);
    }

    /// See PackedMatMulNBits.
    Value* packed_product(Value* scales) {
        Value* rows = unpacked("rows", builder_.input(1), {columns_, depth_});
        Value* integers = in_panels("elements", rows, bits_);
        Value* zero = builder_.has_input(3) ? packed_zero_points() : nullptr;
        Value* scale = in_panels("scale_panels", reshaped(builder_, "scale_rows", scales, {columns_, blocks_}));
        std::map<std::string, Attribute> attributes = {
            {"columns", columns_},
            {"depth", depth_},
            {"bits", bits_},
            {"block_size", block_},
            {"accuracy_level", builder_.node().integer("accuracy_level", 0)}};
        return builder_.add("product", {"PackedMatMulNBits",
                                        1,
                                        {builder_.input(0), integers, builder_.optional_input(5), scale, zero},
                                        attributes,
                                        own_domain});
    }

    Value* packed_zero_points() {
        Value* rows = reshaped(builder_, "zero_rows", given_zero_points(), {columns_, blocks_});
        if (rows->checked_type().element == ElementType::uint8) return in_panels("zero", rows, bits_ == 8 ? 8 : 0);
        if (bits_ == 8) {
            Value* middle = builder_.constant("middle", make_constant(ElementType::float32, {}, std::vector{128.0f}));
            Value* real = builder_.add("real_zero", cast(rows, ElementType::float32));
            rows = builder_.add("zero_less_middle", {"Sub", 14, {real, middle}});
        }
        return in_panels("zero", rows);
    }

    Value* in_panels(const std::string& role, Value* rows, int64_t bits = 0) {
        return builder_.add(role,
                            {"PackMatMulWeights", 1, {rows}, {{"transB", int64_t{1}}, {"bits", bits}}, own_domain});
    }

    Value* rows_in_blocks(Value* scales) {
        Value* elements = unpacked("elements", builder_.input(1), {columns_, blocks_, block_});
        Value* real = dequantised(elements, zero_points(), scales);
        return without_padding("rows", reshaped(builder_, "padded_rows", real, {columns_, blocks_ * block_}), 1);
    }

    Value* rows_in_groups(Value* scales) {
        Value* groups = builder_.input(groups_input);
        const Dim numbers = groups->checked_type().elements();
        if (!numbers.is(depth_) && !numbers.is(blocks_ * block_))
            throw CompileError("input {} (g_idx) has {} elements, expected {}", groups_input, numbers.text(), depth_);
        groups = without_padding("group", groups, 0);
        const auto of_elements = [&](const std::string& role, Value* of_blocks) {
            return builder_.add(role, {"Gather", 13, {of_blocks, groups}, {{"axis", int64_t{1}}}});
        };
        Value* elements = unpacked("elements", builder_.input(1), {columns_, blocks_ * block_, 1});
        Value* zero = zero_points();
        if (builder_.has_input(3)) zero = of_elements("zero_of_elements", zero);
        Value* real = dequantised(without_padding("rows", elements, 1), zero, of_elements("scale_of_elements", scales));
        return reshaped(builder_, "real_rows", real, {columns_, depth_});
    }

    Value* dequantised(Value* elements, Value* zero, Value* scales) {
        Value* centred = builder_.add("centred", {"Sub", 14, {like_scales("blocks", elements), zero}});
        return builder_.add("real", {"Mul", 14, {centred, scales}});
    }

    /// Removes the padding of the last block.
    Value* without_padding(const std::string& role, Value* x, int64_t axis) {
        return x->checked_type().shape[axis].is(depth_) ? x : part(builder_, role, x, axis, 0, depth_);
    }

    int64_t count(const std::string& attribute) const {
        const int64_t number = builder_.node().integer(attribute);
        if (number < 1 || number > std::numeric_limits<int32_t>::max())
            throw CompileError("attribute {} is {}, expected a positive number", attribute, number);
        return number;
    }

    void check_shape(size_t i, const std::vector<Dim>& expected) const {
        const std::vector<Dim>& found = builder_.input(i)->checked_type().shape;
        if (!std::equal(found.begin(), found.end(), expected.begin(), expected.end(), may_be_equal))
            throw CompileError("input {} has shape {}, expected {}", i, shape_text(found), shape_text(expected));
    }

    void check_elements(size_t i, int64_t expected) const {
        const TensorType& type = builder_.input(i)->checked_type();
        if (prove_equal(type.elements(), expected) == Proof::no)
            throw CompileError("input {} has shape {}, expected {} elements", i, shape_text(type.shape), expected);
    }

    Value* unpacked(const std::string& role, Value* bytes, const std::vector<int64_t>& shape) {
        return onnx2halide::unpacked(builder_, role, bytes, bits_, shape);
    }

    /// The zero point of each block; the middle of the range if they are omitted.
    Value* zero_points() {
        if (builder_.has_input(3)) return like_scales("zero_point", given_zero_points());
        const auto middle = static_cast<float>(1 << (bits_ - 1));
        return like_scales("zero_point",
                           builder_.constant("middle", make_constant(ElementType::float32, {}, std::vector{middle})));
    }

    /// The zero points [columns, blocks, 1], uint8 or of another type.
    Value* given_zero_points() {
        Value* given = builder_.input(3);
        if (given->checked_type().element != ElementType::uint8) {
            check_elements(3, columns_ * blocks_);
            return reshaped(builder_, "given_zero_point", given, {columns_, blocks_, 1});
        }
        const int64_t in_byte = 8 / bits_, bytes = (blocks_ + in_byte - 1) / in_byte;
        check_elements(3, columns_ * bytes);
        Value* rows = reshaped(builder_, "zero_bytes", given, {columns_, bytes});
        Value* all = unpacked("zero_points", rows, {columns_, bytes * in_byte, 1});
        return part(builder_, "zero_of_blocks", all, 1, 0, blocks_);
    }

    Value* like_scales(const std::string& role, Value* x) {
        return builder_.add(role, {"CastLike", 15, {x, builder_.input(2)}});
    }

    CompositeBuilder& builder_;
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
std::vector<Value*> expand_matmul_bnb4(CompositeBuilder& builder) {
    const Node& node = builder.node();
    const int64_t rows = node.integer("N"), columns = node.integer("K"), block = node.integer("block_size"),
                  type = node.integer("quant_type");
    if (rows < 1 || columns < 1 || block < 1)
        throw CompileError("N, K and block_size are {}, {} and {}, expected 1 or more", rows, columns, block);
    if (type != 0 && type != 1) throw CompileError("quant_type is {}, expected 0 or 1", type);
    const int64_t elements = rows * columns, blocks = (elements + block - 1) / block, bytes = (elements + 1) / 2;
    const auto check = [&](size_t i, int64_t expected) {
        if (prove_equal(builder.input(i)->checked_type().elements(), expected) == Proof::no)
            throw CompileError("input {} has shape {}, expected {} elements", i,
                               shape_text(builder.input(i)->checked_type().shape), expected);
    };
    check(1, bytes);
    check(2, blocks);
    Value* pairs = unpacked(builder, "pairs", reshaped(builder, "bytes", builder.input(1), {bytes}), 4, {bytes, 2});
    Value* high_first = builder.add(
        "codes", {"Gather", 13, {pairs, integer_constant(builder, "order", {1, 0})}, {{"axis", int64_t{1}}}});
    Value* codes = part(builder, "code", reshaped(builder, "code_row", high_first, {bytes * 2}), 0, 0, elements);
    const auto& numbers = type == 0 ? fp4 : nf4;
    Value* table = builder.constant(
        "numbers", make_constant(ElementType::float32, {16}, std::vector<float>(numbers.begin(), numbers.end())));
    Value* indices = builder.add("index", cast(codes, ElementType::int32));
    Value* real = builder.add("real", {"Gather", 13, {table, indices}});
    Value* scales = builder.add(
        "scales", cast(reshaped(builder, "scale_column", builder.input(2), {blocks, 1}), ElementType::float32));
    Value* spread =
        builder.add("spread", {"Expand", 13, {scales, integer_constant(builder, "blocks", {blocks, block})}});
    Value* scale = part(builder, "scale", reshaped(builder, "scale_row", spread, {blocks * block}), 0, 0, elements);
    Value* scaled = builder.add("scaled", {"Mul", 14, {real, scale}});
    Value* matrix = builder.add(
        "matrix", {"CastLike", 15, {reshaped(builder, "real_matrix", scaled, {rows, columns}), builder.input(0)}});
    if (node.integer("transB", 1) != 0)
        matrix = builder.add("B", {"Transpose", 13, {matrix}, {{"perm", std::vector<int64_t>{1, 0}}}});
    return {builder.add("product", {"MatMul", 13, {builder.input(0), matrix}})};
}

std::vector<Value*> expand_matmul_n_bits(CompositeBuilder& builder) { return {MatMulNBits(builder).make()}; }

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
