#include "ops/product/matmul_n_bits.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace onnx2halide {

namespace {

constexpr const char* of_a_role = "sum of A";

}  // namespace

std::string PackedMatMulNBits::zero_point(KernelSource& source, const PackedColumn& column,
                                          const std::string& block) const {
    if (!has_input(4)) return "24.0f";
    const std::string zero = fmt::format("cast<float>({})", source.read(input(4), {column.block, block, column.lane}));
    return bits_ == 8 ? zero : fmt::format("({} + 16)", zero);
}

std::string PackedMatMulNBits::centred(const std::string& code, const std::string& zero) const {
    const std::string integer = bits_ == 8 ? code : "16 * " + code;
    return has_zero_points() ? fmt::format("{} - {}", integer, zero) : integer;
}

std::string PackedMatMulNBits::code(KernelSource& source, const PackedColumn& column, const std::string& k) const {
    if (bits_ == 8) return fmt::format("cast<float>({})", source.read(input(1), {column.block, k, column.lane}));
    const std::string step = k.find(' ') == std::string::npos ? k : fmt::format("({})", k);
    const std::string word = source.read(input(1), {column.block, step + " / 8", column.lane});
    return fmt::format("onnx::one_and_sixteenths({}, {} % 8)", word, step);
}

std::string PackedMatMulNBits::packed_element(KernelSource& source, const PackedColumn& column,
                                              const std::string& k) const {
    const std::string block = fmt::format("{} / {}", k, block_size_);
    return fmt::format("({}) * {}", centred(code(source, column, k), zero_point(source, column, block)),
                       scale(source, column, block));
}

std::string PackedMatMulNBits::sum_of_a(KernelSource& source, const Coordinates& at, const std::string& block) const {
    return fmt::format("{}({}, {})", source.kept(output(0), of_a_role), block,
                       fmt::join(at.rbegin() + 1, at.rend(), ", "));
}

std::string PackedMatMulNBits::product_in_block(KernelSource& source, const Coordinates& at, const PackedColumn& column,
                                                const std::string& number) const {
    const std::string element = KernelSource::axis(source.rdom("element", {block_size_}), 0),
                      step = fmt::format("{} * {} + {}", number, block_size_, element);
    source.keep(output(0), element_role, element);
    if (has_zero_points()) {
        source.keep(output(0), of_a_role, source.func(input(0)->name + "_block_sum"));
        source.line(fmt::format("{} = 0.0f;", sum_of_a(source, at, number)));
        source.line(fmt::format("{} += {};", sum_of_a(source, at, number), a_element(source, at, step)));
    }
    return fmt::format("{} * {}", a_element(source, at, step), code(source, column, step));
}

BlockSums PackedMatMulNBits::block_sums(KernelSource& source) const {
    BlockSums sums = BlockMatMul::block_sums(source);
    if (has_zero_points()) sums.of_a = source.kept(output(0), of_a_role);
    return sums;
}

std::string PackedMatMulNBits::unscaled(KernelSource& source, const Coordinates& at, const PackedColumn& column,
                                        const std::string& block, const std::string& sum) const {
    const std::string zero = zero_point(source, column, block);
    return centred(sum, has_zero_points() ? fmt::format("{} * {}", zero, sum_of_a(source, at, block)) : zero);
}

}  // namespace onnx2halide
