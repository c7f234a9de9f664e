#pragma once

#include "ops/node_generator.h"

namespace onnx2halide {

/// An operator that is computed by a function in runtime/.
class HostNode : public NodeGenerator {
public:
    using NodeGenerator::NodeGenerator;

    bool is_kernel() const override { return false; }
    LayoutNeed layout_need() const override { return LayoutNeed::row_major; }
    void algorithm(KernelSource&) const override { throw std::logic_error(node_.label() + " is no kernel"); }
    Dim flops() const override { return 0; }

protected:
    /// An extent of output i, found at run time.
    Dim found(size_t i, size_t axis, const Dim& max = Dim::unbounded) const {
        return has_output(i) ? extent_symbol(*output(i), axis, max) : Dim(0);
    }
};

}  // namespace onnx2halide
