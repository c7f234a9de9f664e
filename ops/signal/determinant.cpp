#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ops/composite.h"
#include "ops/families.h"
#include "ops/host_node.h"

namespace onnx2halide {

namespace {

/// The limit for a kernel, in which each row of a matrix takes two stages.
constexpr int64_t most_rows_of_kernel = 64;

/// Throws CompileError unless a tensor's last two axes hold square matrices of floats.
void check_matrices(const TensorType& matrices) {
    const std::vector<Dim>& shape = matrices.shape;
    if (!is_float(matrices.element))
        throw CompileError("input has type {}, expected floats", info(matrices.element).name);
    if (shape.size() < 2 || prove_equal(shape.end()[-1], shape.end()[-2]) == Proof::no)
        throw CompileError("input has shape {}, expected square matrices", shape_text(shape));
}

/// The determinants of input 0's matrices.
TensorType determinants(const TensorType& matrices) {
    check_matrices(matrices);
    return TensorType(matrices.element, {matrices.shape.begin(), matrices.shape.end() - 2});
}

/// Det of small matrices: a kernel.
class Determinant : public NodeGenerator {
public:
    using NodeGenerator::NodeGenerator;

    std::vector<TensorType> infer() const override { return {determinants(in(0))}; }
    std::vector<Check> checks() const override {
        std::vector<Check> checks;
        check_extent(checks, 0, in(0).rank() - 2, in(0).shape.back());
        return checks;
    }

    void algorithm(KernelSource& source) const override {
        const Coordinates at = source.vars(out(0).rank());
        Coordinates from = at, arguments = {source.var("j"), source.var("i")};
        from.insert(from.end(), {arguments[1], arguments[0]});
        arguments.insert(arguments.end(), at.rbegin(), at.rend());
        const std::string matrix = source.func(output(0)->name + "_matrix");
        source.line(fmt::format("{}({}) = {};", matrix, fmt::join(arguments, ", "), source.read(input(0), from)));
        const std::string result = source.func(output(0)->name + "_determinant");
        source.line(fmt::format("{}(_) = onnx::determinant({}, {});", result, matrix, in(0).shape.back().text()));
        Coordinates outer(at.rbegin(), at.rend());
        source.define(output(0), at, fmt::format("{}({})", result, fmt::join(outer, ", ")));
    }

    Dim flops() const override { return in(0).elements() * in(0).shape.back(); }
};

/// Det of matrices that are large, or whose size is known only at run time: runtime/matrices.c, in float64.
class DeterminantOnHost : public HostNode {
public:
    using HostNode::HostNode;

    std::vector<TensorType> infer() const override { return {determinants(in(0))}; }
    std::vector<Check> checks() const override {
        std::vector<Check> checks;
        check_extent(checks, 0, in(0).rank() - 1, in(0).shape.end()[-2]);
        return checks;
    }
    HostCall host_call() const override { return {"onnx2halide_determinant", {}}; }
};

/// com.microsoft.Inverse: runtime/matrices.c, in float64.
class Inverse : public HostNode {
public:
    using HostNode::HostNode;

    std::vector<TensorType> infer() const override {
        check_matrices(in(0));
        return {in(0)};
    }
    std::vector<Check> checks() const override {
        std::vector<Check> checks;
        check_extent(checks, 0, in(0).rank() - 1, in(0).shape.end()[-2]);
        return checks;
    }
    HostCall host_call() const override { return {"onnx2halide_inverse", {}}; }
};

/// Expands the node to the same one in float32.
std::vector<Value*> expand_narrow(CompositeBuilder& builder) {
    const Node& node = builder.node();
    Value* x = builder.input(0);
    Value* wide = builder.add("wide", cast(x, ElementType::float32));
    Value* result = builder.add("wide_result", {node.op_type, node.version, {wide}, {}, node.domain});
    return {builder.add("result", cast(result, x->checked_type().element))};
}

std::unique_ptr<NodeGenerator> make_determinant(const Node& node) {
    const auto* type = node.has_input(0) && node.inputs[0]->type ? &*node.inputs[0]->type : nullptr;
    const auto rows = type && type->rank() >= 2 ? type->shape.back().constant() : std::nullopt;
    if (!type || type->rank() < 2 || (rows && *rows <= most_rows_of_kernel)) return make<Determinant>(node);
    return is_narrow_float(type->element) ? make_composite<expand_narrow>(node) : make<DeterminantOnHost>(node);
}

std::unique_ptr<NodeGenerator> make_inverse(const Node& node) {
    const bool is_narrow = node.has_input(0) && node.inputs[0]->type && is_narrow_float(node.inputs[0]->type->element);
    return is_narrow ? make_composite<expand_narrow>(node) : make<Inverse>(node);
}

}  // namespace

std::vector<Operator> determinant_operators() {
    return {{"Det", 11, make_determinant}, {"Inverse", 1, make_inverse, microsoft_domain}};
}

}  // namespace onnx2halide
