#pragma once

#include "ops/product/matmul_packed.h"

namespace onnx2halide {

/// The product with a constant matrix of integers of 4 or 8 bits, `bits`: the compiler's own operator for MatMulNBits.
/// Its elements are (integer - zero point) * scale, with a scale and a zero point for each column of a block of
/// `block_size` rows. The constant is never stored as floats. Inputs: A, float32 or of 16 bits; integers, packed
/// by PackMatMulWeights with `bits`; C, which may be omitted; scales [panels, blocks, lanes], where a panel has as many
/// columns as the integers'; zero points of the same shape, integers or floats, less 128 with 8 bits, omitted if all
/// are the middle of the range. Attributes besides: those of PackedMatMul.
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

    /// The integer at step `k`, less 128, of 8 bits, or 1 + n / 16 for n of 4 bits, which takes fewer instructions.
    std::string code(KernelSource& source, const PackedColumn& column, const std::string& k) const;
    /// Whether codes have another zero point than 0.
    bool has_zero_points() const;
    /// A code, or a sum of codes, less its zero point or multiples of it.
    std::string centred(const std::string& code, const std::string& zero) const;
    /// The zero point of a column's codes in a block, float32; of 16 times the code, of 4 bits.
    std::string zero_point(KernelSource& source, const PackedColumn& column, const std::string& block) const;
};

}  // namespace onnx2halide
