#include <fmt/format.h>

#include "ops/axis_operand.h"
#include "ops/families.h"
#include "ops/host_node.h"

namespace onnx2halide {

namespace {

/// TopK: the largest or smallest elements along an axis and their indices, in order, the first of equal ones first.
/// What it reads next depends on what it has found, which no loop nest expresses.
class TopK : public HostNode {
public:
    using HostNode::HostNode;

    std::vector<TensorType> infer() const override {
        if (!is_float(in(0).element) && !is_integer(in(0).element))
            throw CompileError("input 0 has type {}, expected numbers", info(in(0).element).name);
        if (in(0).rank() == 0) throw CompileError("input 0 is a scalar, expected an axis to sort");
        std::vector<Dim> shape = in(0).shape;
        Dim& extent = shape[axis()];
        const Dim k = this->k();
        if (prove_less_equal(0, k) == Proof::no || prove_less_equal(k, extent) == Proof::no)
            throw CompileError("k is {}, expected 0 to {}, the extent of axis {}", k.text(), extent.text(), axis());
        extent = k;
        return {TensorType(in(0).element, shape), TensorType(ElementType::int64, shape)};
    }

    HostCall host_call() const override {
        std::vector<std::string> arguments = {fmt::to_string(axis()), fmt::to_string(node_.integer("largest", 1))};
        if (!k().constant()) return {"onnx2halide_top_k_of_operand", arguments, 2, 2};
        arguments.push_back(fmt::to_string(*k().constant()));
        return {"onnx2halide_top_k", arguments, 1, 2};
    }

private:
    size_t axis() const { return normalised_axis(node_.integer("axis", -1), in(0).rank()); }

    /// The number of elements requested: an attribute before version 10.
    Dim k() const {
        if (node_.version < 10) return node_.integer("k");
        if (in(1).element != ElementType::int64) throw CompileError("k is {}, expected int64", in(1).text());
        return single_dim(1);
    }
};

}  // namespace

std::vector<Operator> top_k_operators() { return {{"TopK", 1, make<TopK>}}; }

}  // namespace onnx2halide
