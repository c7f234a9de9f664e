#include <fmt/format.h>

#include "compiler/graph/error.h"
#include "compiler/load/expansion.h"

namespace onnx2halide {

namespace {

void check_transform(const OperatorCall& call) {
    if (call.integer("onesided", 1) != 1) throw CompileError("attribute onesided is 0, expected 1");
    call.refuse_flag("normalized");
    if (const int64_t axes = call.integer("signal_ndim", 1); axes != 1)
        throw CompileError("attribute signal_ndim is {}, expected 1", axes);
}

/// The first half of the spectra of real signals along the last axis.
OperatorBody rfft(const OperatorCall& call) {
    check_transform(call);
    OperatorBody body{{"x"}, {"y"}, {}};
    body.add(R"(
        last = Constant<value_ints = [-1]>()
        real = Unsqueeze(x, last)
        axis = Constant<value_int = -2>()
        y = DFT<onesided = 1>(real, , axis))");
    return body;
}

/// Real signals of even length from the first half of their spectra; the other half is the conjugate mirror image.
OperatorBody irfft(const OperatorCall& call) {
    check_transform(call);
    OperatorBody body{{"x"}, {"y"}, {}};
    body.add(R"(
        axis = Constant<value_int = -2>()
        axes = Constant<value_ints = [-2]>()
        behind = Constant<value_ints = [0]>()
        backwards = Constant<value_ints = [-1]>()
        before_last = Constant<value_ints = [-2]>()
        mirrored = Slice(x, before_last, behind, axes, backwards)
        signs = Constant<value_floats = [1.0, -1.0]>()
        signs_like = CastLike(signs, x)
        conjugate = Mul(mirrored, signs_like)
        spectrum = Concat<axis = -2>(x, conjugate)
        signal = DFT<inverse = 1>(spectrum, , axis)
        real = Constant<value_int = 0>()
        y = Gather<axis = -1>(signal, real))");
    return body;
}

/// The product of complex numbers. `real` and `imaginary` are the operators that combine the products of their parts.
OperatorBody complex_product(const char* real, const char* imaginary) {
    OperatorBody body{{"a", "b"}, {"c"}, {}};
    body.add(fmt::format(R"(
        a_real, a_imaginary = Split<axis = -1, num_outputs = 2>(a)
        b_real, b_imaginary = Split<axis = -1, num_outputs = 2>(b)
        reals = Mul(a_real, b_real)
        imaginaries = Mul(a_imaginary, b_imaginary)
        inner = Mul(a_imaginary, b_real)
        outer = Mul(a_real, b_imaginary)
        real = {}(reals, imaginaries)
        imaginary = {}(inner, outer)
        c = Concat<axis = -1>(real, imaginary))",
                         real, imaginary));
    return body;
}

OperatorBody complex_mul(const OperatorCall&) { return complex_product("Sub", "Add"); }
OperatorBody complex_mul_conj(const OperatorCall&) { return complex_product("Add", "Sub"); }

}  // namespace

std::vector<ExpandedOperator> spectrum_expansions() {
    return {
        {microsoft_domain, "ComplexMul", 1, complex_mul},
        {microsoft_domain, "ComplexMulConj", 1, complex_mul_conj},
        {microsoft_domain, "Irfft", 1, irfft},
        {microsoft_domain, "Rfft", 1, rfft},
    };
}

}  // namespace onnx2halide
