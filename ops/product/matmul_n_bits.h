#pragma once

#include "ops/product/matmul_blocks.h"

namespace onnx2halide {

/// The compiler's own operator for MatMulNBits: the product of floats, of 32 or 16 bits, with a matrix of BlockMatMul.
/// Integers are packed by PackMatMulWeights with `bits`; zero points are integers or floats, less 128 with 8 bits, and
/// omitted if all are the middle of the range.
class PackedMatMulNBits : public BlockMatMul {
public:
    using BlockMatMul::BlockMatMul;

protected:
    std::string packed_element(KernelSource& source, const PackedColumn& column, const std::string& k) const override;
    int64_t steps_of_word() const override { return bits_ == 4 ? 8 : 1; }
    /// Storing a converted integer and reading it again takes as long as converting it for two tiles of 8 rows.
    int64_t rows_in_blocks() const override { return 16; }
    std::string product_in_block(KernelSource& source, const Coordinates& at, const PackedColumn& column,
                                 const std::string& number) const override;
    BlockSums block_sums(KernelSource& source) const override;
    std::string unscaled(KernelSource& source, const Coordinates& at, const PackedColumn& column,
                         const std::string& block, const std::string& sum) const override;

private:
    /// The integer at step `k`, less 128, of 8 bits, or 1 + n / 16 for n of 4 bits, which takes fewer instructions.
    std::string code(KernelSource& source, const PackedColumn& column, const std::string& k) const;
    /// Whether codes have another zero point than 0.
    bool has_zero_points() const { return bits_ == 4 || has_input(4); }
    /// A code, or a sum of codes, less its zero point or multiples of it.
    std::string centred(const std::string& code, const std::string& zero) const;
    /// The zero point of a column's codes in a block, float32; of 16 times the code, of 4 bits.
    std::string zero_point(KernelSource& source, const PackedColumn& column, const std::string& block) const;
    std::string sum_of_a(KernelSource& source, const Coordinates& at, const std::string& block) const;
};

}  // namespace onnx2halide
