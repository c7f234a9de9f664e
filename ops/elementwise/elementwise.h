#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ops/known_elements.h"
#include "ops/node_generator.h"

namespace onnx2halide {

/// Yes or no as a known bool; nullopt if unproven.
std::optional<Number> answer(Proof proof);

/// A node each of whose output elements depends only on the operands' elements at the same (broadcast) index.
class Elementwise : public NodeGenerator {
public:
    using NodeGenerator::NodeGenerator;

    std::vector<TensorType> infer() const override;
    std::vector<std::optional<KnownElements>> known() const override;
    void algorithm(KernelSource& source) const override;
    /// Merges the loops over axes that all tensors share, or that some lack.
    void schedule(KernelSource& source) const override;
    bool is_pointwise() const override { return true; }
    std::vector<Check> checks() const override;
    size_t first_axis(size_t operand) const override;

protected:
    /// The inputs whose elements are read; by default, all that are present.
    virtual std::vector<size_t> operands() const;
    virtual Takes takes(size_t /*operand*/) const { return Takes::anything; }
    /// Whether all operands must have the type of the first.
    virtual bool same_types() const { return true; }
    /// By default that of input 0.
    virtual ElementType result_type() const { return in(0).element; }
    /// By default the operands' shapes, broadcast.
    virtual std::vector<Dim> shape() const;

    /// An operand's element, by default as kernels compute with it.
    virtual std::string operand(KernelSource& source, size_t i, const Coordinates& at) const {
        return source.read(input(i), at);
    }
    /// An element of the output from those of the operands, as text.
    virtual std::string expression(std::span<const std::string> operands) const = 0;
    /// An expression that adds, multiplies or compares operands, under IEEE rules if they are floats: otherwise Halide
    /// lets LLVM reassociate it and optimise for the absence of infinities.
    std::string strict(const std::string& expression) const;
    /// Whether `expression` has the type in which the output is stored rather than that of the kernels' arithmetic.
    virtual bool gives_stored() const { return false; }
    /// The same for elements known to inference; nullopt if the result is not.
    virtual std::optional<Number> evaluate(std::span<const Number> /*operands*/) const { return std::nullopt; }
    /// The same for float operands some of which are ratios that depend on open dims.
    virtual std::optional<Number> evaluate_ratios(std::span<const Ratio> /*operands*/) const { return std::nullopt; }

    /// The operand's coordinates for the output's element at `at`.
    Coordinates coordinates(KernelSource& source, size_t operand, const Coordinates& at) const;

private:
    /// Divides loops of open extents into tasks: a single loop, over vectors, or rows of open length. Returns whether
    /// it did.
    static bool share_out(KernelSource& source, const Loops& loops);
    std::optional<KnownElements> broadcast_known(size_t operand, const std::vector<Dim>& shape) const;
    std::optional<Number> evaluate_any(std::span<const Number> operands) const;
};

/// The text with each `{name}` replaced: `a`, `b`, … by the operands (`x` by the first), other names by the node's
/// float attributes.
std::string formula(std::string_view text, std::span<const std::string> operands, const Node& node);

/// The formula of a unary operator that has one, applied to an element `x`.
std::string unary_formula(const Node& node, const std::string& x);

}  // namespace onnx2halide
