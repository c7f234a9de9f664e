#include "compiler/generator/divide_by_zero.h"

namespace onnx2halide {

namespace {

using namespace Halide;
using namespace Halide::Internal;

/// Hides zeros that floats are divided by from Halide.
class DivideByKnownZeros : public IRMutator {
    using IRMutator::visit;

    /// The bits of a zero as a float. Only LLVM, or the compiler of the device's code, knows the number behind them.
    static Expr hidden(const Expr& zero) {
        const Type type = zero.type();
        return Reinterpret::make(type, reinterpret(type.with_code(Type::UInt), zero));
    }

    Expr visit(const Div* op) override {
        if (!op->type.is_float() || !is_const_zero(op->b)) return IRMutator::visit(op);
        return Div::make(mutate(op->a), hidden(op->b));
    }

    Expr visit(const Call* op) override {
        if (!op->is_intrinsic(Call::strict_div) || !is_const_zero(op->args[1])) return IRMutator::visit(op);
        return Call::make(op->type, op->name, {mutate(op->args[0]), hidden(op->args[1])}, op->call_type);
    }
};

}  // namespace

void divide_by_known_zeros(Pipeline& pipeline) { pipeline.add_custom_lowering_pass(new DivideByKnownZeros); }

}  // namespace onnx2halide
