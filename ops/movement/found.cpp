#include <algorithm>

#include <fmt/format.h>

#include "ops/families.h"
#include "ops/host_node.h"

namespace onnx2halide {

namespace {

// Operators whose results have as many elements as they find: functions in runtime/host_operators.c.

/// NonZero (9)
class NonZero : public HostNode {
public:
    using HostNode::HostNode;

    std::vector<TensorType> infer() const override {
        const auto axes = std::max<int64_t>(1, static_cast<int64_t>(in(0).rank()));  // see onnx2halide_non_zero
        return {TensorType(ElementType::int64, {axes, found(0, 1, in(0).elements())})};
    }
    HostCall host_call() const override { return {"onnx2halide_non_zero", {}}; }
};

/// com.microsoft.DynamicTimeWarping: the cheapest path through a matrix of costs, as rows and columns.
class DynamicTimeWarping : public HostNode {
public:
    using HostNode::HostNode;

    std::vector<TensorType> infer() const override {
        const std::vector<Dim>& shape = in(0).shape;
        if (in(0).element != ElementType::float32)
            throw CompileError("input 0 has type {}, expected float32", info(in(0).element).name);
        if (shape.size() != 2 && (shape.size() != 3 || prove_equal(shape[0], 1) == Proof::no))
            throw CompileError("input 0 has shape {}, expected a matrix", shape_text(shape));
        return {TensorType(ElementType::int32, {2, found(0, 1, shape.end()[-2] + shape.back())})};
    }
    std::vector<Check> checks() const override {
        std::vector<Check> checks;
        if (in(0).rank() == 3) check_extent(checks, 0, 0, 1);
        return checks;
    }
    HostCall host_call() const override { return {"onnx2halide_warp_time", {}}; }
};

/// Finds slices along an axis or, without one, elements of input 0.
class SliceFinder : public HostNode {
public:
    using HostNode::HostNode;

protected:
    std::optional<size_t> axis() const {
        if (!node_.has("axis")) return std::nullopt;
        return normalised_axis(node_.integer("axis"), in(0).rank());
    }
    std::string axis_text() const { return axis() ? fmt::to_string(*axis()) : "-1"; }
    Dim slices() const { return axis() ? in(0).shape[*axis()] : in(0).elements(); }

    /// The type of output i, which holds the slices found.
    TensorType type_of_slices(size_t i) const {
        if (!axis()) return {in(0).element, {found(i, 0, slices())}};
        std::vector<Dim> shape = in(0).shape;
        shape[*axis()] = found(i, *axis(), slices());
        return {in(0).element, std::move(shape)};
    }
};

/// Compress (9). ONNX requires conditions of rank 1; exporters also write ones of input 0's shape, which other runtimes
/// read in order.
class Compress : public SliceFinder {
public:
    using SliceFinder::SliceFinder;

    std::vector<TensorType> infer() const override {
        if (in(1).element != ElementType::boolean)
            throw CompileError("input 1 has type {}, expected bool", info(in(1).element).name);
        return {type_of_slices(0)};
    }
    bool takes_strings() const override { return true; }
    HostCall host_call() const override { return {"onnx2halide_compress", {axis_text()}, 2}; }
};

/// Unique (11)
class Unique : public SliceFinder {
public:
    using SliceFinder::SliceFinder;

    std::vector<TensorType> infer() const override {
        const auto numbers = [](const Dim& count) { return TensorType(ElementType::int64, {count}); };
        std::vector<TensorType> types = {type_of_slices(0), numbers(found(1, 0, slices())), numbers(slices()),
                                         numbers(found(3, 0, slices()))};
        types.resize(node_.outputs.size());
        return types;
    }
    bool takes_strings() const override { return true; }
    HostCall host_call() const override {
        const bool are_strings = in(0).element == ElementType::string;
        return {"onnx2halide_unique",
                {are_strings ? "1" : "0", axis_text(), fmt::to_string(node_.integer("sorted", 1))},
                1,
                4};
    }
};

/// NonMaxSuppression (10)
class NonMaxSuppression : public HostNode {
public:
    using HostNode::HostNode;

    std::vector<TensorType> infer() const override {
        if (in(0).rank() != 3 || in(1).rank() != 3)
            throw CompileError("boxes and scores have ranks {} and {}, expected 3", in(0).rank(), in(1).rank());
        for (size_t i = 0; i < 5; ++i) {
            if (i >= 2 && !has_input(i)) continue;
            const ElementType expected = i == 2 ? ElementType::int64 : ElementType::float32;
            if (in(i).element != expected)
                throw CompileError("input {} has type {}, expected {}", i, info(in(i).element).name,
                                   info(expected).name);
            if (i >= 2 && !in(i).elements().is(1))
                throw CompileError("input {} has shape {}, expected one element", i, shape_text(in(i).shape));
        }
        return {TensorType(ElementType::int64, {found(0, 0), 3})};
    }
    HostCall host_call() const override {
        return {"onnx2halide_non_max_suppression", {fmt::to_string(node_.integer("center_point_box", 0))}, 5};
    }
};

/// Fails at run time unless input 0 is what attribute `condition` says. It has no results.
class RequireCondition : public HostNode {
public:
    using HostNode::HostNode;

    std::vector<TensorType> infer() const override { return {}; }
    HostCall host_call() const override {
        return {"onnx2halide_require_condition", {fmt::to_string(node_.integer("condition"))}, 1, 0};
    }
};

/// CountedRange, the compiler's own: a Range whose count is known only at run time.
class CountedRange : public HostNode {
public:
    using HostNode::HostNode;

    std::vector<TensorType> infer() const override {
        using enum ElementType;
        constexpr ElementType types[] = {float32, float64, int16, int32, int64};
        if (std::find(std::begin(types), std::end(types), in(0).element) == std::end(types))
            throw CompileError("input 0 has type {}, which is not supported", info(in(0).element).name);
        for (size_t i = 0; i < 3; ++i) {
            if (!in(i).elements().is(1) || in(i).element != in(0).element)
                throw CompileError("input {} is {}, expected one element of type {}", i, in(i).text(),
                                   info(in(0).element).name);
        }
        return {TensorType(in(0).element, {found(0, 0)})};
    }
    HostCall host_call() const override { return {"onnx2halide_range", {}, 3}; }
};

}  // namespace

std::vector<Operator> finding_operators() {
    return {
        {"Compress", 9, make<Compress>},
        {"CountedRange", 1, make<CountedRange>, own_domain},
        {"NonMaxSuppression", 10, make<NonMaxSuppression>},
        {"NonZero", 9, make<NonZero>},
        {"DynamicTimeWarping", 1, make<DynamicTimeWarping>, microsoft_domain},
        {"RequireCondition", 1, make<RequireCondition>, own_domain},
        {"Unique", 11, make<Unique>},
    };
}

}  // namespace onnx2halide
