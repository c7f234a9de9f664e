#include "ops/families.h"

namespace onnx2halide {

namespace {

/// `Copy` (internal): the same elements in memory of their own.
class Copy : public NodeGenerator {
public:
    using NodeGenerator::NodeGenerator;

    std::vector<TensorType> infer() const override { return {in(0)}; }
    bool is_pointwise() const override { return true; }
    bool takes_packed_types() const override { return true; }
    bool takes_non_tensors() const override { return true; }
    Dim flops() const override { return 0; }

    void algorithm(KernelSource& source) const override {
        const Coordinates at = source.vars(out(0).rank());
        source.store(output(0), at, source.element(input(0), at));
    }
};

}  // namespace

std::vector<Operator> internal_operators() { return {{"Copy", 1, make<Copy>, own_domain}}; }

}  // namespace onnx2halide
