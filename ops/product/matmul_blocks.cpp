#include "ops/product/matmul_blocks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace onnx2halide {

namespace {

constexpr const char *total_role = "total", *block_role = "block", *of_block_role = "sum of block";

}  // namespace

bool BlockMatMul::has_whole_blocks(int64_t depth, int64_t block_size, int64_t bits) {
    return depth % block_size == 0 && (bits == 8 || (bits == 4 && block_size % 8 == 0));
}

std::string BlockMatMul::scale(KernelSource& source, const PackedColumn& column, const std::string& block) const {
    return source.read(input(3), {column.block, block, column.lane});
}

std::string BlockMatMul::define_block_sums(KernelSource& source, const Coordinates& at) const {
    const std::string number = source.var("block"),
                      block = KernelSource::axis(source.rdom("block", {node_.integer("depth") / block_size_}), 0),
                      total = source.func(output(0)->name + "_sum_of_blocks"),
                      of_block = source.func(output(0)->name + "_block_sum");
    source.keep(output(0), total_role, total);
    source.keep(output(0), block_role, block);
    source.keep(output(0), of_block_role, of_block);

    const PackedColumn column = packed_column(source, at.back());
    const auto sum_of = [&](const std::string& block) {
        return fmt::format("{}({}, {})", of_block, fmt::join(at.rbegin(), at.rend(), ", "), block);
    };
    const std::string product = product_in_block(source, at, column, number);
    source.line(fmt::format("{} = {};", sum_of(number), KernelSource::literal(int64_t{0}, sum_type())));
    source.line(fmt::format("{} += {};", sum_of(number), product));

    const std::string result = KernelSource::call(total, out(0), at);
    source.line(fmt::format("{} = 0.0f;", result));
    source.line(fmt::format("{} += {} * ({});", result, scale(source, column, block),
                            unscaled(source, at, column, block, sum_of(block))));
    return result;
}

BlockSums BlockMatMul::block_sums(KernelSource& source) const {
    const auto kept = [&](const char* role) { return source.kept(output(0), role); };
    return {.sum = kept(total_role),
            .block = kept(block_role),
            .of_block = kept(of_block_role),
            .element = kept(element_role),
            .size = block_size_};
}

}  // namespace onnx2halide
