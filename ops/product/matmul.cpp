#include "ops/product/matmul.h"

#include <algorithm>

#include <fmt/format.h>

#include "ops/families.h"
#include "ops/product/einsum.h"
#include "ops/product/matmul_bytes.h"
#include "ops/product/matmul_n_bits.h"
#include "ops/product/product.h"

namespace onnx2halide {

namespace {

std::vector<Dim> batch(const TensorType& operand) {
    return {operand.shape.begin(), operand.shape.end() - std::min<size_t>(2, operand.rank())};
}

}  // namespace

void check_same_depth(const Dim& a, const Dim& b) {
    if (prove_equal(a, b) == Proof::no) throw CompileError("A has {} columns, B has {} rows", a.text(), b.text());
}

std::vector<TensorType> MatMul::infer() const {
    const TensorType &a = in(0), &b = in(1);
    if (a.rank() == 0 || b.rank() == 0)
        throw CompileError("operands have ranks {} and {}, expected 1 or more", a.rank(), b.rank());
    if (is_float(a.element)) check_type_of_first(1);  // of bytes, either operand may be signed
    check_same_depth(a.shape.back(), b.shape[b.rank() == 1 ? 0 : b.rank() - 2]);
    std::vector<Dim> shape = broadcast(batch(a), batch(b));
    if (a.rank() > 1) shape.push_back(a.shape[a.rank() - 2]);
    if (b.rank() > 1) shape.push_back(b.shape.back());
    return {TensorType(product_type(a.element), shape)};
}

std::vector<Check> MatMul::checks() const {
    std::vector<Check> checks;
    const size_t rows_of_b = in(1).rank() == 1 ? 0 : in(1).rank() - 2;
    check_extent(checks, 1, rows_of_b, in(0).shape.back());
    for (const size_t i : {0, 1}) {
        const size_t axes = batch(in(i)).size();
        check_broadcast(checks, i, axes, out(0).shape, batch_rank() - axes);
    }
    return checks;
}

bool MatMul::reads_any_layout(size_t i, const Target& target) const {
    const bool takes_columns = !target.is_gpu() || has_few_rows();
    return MatrixProduct::reads_any_layout(i, target) || (i == 1 && b_is_transposed() && takes_columns);
}

std::optional<size_t> MatMul::column_axis() const {
    if (in(1).rank() == 1) return std::nullopt;
    return rank() - 1;
}

bool MatMul::b_is_transposed() const {
    return in(1).rank() > 1 && in(1).layout.front() == static_cast<int>(in(1).rank()) - 2;
}

bool MatMul::b_varies_along(size_t axis) const {
    const std::vector<Dim> own = batch(in(1));
    const size_t axes = batch_rank();
    return axis < axes && axis + own.size() >= axes && !own[axis + own.size() - axes].is(1);
}

std::string MatMul::a_element(KernelSource& source, const Coordinates& at, const std::string& k) const {
    Coordinates own = batch_coordinates(source, in(0), at);
    if (in(0).rank() > 1) own.push_back(at[batch_rank()]);
    own.push_back(k);
    return read_a(source, own);
}

std::string MatMul::b_element(KernelSource& source, const Coordinates& at, const std::string& k) const {
    Coordinates own = batch_coordinates(source, in(1), at);
    own.push_back(k);
    if (in(1).rank() > 1) own.push_back(at.back());
    return source.read(input(1), own);
}

Coordinates MatMul::batch_coordinates(KernelSource& source, const TensorType& operand, const Coordinates& at) const {
    const std::vector<Dim> own = batch(operand);
    const size_t first = batch_rank() - own.size();
    Coordinates result;
    for (size_t i = 0; i < own.size(); ++i)
        result.push_back(source.broadcast_coordinate(own[i], out(0), first + i, at[first + i]));
    return result;
}

namespace {

/// alpha * A' * B' + beta * C, where A' and B' may be transposed, and C is broadcast to the product.
class Gemm : public ScaledProduct {
public:
    explicit Gemm(const Node& node) : ScaledProduct(node), transposes_b_(node.integer("transB", 0) != 0) {}

    std::vector<TensorType> infer() const override {
        if (in(0).rank() < 2) check_rank(0);
        check_rank(1);
        if (is_float(in(0).element)) check_type_of_first(1);
        check_same_depth(depth(), in(1).shape[transposes_b_ ? 1 : 0]);
        return {result_type(in(1).shape[transposes_b_ ? 0 : 1])};
    }

    std::vector<Check> checks() const override {
        std::vector<Check> checks;
        check_extent(checks, 1, transposes_b_ ? 1 : 0, depth());
        check_c(checks);
        return checks;
    }

protected:
    bool b_is_transposed() const override { return transposes_b_; }

    std::string b_element(KernelSource& source, const Coordinates& at, const std::string& k) const override {
        return source.read(input(1), transposes_b_ ? Coordinates{at[1], k} : Coordinates{k, at[1]});
    }

private:
    bool transposes_b_;
};

}  // namespace

std::vector<Operator> matmul_operators() {
    return {
        {"MatMul", 1, make<MatMul>},
        {"Gemm", 1, make<Gemm>},
        {"Einsum", 12, make_einsum},
        {"PackedMatMul", 1, make<PackedMatMul>, own_domain},
        {"PackedMatMulBytes", 1, make<PackedMatMulBytes>, own_domain},
        {"PackedMatMulNBits", 1, make<PackedMatMulNBits>, own_domain},
        {"PackMatMulWeights", 1, make<PackMatMulWeights>, own_domain},
    };
}

}  // namespace onnx2halide
