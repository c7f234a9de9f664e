#include "ops/product/matmul_bytes.h"

#include <fmt/format.h>

#include "ops/product/product.h"

namespace onnx2halide {

namespace {

constexpr const char *quad_role = "quad", *integers_role = "integers", *place_role = "place", *group_role = "group";

}  // namespace

std::vector<TensorType> PackedMatMulBytes::infer() const {
    TensorType type = PackedMatMul::infer()[0];
    type.element = ElementType::float32;
    return {type};
}

std::optional<AxisRun> PackedMatMulBytes::axes_gaining_as_one(const Target& target) const {
    auto run = BlockMatMul::axes_gaining_as_one(target);
    if (run) run->operands = {0, 5, 6};
    return run;
}

std::string PackedMatMulBytes::product_in_block(KernelSource& source, const Coordinates& at, const PackedColumn& column,
                                                const std::string& number) const {
    const int64_t groups = block_size_ / quad;
    const std::string steps = source.rdom("step", {quad, groups}), place = KernelSource::axis(steps, 0),
                      group = KernelSource::axis(steps, 1);
    source.keep(output(0), element_role, group);
    source.keep(output(0), quad_role, place);
    const std::string step = fmt::format("{} * {} + {} * {} + {}", number, block_size_, group, quad, place);
    const std::string index = fmt::format("{} * {} + {}", number, groups, group),
                      integer = bits_ == 8 ? source.read(input(1), {column.block, index, column.lane, place})
                                           : define_integers(source, at.back(), column, index, place);
    return fmt::format("cast<int32_t>({}) * cast<int32_t>({})", integer, a_element(source, at, step));
}

std::string PackedMatMulBytes::define_integers(KernelSource& source, const std::string& column,
                                               const PackedColumn& packed, const std::string& index,
                                               const std::string& place) const {
    const std::string func = source.func(input(1)->name + "_integers"), any_place = source.var("place"),
                      group = source.var("group");
    source.keep(output(0), integers_role, func);
    source.keep(output(0), place_role, any_place);
    source.keep(output(0), group_role, group);
    // The low bits of a byte belong to one group, the high ones to the next.
    const std::string byte = source.read(input(1), {packed.block, group + " / 2", packed.lane, any_place}),
                      shift = fmt::format("cast<uint8_t>(4 * ({} % 2))", group);
    source.line(
        fmt::format("{}({}, {}, {}) = ({} >> {}) & cast<uint8_t>(15);", func, any_place, column, group, byte, shift));
    return fmt::format("{}({}, {}, {})", func, place, column, index);
}

std::string PackedMatMulBytes::unscaled(KernelSource& source, const Coordinates& at, const PackedColumn& column,
                                        const std::string& block, const std::string& sum) const {
    Coordinates of_a = at;
    of_a.back() = block;
    std::string zero = fmt::format("{}.0f", 1 << (bits_ - 1));
    if (has_input(4)) {
        const std::string given =
            fmt::format("cast<float>({})", source.read(input(4), {column.block, block, column.lane}));
        zero = bits_ == 8 ? fmt::format("({} + 128)", given) : given;
    }
    return fmt::format("cast<float>({}) * {} - {} * {}", sum, source.read(input(5), of_a), zero,
                       source.read(input(6), of_a));
}

BlockSums PackedMatMulBytes::block_sums(KernelSource& source) const {
    BlockSums sums = BlockMatMul::block_sums(source);
    sums.at_once = source.kept(output(0), quad_role);
    if (bits_ == 8) return sums;
    sums.integers = source.kept(output(0), integers_role);
    sums.place = source.kept(output(0), place_role);
    sums.group = source.kept(output(0), group_role);
    return sums;
}

}  // namespace onnx2halide
