#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ops/node_generator.h"

namespace onnx2halide {

/// Discrete Fourier transforms of many rows. A transform of first * second elements is `second` ones of `first`
/// elements, a rotation of what they give, and `first` ones of `second` elements: n (first + second) products instead
/// of n * n. A prime length has one factor, and so has one that only a run knows.
class FourierNode : public NodeGenerator {
public:
    explicit FourierNode(const Node& node)
        : NodeGenerator(node), is_inverse_(node.integer("inverse", 0) != 0),
          is_onesided_(node.integer("onesided", node.op_type == "STFT") != 0) {}

    void algorithm(KernelSource& source) const override;
    void schedule(KernelSource& source) const override;
    /// That an open length is one that products of two numbers below it fit an int, and open parts are one or two.
    std::vector<Check> checks() const override;
    Dim flops() const override { return out(0).elements() * 4 * (factors().first + factors().second); }

protected:
    const bool is_inverse_, is_onesided_;

    /// Elements of each transform.
    virtual Dim length() const = 0;
    /// The output's axis that transforms run along.
    virtual size_t axis() const = 0;
    /// The place of the n-th element that is transformed of the row at `at`, and what it is multiplied by, if anything.
    struct Element {
        Coordinates at;
        std::string factor;
    };
    virtual Element element(KernelSource& source, const Coordinates& at, const std::string& n) const = 0;
    /// Elements that there are to transform; those behind are zero.
    virtual Dim given() const { return length(); }

    /// Whether the output is real: the input is one half of a spectrum whose other half mirrors it.
    bool is_real_result() const { return is_inverse_ && is_onesided_; }
    /// Elements of each result: of a spectrum that mirrors itself, half of it.
    Dim bins() const;
    /// Throws CompileError where a known length is none that a transform may have.
    void check_length() const;
    /// Throws CompileError unless input 0 is of floats whose last axis may hold real and imaginary parts.
    void check_signal() const;

private:
    /// `first`, which alone may be open, is the larger one.
    struct Factors {
        Dim first;
        int64_t second;
    };
    static Factors factors(int64_t length);
    Factors factors() const;

    /// Whether input 0 has imaginary parts; nothing where only a run knows.
    std::optional<bool> is_complex() const;
    /// The type of sums. Of short transforms these cost little, and double leaves nothing but the result's rounding.
    ElementType type() const;
    /// A number of input 0's type as one of type().
    std::string widened(const std::string& number) const;
    /// Whether the roots that the first transforms multiply by are few enough to be stored in the order of their use.
    bool has_table() const;

    /// A new Func, which is then found by its role.
    void define(KernelSource& source, const std::string& role) const;
    /// Coordinates within a row's transform, then those of the row.
    Coordinates row(KernelSource& source, const Coordinates& first) const;
    /// The element of a role's Func at these coordinates.
    std::string call(KernelSource& source, const std::string& role, const Coordinates& first) const;

    /// Re and im of each power of the first root of unity.
    void define_roots(KernelSource& source) const;
    /// Re and im of the n-th element, as a Func.
    void define_input(KernelSource& source) const;
    /// The root of unity at a place, as a pair.
    std::string root(KernelSource& source, const std::string& place) const;
    /// The root of a transform of `factor` elements for its k-th result and n-th element.
    std::string turned(KernelSource& source, const Dim& factor, const std::string& k, const std::string& n) const;

    void schedule_on_gpu(KernelSource& source) const;
    /// Schedules the output's loops, row by row. Returns where a row's Funcs are computed.
    std::string schedule_rows(KernelSource& source) const;
};

}  // namespace onnx2halide
