#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ops/node_generator.h"

namespace onnx2halide {

/// Discrete Fourier transforms of many rows. A transform of first * second elements is computed as `second` transforms
/// of `first` elements, a rotation of their results, and `first` transforms of `second` elements: n (first + second)
/// products instead of n * n. A prime length is a single factor, and so is one known only at run time.
class FourierNode : public NodeGenerator {
public:
    explicit FourierNode(const Node& node)
        : NodeGenerator(node), is_inverse_(node.integer("inverse", 0) != 0),
          is_onesided_(node.integer("onesided", node.op_type == "STFT") != 0) {}

    void algorithm(KernelSource& source) const override;
    void schedule(KernelSource& source) const override;
    /// An open length must be small enough for products of two indices to fit in an int, an open last axis one or two.
    std::vector<Check> checks() const override;
    Dim flops() const override { return out(0).elements() * 4 * (factors().first + factors().second); }

protected:
    const bool is_inverse_, is_onesided_;

    /// Elements of each transform.
    virtual Dim length() const = 0;
    /// The output's axis that is transformed.
    virtual size_t axis() const = 0;
    /// The coordinates of the n-th element of the row at `at`, and what it is multiplied by, if anything.
    struct Element {
        Coordinates at;
        std::string factor;
    };
    virtual Element element(KernelSource& source, const Coordinates& at, const std::string& n) const = 0;
    /// The number of elements given; the rest of `length` is zero.
    virtual Dim given() const { return length(); }

    /// Whether the output is real: the input is one half of a Hermitian spectrum.
    bool is_real_result() const { return is_inverse_ && is_onesided_; }
    /// Elements of each result: half of them for a Hermitian spectrum.
    Dim bins() const;
    /// Throws CompileError if the length is known and no transform may have it.
    void check_length() const;
    /// Throws CompileError unless input 0 holds floats and its last axis may hold real and imaginary parts.
    void check_signal() const;

private:
    /// `first`, the only one that may be open, is the larger one.
    struct Factors {
        Dim first;
        int64_t second;
    };
    static Factors factors(int64_t length);
    Factors factors() const;

    /// Whether input 0 has imaginary parts; nullopt if known only at run time.
    std::optional<bool> is_complex() const;
    /// The type of sums. For short transforms double costs little and leaves only the rounding of the result.
    ElementType type() const;
    /// Converts a number of input 0's type to type().
    std::string widened(const std::string& number) const;
    /// Whether the roots of the first transforms are few enough to be stored in the order of use.
    bool has_table() const;

    /// Declares a Func, found later by its role.
    void define(KernelSource& source, const std::string& role) const;
    /// Coordinates within a row's transform, followed by those of the row.
    Coordinates row(KernelSource& source, const Coordinates& first) const;
    /// The element of a role's Func at these coordinates.
    std::string call(KernelSource& source, const std::string& role, const Coordinates& first) const;

    /// The real and imaginary parts of each power of the first root of unity.
    void define_roots(KernelSource& source) const;
    /// The real and imaginary parts of the n-th element, as a Func.
    void define_input(KernelSource& source) const;
    /// The power of the root of unity at an index, as a pair.
    std::string root(KernelSource& source, const std::string& place) const;
    /// The root by which a transform of `factor` elements multiplies its n-th element for its k-th result.
    std::string turned(KernelSource& source, const Dim& factor, const std::string& k, const std::string& n) const;

    void schedule_on_gpu(KernelSource& source) const;
    /// Schedules the output's loops, row by row. Returns the loop level at which a row's Funcs are computed.
    std::string schedule_rows(KernelSource& source) const;
};

}  // namespace onnx2halide
