#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ops/known_elements.h"
#include "ops/node_generator.h"

namespace onnx2halide {

/// The element types that an operator takes.
enum class Takes { floats, integers, numbers, booleans, anything };

/// Throws CompileError where input `i` has another type.
void check_takes(Takes takes, size_t i, ElementType type);

/// Yes and no as a known bool.
std::optional<Number> answer(Proof proof);

/// A node each of whose output elements depends only on the operands' elements at its own, broadcast, place.
class Elementwise : public NodeGenerator {
public:
    using NodeGenerator::NodeGenerator;

    std::vector<TensorType> infer() const override;
    std::vector<std::optional<KnownElements>> known() const override;
    void algorithm(KernelSource& source) const override;
    /// Runs through axes that all tensors have in common, or some lack, as through one.
    void schedule(KernelSource& source) const override;
    bool is_pointwise() const override { return true; }
    std::vector<Check> checks() const override;
    size_t first_axis(size_t operand) const override;

protected:
    /// The inputs whose elements are read; those that are given, by default.
    virtual std::vector<size_t> operands() const;
    virtual Takes takes(size_t /*operand*/) const { return Takes::anything; }
    /// Operands of which all but the first must have the type of the first.
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
    /// An expression that adds, multiplies or compares operands, as IEEE says where they are floats: Halide would else
    /// let LLVM reassociate it and drop what meets an infinity that it knows of.
    std::string strict(const std::string& expression) const;
    /// Whether `expression` has the type in which the output is stored, not that in which kernels compute.
    virtual bool gives_stored() const { return false; }
    /// The same for elements that inference knows; nothing where it cannot tell.
    virtual std::optional<Number> evaluate(std::span<const Number> /*operands*/) const { return std::nullopt; }
    /// The same where the operands are floats, some of which follow from open dims.
    virtual std::optional<Number> evaluate_ratios(std::span<const Ratio> /*operands*/) const { return std::nullopt; }

    /// Where the output's element at `at` finds the operand's.
    Coordinates coordinates(KernelSource& source, size_t operand, const Coordinates& at) const;

private:
    /// Makes tasks of open loops: of one alone, over vectors, or of rows of open length. Returns whether it did.
    static bool share_out(KernelSource& source, const Loops& loops);
    std::optional<KnownElements> broadcast_known(size_t operand, const std::vector<Dim>& shape) const;
    std::optional<Number> evaluate_any(std::span<const Number> operands) const;
};

/// The text with each `{name}` replaced: `a`, `b`, … by the operands (`x` by the first), other names by the node's
/// attributes of type float.
std::string formula(std::string_view text, std::span<const std::string> operands, const Node& node);

/// That of a unary operator that is one formula, for an element `x`.
std::string unary_formula(const Node& node, const std::string& x);

}  // namespace onnx2halide
