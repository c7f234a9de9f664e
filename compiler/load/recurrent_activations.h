#pragma once

#include <string>
#include <vector>

#include "compiler/load/expansion.h"

namespace onnx2halide {

/// An activation function of a recurrent layer, with its parameters.
struct Activation {
    std::string op;  // the operator of this name, if there is one: not for Affine and ScaledTanh
    int parameters;  // 0: none, 1: alpha, 2: alpha and beta
    float alpha, beta;
};

/// The `count` functions that the attributes activations, activation_alpha and activation_beta specify. Without the
/// first, the defaults are repeated. Each parameter goes to the next function that takes one; functions that get none
/// have the defaults of their operators. Throws CompileError if there are too few functions, if one is unknown, or if
/// one that is not an ONNX operator lacks a parameter.
std::vector<Activation> read_activations(const OperatorCall& call, const std::vector<std::string>& defaults,
                                         size_t count);

}  // namespace onnx2halide
