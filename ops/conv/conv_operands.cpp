#include "ops/conv/conv_operands.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace onnx2halide {

std::vector<int64_t> kernel_of_weights(const Node& node, const std::vector<Dim>& weights) {
    std::vector<int64_t> kernel;
    for (size_t i = 2; i < weights.size(); ++i) {
        if (!weights[i].constant())
            throw CompileError("the kernel's shape {} must be known at compile time", shape_text(weights));
        kernel.push_back(*weights[i].constant());
    }
    const std::vector<int64_t> declared = node.integers("kernel_shape", kernel);
    if (declared != kernel) {
        throw CompileError("kernel_shape is {}, the weights have {}", fmt::join(declared, "x"), fmt::join(kernel, "x"));
    }
    return kernel;
}

Window window_of_conv(const Node& conv) {
    return read_window(conv, conv.inputs.at(0)->checked_type().shape,
                       kernel_of_weights(conv, conv.inputs.at(1)->checked_type().shape));
}

void check_groups(std::string_view owner_has, const Dim& channels, int64_t groups) {
    if (floor_mod(channels, groups).constant().value_or(0) != 0)
        throw CompileError("{} {} channels, not a multiple of {} groups", owner_has, channels.text(), groups);
}

void check_bias(const TensorType& bias, ElementType element, const Dim& channels) {
    if (bias.element != element)
        throw CompileError("bias has type {}, expected {}", info(bias.element).name, info(element).name);
    if (bias.rank() != 1 || prove_equal(bias.shape[0], channels) == Proof::no)
        throw CompileError("bias has shape {}, expected {}", shape_text(bias.shape), channels.text());
}

}  // namespace onnx2halide
