#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ops/families.h"

namespace onnx2halide {

namespace {

/// Det: the determinants of the matrices that the last two axes hold.
class Determinant : public NodeGenerator {
public:
    using NodeGenerator::NodeGenerator;

    std::vector<TensorType> infer() const override {
        const std::vector<Dim>& shape = in(0).shape;
        if (!is_float(in(0).element))
            throw CompileError("input has type {}, expected floats", info(in(0).element).name);
        if (shape.size() < 2 || prove_equal(shape.end()[-1], shape.end()[-2]) != Proof::yes)
            throw CompileError("input has shape {}, expected square matrices", shape_text(shape));
        const auto size = shape.back().constant();
        if (!size || *size > largest)
            throw CompileError("matrices have {} rows, expected a number up to {}", shape.back().text(), largest);
        return {TensorType(in(0).element, {shape.begin(), shape.end() - 2})};
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

private:
    /// Each row makes two stages.
    static constexpr int64_t largest = 64;
};

}  // namespace

std::vector<Operator> determinant_operators() { return {{"Det", 11, make<Determinant>}}; }

}  // namespace onnx2halide
