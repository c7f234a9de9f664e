#pragma once

#include "ops/product/matmul_packed.h"

namespace onnx2halide {

/// The product with a constant matrix of integers of 4 or 8 bits, `bits`, which is never stored as floats: its elements
/// are (integer - zero point) * scale, with a scale and a zero point for each column of a block of `block_size` rows.
/// What is the same for all elements of a block is applied to the sum of its products. Inputs: 0: A; 1: the integers,
/// packed; 2: C, which may be omitted; 3: scales [panels, blocks, lanes], where a panel has as many columns as a block
/// of PackMatMulWeights; 4: zero points of the same shape. Attributes besides: those of PackedMatMul.
class BlockMatMul : public PackedMatMul {
public:
    explicit BlockMatMul(const Node& node)
        : PackedMatMul(node), bits_(node.integer("bits")), block_size_(node.integer("block_size")) {}

    /// Whether so many rows can be packed so: they are whole blocks, and a block's are whole words.
    static bool has_whole_blocks(int64_t depth, int64_t block_size, int64_t bits);

protected:
    /// The role under which product_in_block() stores its reduction's outer variable, of output 0.
    static constexpr const char* element_role = "element";

    int64_t steps() const override { return 1; }
    std::string define_block_sums(KernelSource& source, const Coordinates& at) const override;
    BlockSums block_sums(KernelSource& source) const override;

    /// Defines the reduction over the elements of block `number`, and returns the product that each step adds, of the
    /// type of sums.
    virtual std::string product_in_block(KernelSource& source, const Coordinates& at, const PackedColumn& column,
                                         const std::string& number) const = 0;
    /// The sum of a block's elements, a float, as a function of the sum of those products, except its scale.
    virtual std::string unscaled(KernelSource& source, const Coordinates& at, const PackedColumn& column,
                                 const std::string& block, const std::string& sum) const = 0;
    std::string scale(KernelSource& source, const PackedColumn& column, const std::string& block) const;

    int64_t bits_, block_size_;
};

}  // namespace onnx2halide
