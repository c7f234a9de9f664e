#pragma once

#include <stdexcept>

#include "ops/node_generator.h"

namespace onnx2halide {

/// An operator of the model whose types inference needs, but which a pass replaces before kernels are written.
class ReplacedNode : public NodeGenerator {
public:
    using NodeGenerator::NodeGenerator;
    void algorithm(KernelSource&) const override {
        throw std::logic_error(node_.label() + " is replaced before kernels are written");
    }
};

}  // namespace onnx2halide
