#include "compiler/generator/narrow_floats.h"

#include <set>
#include <stdexcept>
#include <string>

namespace onnx2halide {

namespace {

using namespace Halide;
using namespace Halide::Internal;

/// Replaces expressions of narrow types by their bits. Runs before loops are outlined as the device's kernels.
class NarrowFloats : public IRMutator {
public:
    explicit NarrowFloats(bool has_float16) : has_float16_(has_float16) {}

private:
    using IRMutator::visit;

    bool has_float16_;  // whether the device supports it

    bool is_narrow(const Type& type) const {
        return type.is_float() && type.bits() == 16 && (type.is_bfloat() || !has_float16_);
    }

    Type held(const Type& type) const { return is_narrow(type) ? type.with_code(Type::UInt) : type; }

    /// An operand, widened to 32 bits if it is narrow.
    Expr number(const Expr& operand) {
        const Expr bits = mutate(operand);
        if (!is_narrow(operand.type())) return bits;
        return operand.type().is_bfloat() ? bfloat16_to_float32(bits) : float16_to_float32(bits);
    }

    /// A 32-bit float, rounded to the bits of a narrow type. NaNs are handled apart: Halide's functions turn some into
    /// an infinity or a zero.
    Expr rounded(const Type& type, const Expr& number) {
        const std::string name = unique_name("number");
        const Expr wide = Variable::make(number.type(), name);
        const Expr bits = mutate(type.is_bfloat() ? float32_to_bfloat16(wide) : float32_to_float16(wide));
        const Expr magnitude =
            reinterpret(UInt(32, type.lanes()), wide) & make_const(UInt(32, type.lanes()), 0x7fffffff);
        const Expr nan = make_const(held(type), type.is_bfloat() ? 0x7fc0 : 0x7e00);
        return Let::make(name, number, select(magnitude > make_const(magnitude.type(), 0x7f800000), nan, bits));
    }

    template <typename Operation>
    Expr compute(const Operation* op) {
        if (!is_narrow(op->a.type())) return IRMutator::visit(op);
        const Expr result = Operation::make(number(op->a), number(op->b));
        return is_narrow(op->type) ? rounded(op->type, result) : result;
    }

    Expr compute_strictly(const Call* op) {
        std::vector<Expr> numbers;
        for (const Expr& argument : op->args) numbers.push_back(number(argument));
        const Type type = is_narrow(op->type) ? Float(32, op->type.lanes()) : op->type;
        const Expr result = Call::make(type, op->name, numbers, op->call_type);
        return is_narrow(op->type) ? rounded(op->type, result) : result;
    }

    Expr visit(const Add* op) override { return compute(op); }
    Expr visit(const Sub* op) override { return compute(op); }
    Expr visit(const Mul* op) override { return compute(op); }
    Expr visit(const Div* op) override { return compute(op); }
    Expr visit(const Mod* op) override { return compute(op); }
    Expr visit(const Min* op) override { return compute(op); }
    Expr visit(const Max* op) override { return compute(op); }
    Expr visit(const EQ* op) override { return compute(op); }
    Expr visit(const NE* op) override { return compute(op); }
    Expr visit(const LT* op) override { return compute(op); }
    Expr visit(const LE* op) override { return compute(op); }
    Expr visit(const GT* op) override { return compute(op); }
    Expr visit(const GE* op) override { return compute(op); }

    Expr visit(const Cast* op) override {
        if (!is_narrow(op->type)) return cast(op->type, number(op->value));
        return rounded(op->type, cast(Float(32, op->type.lanes()), number(op->value)));
    }

    Expr visit(const Reinterpret* op) override {
        const Expr value = mutate(op->value);
        return value.type() == held(op->type) ? value : Reinterpret::make(held(op->type), value);
    }

    Expr visit(const FloatImm* op) override {
        return is_narrow(op->type) ? rounded(op->type, FloatImm::make(Float(32), op->value)) : op;
    }

    Expr visit(const Variable* op) override {
        return is_narrow(op->type)
                   ? Variable::make(held(op->type), op->name, op->image, op->param, op->reduction_domain)
                   : op;
    }

    Expr visit(const Load* op) override {
        return Load::make(held(op->type), op->name, mutate(op->index), op->image, op->param, mutate(op->predicate),
                          op->alignment);
    }

    Stmt visit(const Allocate* op) override {
        std::vector<Expr> extents;
        for (const Expr& extent : op->extents) extents.push_back(mutate(extent));
        return Allocate::make(op->name, held(op->type), op->memory_type, extents, mutate(op->condition),
                              mutate(op->body), mutate(op->new_expr), op->free_function, op->padding);
    }

    Expr visit(const Call* op) override {
        if (is_float16_transcendental(op)) return mutate(lower_float16_transcendental_to_float32_equivalent(op));
        if (op->is_strict_float_intrinsic() && is_narrow(op->args[0].type())) return compute_strictly(op);
        if (!is_narrow(op->type)) return IRMutator::visit(op);
        if (op->is_intrinsic(Call::abs))
            return mutate(op->args[0]) & make_const(held(op->type), 0x7fff);  // all but the sign
        if (!op->is_intrinsic({Call::if_then_else, Call::likely, Call::likely_if_innermost, Call::return_second}))
            throw std::runtime_error("a GPU has no 16-bit " + op->name);
        std::vector<Expr> arguments;
        for (const Expr& argument : op->args) arguments.push_back(mutate(argument));
        return Call::make(held(op->type), op->name, arguments, op->call_type);
    }
};

}  // namespace

void hold_narrow_floats_as_bits(Pipeline& pipeline, const Target& target) {
    pipeline.add_custom_lowering_pass(new NarrowFloats(target.has_feature(Target::CUDA)));
}

}  // namespace onnx2halide
