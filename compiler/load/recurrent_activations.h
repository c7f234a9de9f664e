#pragma once

#include <string>
#include <vector>

#include "compiler/load/expansion.h"

namespace onnx2halide {

/// An activation function of a recurrent layer, with its parameters.
struct Activation {
    std::string op;  // the operator that it is; Affine and ScaledTanh are none
    int parameters;  // 0: none, 1: alpha, 2: alpha and beta
    float alpha, beta;
};

/// The functions that the attributes activations, activation_alpha and activation_beta name, `count` of them. Without
/// the attribute they are the default ones, as often as they fit. A parameter goes to the first function that takes one
/// and has none yet, which otherwise has its operator's default. Throws CompileError where there are fewer functions,
/// one is unknown, or one that is no operator of the standard lacks a parameter.
std::vector<Activation> read_activations(const OperatorCall& call, const std::vector<std::string>& defaults,
                                         size_t count);

}  // namespace onnx2halide
