#pragma once

#include "ops/product/matmul_packed.h"

namespace onnx2halide {

/// The product with a constant matrix of integers of 4 or 8 bits, `bits`: the compiler's own operator for MatMulNBits.
/// Its elements are (integer - zero point) * scale, with a scale and a zero point for each column of a block of
/// `block_size` rows. The constant is never stored as floats. Inputs: A, float32 or of 16 bits; integers, uint8
/// [panels, rows, lanes], or of 4 bits, 8 rows in a uint32, the first in its low bits, [panels, rows / 8, lanes], where
/// a panel has as many columns as a block of PackMatMulWeights; C, which may be omitted; scales [panels, blocks,
/// lanes]; zero points of the same shape, uint8 or floats, omitted if all are the middle of the range. Attributes
/// besides: those of PackedMatMul.
class PackedMatMulNBits : public PackedMatMul {
public:
    /// Whether so many rows can be packed so: they are whole blocks, and a block's are whole words.
    static bool has_whole_blocks(int64_t depth, int64_t block_size, int64_t bits);

    explicit PackedMatMulNBits(const Node& node)
        : PackedMatMul(node), bits_(node.integer("bits")), block_size_(node.integer("block_size")) {}

protected:
    std::string packed_element(KernelSource& source, const PackedColumn& column, const std::string& k) const override;
    int64_t steps() const override { return 1; }
    int64_t steps_of_word() const override { return bits_ == 4 ? 8 : 1; }
    /// Storing a converted integer and reading it again takes as long as converting it for two tiles of 8 rows.
    int64_t rows_in_blocks() const override { return 16; }
    std::string define_block_sums(KernelSource& source, const Coordinates& at) const override;
    BlockSums block_sums(KernelSource& source) const override;

private:
    int64_t bits_, block_size_;

    int64_t middle() const { return int64_t{1} << (bits_ - 1); }
    /// The integer n at step `k`, of 8 bits, or 1 + n / 16, of 4 bits, which takes fewer instructions.
    std::string code(KernelSource& source, const PackedColumn& column, const std::string& k) const;
    /// The zero point of a column in a block, float32.
    std::string zero_point(KernelSource& source, const PackedColumn& column, const std::string& block) const;
};

}  // namespace onnx2halide
