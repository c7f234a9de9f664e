#include <fmt/format.h>

#include "ops/axis_operand.h"
#include "ops/composite.h"
#include "ops/families.h"
#include "ops/signal/fourier_node.h"

namespace onnx2halide {

namespace {

/// DFT: along any axis but the last, which holds real and imaginary parts.
class DiscreteFourier : public FourierNode {
public:
    using FourierNode::FourierNode;

    std::vector<TensorType> infer() const override {
        check_signal();
        if (axis() == in(0).rank() - 1) throw CompileError("axis is {}, expected another than the last", axis());
        check_length();
        std::vector<Dim> shape = in(0).shape;
        shape[axis()] = bins();
        shape.back() = is_real_result() ? 1 : 2;
        return {TensorType(in(0).element, shape)};
    }

protected:
    Dim length() const override {
        if (has_input(1)) return single_dim(1);
        const Dim& extent = in(0).shape[axis()];
        return is_real_result() ? 2 * (extent - 1) : extent;
    }

    size_t axis() const override {
        if (node_.version < 20) return normalised_axis(node_.integer("axis", 1), in(0).rank());
        return normalised_axis(has_input(2) ? number(single_dim(2)) : -2, in(0).rank());
    }

    static int64_t number(const Dim& axis) {
        return axis.constant() ? *axis.constant()
                               : throw CompileError("axis must be known at compile time, it is {}", axis.text());
    }

    Dim given() const override { return in(0).shape[axis()]; }

    Element element(KernelSource&, const Coordinates& at, const std::string& n) const override {
        Coordinates from = at;
        from[axis()] = n;
        return {from, ""};
    }
};

/// STFT: transforms the frames of a signal, which start `frame_step` elements apart.
class ShortTimeFourier : public FourierNode {
public:
    using FourierNode::FourierNode;

    std::vector<TensorType> infer() const override {
        check_signal();
        if (in(0).rank() != 3) throw CompileError("input 0 has rank {}, expected 3", in(0).rank());
        if (has_input(2) && in(2).rank() != 1) throw CompileError("window has rank {}, expected 1", in(2).rank());
        check_length();
        if (has_input(2) && prove_equal(in(2).shape[0], length()) == Proof::no) {
            throw CompileError("window has shape {}, expected {}", shape_text(in(2).shape), length().text());
        }
        return {TensorType(in(0).element, {in(0).shape[0], frames(), bins(), 2})};
    }

    std::vector<Check> checks() const override {
        std::vector<Check> checks = FourierNode::checks();
        if (known_input(1) && !single_dim(1).constant())
            checks.push_back({"frame_step", single_dim(1), 1, Dim::unbounded});
        return checks;
    }

protected:
    Dim length() const override {
        return has_input(3) ? single_dim(3) : has_input(2) ? in(2).shape.at(0) : in(0).shape.at(1);
    }

    size_t axis() const override { return 2; }

    Element element(KernelSource& source, const Coordinates& at, const std::string& n) const override {
        // A step that is known only at run time must not lead out of the signal.
        const std::string step =
            is_known_at_run_time(node_, 1)
                ? fmt::format("cast<int>({})", source.element(input(1), Coordinates(in(1).rank(), "0")))
                : source.dim(single_dim(1));
        std::string place = fmt::format("{} * {} + {}", at[1], step, n);
        if (is_known_at_run_time(node_, 1))
            place = fmt::format("clamp({}, 0, {})", place, source.dim(in(0).shape[1] - 1));
        return {{at[0], place, ""}, has_input(2) ? source.read(input(2), {n}) : ""};
    }

private:
    Dim frames() const {
        if (is_known_at_run_time(node_, 1)) {
            if (const auto shape = declared_numbers(node_, 4)) return (*shape)[1];
        }
        const Dim& step = single_dim(1);
        if (prove_less_equal(1, step) == Proof::no)
            throw CompileError("frame_step is {}, expected 1 or more", step.text());
        const Dim frames = floor_div(in(0).shape[1] - length(), step) + 1;
        if (prove_less_equal(frames, 0) == Proof::yes) {
            throw CompileError("a signal of {} elements is shorter than a frame of {}", in(0).shape[1].text(),
                               length().text());
        }
        return max(frames, Dim(0));
    }
};

/// Expands a transform along an axis known only at run time to one along the middle one of three.
std::vector<Value*> expand_along_open_axis(CompositeBuilder& builder) {
    const Node& node = builder.node();
    Value *signal = builder.input(0), *axis = builder.input(2);
    Value* middle = builder.constant("middle", make_constant(ElementType::int64, {}, std::vector<int64_t>{1}));
    const std::map<std::string, Attribute> kept = {{"kept", int64_t{1}}};  // the axis of real and imaginary parts
    Value* around = builder.add("around", {"Around", 1, {signal, axis}, kept, own_domain});
    Value* along = builder.add("along", {"DFT", 20, {around, builder.optional_input(1), middle}, node.attributes});
    Value* shape = builder.add("shape", {"Shape", 13, {signal}});
    return {builder.add("as_given", {"Unaround", 1, {along, shape, axis}, kept, own_domain})};
}

/// Adds the last axis that a signal of real numbers lacks when exported from PyTorch.
std::vector<Value*> expand_real_signal(CompositeBuilder& builder) {
    const Node& node = builder.node();
    Value* last = builder.constant("last", make_constant(ElementType::int64, {1}, std::vector<int64_t>{2}));
    std::vector<Value*> inputs = {builder.add("real", {"Unsqueeze", 13, {builder.input(0), last}})};
    for (size_t i = 1; i < node.inputs.size(); ++i) inputs.push_back(builder.optional_input(i));
    return {builder.add("frames", {"STFT", 17, inputs, node.attributes})};
}

std::unique_ptr<NodeGenerator> make_short_time_fourier(const Node& node) {
    if (node.has_input(0) && node.inputs[0]->checked_type().rank() == 2)
        return make_composite<expand_real_signal>(node);
    return make<ShortTimeFourier>(node);
}

std::unique_ptr<NodeGenerator> make_fourier(const Node& node) {
    if (node.version >= 20 && is_open_at_compile_time(node, 2))
        return std::make_unique<EarlyComposite>(node, expand_along_open_axis);
    return make<DiscreteFourier>(node);
}

}  // namespace

std::vector<Operator> fourier_operators() { return {{"DFT", 17, make_fourier}, {"STFT", 17, make_short_time_fourier}}; }

}  // namespace onnx2halide
