#pragma once

#include "ops/node_generator.h"

namespace onnx2halide {

/// ONNX's ConvTranspose, as a gather: each output element sums the inputs that the gradient of a convolution would
/// scatter to it.
class ConvTranspose : public NodeGenerator {
public:
    explicit ConvTranspose(const Node& node);
    std::vector<TensorType> infer() const override;
    void algorithm(KernelSource& source) const override;
    std::vector<Check> checks() const override;
    Dim flops() const override;

    /// One spatial axis.
    struct Axis {
        int64_t kernel, stride, dilation;
        Dim pad_begin, input, output;

        /// Taps that can meet an output element: every stride-th of an undilated kernel.
        int64_t taps() const { return dilation == 1 ? ceil_div(kernel, stride) : kernel; }
    };
    std::vector<Axis> axes() const;

private:
    /// The index at which one tap of an axis reads weights and input, and the condition under which it counts.
    struct Place {
        std::string kernel, input, condition;
    };

    int64_t group_;

    Axis axis(size_t i) const;
    Place place(KernelSource& source, const Axis& axis, const std::string& at, const std::string& tap) const;
    Dim channels_per_group() const { return in(1).shape.at(1); }
    Dim inputs_per_group() const { return floor_div(in(0).shape.at(1), group_); }
};

}  // namespace onnx2halide
