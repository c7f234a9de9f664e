#include "ops/product/matmul_packed.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ops/product/matmul_tile.h"
#include "ops/product/product.h"

namespace onnx2halide {

ScaledProduct::ScaledProduct(const Node& node)
    : MatrixProduct(node), transposes_a_(node.integer("transA", 0) != 0), alpha_(node.real("alpha", 1.0f)),
      beta_(node.real("beta", 1.0f)) {}

void ScaledProduct::check_rank(size_t operand) const {
    if (in(operand).rank() != 2)
        throw CompileError("input {} has shape {}, expected a matrix", operand, shape_text(in(operand).shape));
}

TensorType ScaledProduct::result_type(const Dim& columns) const {
    std::vector<Dim> shape = in(0).shape;
    if (transposes_a_ || shape.size() < 2) {
        check_rank(0);
        shape[0] = shape[1];
    }
    shape.back() = columns;
    if (has_input(2)) {
        const std::vector<Dim>& c = in(2).shape;
        const std::vector<Dim> both = broadcast(shape, c);
        bool grows = c.size() > shape.size();
        for (size_t i = 0; i < shape.size() && !grows; ++i) grows = prove_equal(both[i], shape[i]) == Proof::no;
        if (grows)
            throw CompileError("C has shape {}, which cannot be broadcast to {}", shape_text(c), shape_text(shape));
    }
    return TensorType(product_type(in(0).element), shape);
}

Dim ScaledProduct::depth() const { return in(0).shape[depth_axis()]; }

std::string ScaledProduct::a_element(KernelSource& source, const Coordinates& at, const std::string& k) const {
    if (transposes_a_) return read_a(source, {k, at[0]});
    Coordinates own = at;
    own.back() = k;
    return read_a(source, own);
}

std::string ScaledProduct::result(KernelSource& source, const Coordinates& at, const std::string& sum) const {
    const bool is_exact = is_float(sum_type()) || (alpha_ == 1 && (beta_ == 1 || !has_c()));
    const auto term = [&](float factor, const std::string& element) {
        const std::string value = is_exact ? element : fmt::format("cast<double>({})", element);
        if (factor == 1) return value;
        return fmt::format("{} * {}",
                           KernelSource::literal(double{factor}, is_exact ? sum_type() : ElementType::float64), value);
    };
    std::string result = term(alpha_, sum);
    if (has_c()) result += " + " + term(beta_, c_element(source, at));
    return is_exact ? result : cast_text(result, out(0).element);
}

void ScaledProduct::check_c(std::vector<Check>& checks) const {
    if (has_c()) check_broadcast(checks, 2, in(2).rank(), out(0).shape, out(0).rank() - in(2).rank());
}

std::string ScaledProduct::c_element(KernelSource& source, const Coordinates& at) const {
    const std::vector<Dim>& shape = in(2).shape;
    const size_t first = at.size() - shape.size();
    Coordinates own;
    for (size_t i = 0; i < shape.size(); ++i)
        own.push_back(source.broadcast_coordinate(shape[i], out(0), first + i, at[first + i]));
    return source.read(input(2), own);
}

std::string PackedMatMul::b_element(KernelSource& source, const Coordinates& at, const std::string& k) const {
    return packed_element(source, packed_column(source, at.back()), k);
}

std::string PackedMatMul::packed_element(KernelSource& source, const PackedColumn& column, const std::string& k) const {
    return source.read(input(1), {column.block, k, column.lane});
}

std::string PackedMatMul::b_of_group(KernelSource& source, const Coordinates& at, const std::string& group,
                                     const std::string& place) const {
    const PackedColumn column = packed_column(source, at.back());
    return source.read(input(1), {column.block, group, column.lane, place});
}

std::vector<TensorType> PackMatMulWeights::infer() const {
    if (in(0).rank() != 2) throw CompileError("weights have shape {}, expected a matrix", shape_text(in(0).shape));
    const int block = column_block(sum_type(element()));
    std::vector<Dim> shape = {ceil_div(columns(), block), floor_div(depth(), steps_ * rows_of_element()), block};
    if (steps_ > 1) shape.push_back(steps_);
    return {TensorType(element(), shape)};
}

ElementType PackMatMulWeights::element() const {
    if (bits_ == 0) return compute_element(in(0).element);
    if (bits_ == 8) return ElementType::int8;
    return steps_ > 1 ? ElementType::uint8 : ElementType::uint32;
}

std::string PackMatMulWeights::packed(KernelSource& source, const Coordinates& at, const std::string& column) const {
    const int64_t rows = rows_of_element();
    const auto element = [&](int64_t i) {
        std::string row = rows > 1 ? fmt::format("{} * {} + {}", at[1], rows, i) : at[1];
        if (steps_ > 1) row = fmt::format("({}) * {} + {}", row, steps_, at[3]);
        return source.read(input(0), is_transposed_ ? Coordinates{column, row} : Coordinates{row, column});
    };
    if (bits_ == 0) return element(0);
    if (bits_ == 8) return fmt::format("cast<int8_t>(cast<int16_t>({}) - 128)", element(0));
    std::vector<std::string> parts;
    for (int64_t i = 0; i < rows; ++i) {
        const std::string type = KernelSource::compute_type(this->element());
        parts.push_back(fmt::format("(cast<{0}>({1}) << cast<{0}>({2}))", type, element(i), bits_ * i));
    }
    return fmt::format("{}", fmt::join(parts, " | "));
}

void PackMatMulWeights::algorithm(KernelSource& source) const {
    const Coordinates at = source.vars(out(0).rank());
    const std::string column = fmt::format("{} * {} + {}", at[0], column_block(sum_type(out(0).element)), at[2]);
    const std::string inside = fmt::format("min({}, {})", column, source.dim(columns() - 1));
    source.define(output(0), at,
                  fmt::format("select({} < {}, {}, {})", column, source.dim(columns()), packed(source, at, inside),
                              KernelSource::literal(int64_t{0}, out(0).element)));
}

}  // namespace onnx2halide
