#include "ops/product/matmul_n_bits.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace onnx2halide {

namespace {

// Roles under which the algorithm stores names for the schedule, all of output 0.
constexpr const char *total_role = "total", *block_role = "block", *of_block_role = "sum of block",
                     *element_role = "element", *of_a_role = "sum of A";

}  // namespace

bool PackedMatMulNBits::has_whole_blocks(int64_t depth, int64_t block_size, int64_t bits) {
    return depth % block_size == 0 && (bits == 8 || (bits == 4 && block_size % 8 == 0));
}

bool PackedMatMulNBits::has_zero_points() const { return bits_ == 4 || has_input(4); }

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
    const std::string block = fmt::format("{} / {}", k, block_size_),
                      scale = source.read(input(3), {column.block, block, column.lane});
    return fmt::format("({}) * {}", centred(code(source, column, k), zero_point(source, column, block)), scale);
}

std::string PackedMatMulNBits::define_block_sums(KernelSource& source, const Coordinates& at) const {
    const int64_t blocks = node_.integer("depth") / block_size_;
    const std::string number = source.var("block"),
                      element = KernelSource::axis(source.rdom("element", {block_size_}), 0),
                      block = KernelSource::axis(source.rdom("block", {blocks}), 0);
    const std::string sum = source.func(output(0)->name + "_sum_of_blocks"),
                      of_block = source.func(output(0)->name + "_block_sum"),
                      of_a = has_zero_points() ? source.func(input(0)->name + "_block_sum") : "";
    source.keep(output(0), total_role, sum);
    source.keep(output(0), block_role, block);
    source.keep(output(0), of_block_role, of_block);
    source.keep(output(0), element_role, element);
    source.keep(output(0), of_a_role, of_a);

    // What is the same for all elements of a block is applied to their sum: the scale, and the zero point, which
    // multiplies the sum of A's elements.
    const auto step = fmt::format("{} * {} + {}", number, block_size_, element);
    const auto a_sum = [&](const std::string& block) {
        return fmt::format("{}({}, {})", of_a, block, fmt::join(at.rbegin() + 1, at.rend(), ", "));
    };
    if (has_zero_points()) {
        source.line(fmt::format("{} = 0.0f;", a_sum(number)));
        source.line(fmt::format("{} += {};", a_sum(number), a_element(source, at, step)));
    }

    const PackedColumn column = packed_column(source, at.back());
    const auto block_sum = [&](const std::string& block) {
        return fmt::format("{}({}, {})", of_block, fmt::join(at.rbegin(), at.rend(), ", "), block);
    };
    source.line(fmt::format("{} = 0.0f;", block_sum(number)));
    source.line(
        fmt::format("{} += {} * {};", block_sum(number), a_element(source, at, step), code(source, column, step)));

    const std::string zero = fmt::format("{} * {}", zero_point(source, column, block), a_sum(block)),
                      scale = source.read(input(3), {column.block, block, column.lane}),
                      result = KernelSource::call(sum, out(0), at);
    source.line(fmt::format("{} = 0.0f;", result));
    source.line(fmt::format("{} += {} * ({});", result, scale, centred(block_sum(block), zero)));
    return result;
}

BlockSums PackedMatMulNBits::block_sums(KernelSource& source) const {
    const auto kept = [&](const char* role) { return source.kept(output(0), role); };
    return {kept(total_role), kept(block_role), kept(of_block_role), kept(element_role), kept(of_a_role), block_size_};
}

}  // namespace onnx2halide
