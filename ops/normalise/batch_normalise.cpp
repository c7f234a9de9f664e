#include <fmt/format.h>

#include "ops/normalise/normalise.h"
#include "ops/normalise/row_node.h"

namespace onnx2halide {

namespace {

/// The attributes of all versions of BatchNormalization, and the index of an element's parameters.
struct BatchParameters {
    double epsilon, momentum;
    bool is_spatial;  // parameters per channel; else per channel and pixel, as opsets before 9 allow

    explicit BatchParameters(const Node& node)
        : epsilon(node.real("epsilon", 1e-5f)), momentum(node.real("momentum", 0.9f)),
          is_spatial(node.integer("spatial", 1) != 0) {}

    /// A tensor of rank 1 is a batch of single channels.
    Coordinates place(const Coordinates& at) const {
        if (at.size() < 2) return {"0"};
        return is_spatial ? Coordinates{at[1]} : Coordinates(at.begin() + 1, at.end());
    }
};

/// A parameter in the type of the arithmetic with x.
std::string parameter(KernelSource& source, const Value* value, const Coordinates& at, ElementType element) {
    return cast_compute(source.read_broadcast(value, at), value->checked_type().element, element);
}

/// (x - mean) / sqrt(variance + epsilon) * scale + bias with given means and variances.
class BatchNormalization : public NodeGenerator {
public:
    explicit BatchNormalization(const Node& node) : NodeGenerator(node), parameters_(node) {}

    std::vector<TensorType> infer() const override {
        check_element_type(Takes::floats);
        return {TensorType(in(0).element, in(0).shape)};
    }

    bool is_pointwise() const override { return true; }
    bool has_own_axis() const override { return true; }
    size_t first_axis(size_t i) const override { return i > 0 && in(0).rank() > 1 ? 1 : 0; }
    Dim flops() const override { return out(0).elements() * 2; }

    std::vector<Check> checks() const override {
        std::vector<Check> checks;
        for (size_t i = 1; i < 5; ++i) {
            for (size_t axis = 0; axis < in(i).rank() && 1 + axis < in(0).rank(); ++axis) {
                if (!in(i).shape[axis].is(1)) check_extent(checks, i, axis, in(0).shape[1 + axis]);
            }
        }
        return checks;
    }

    void algorithm(KernelSource& source) const override {
        const Coordinates at = source.vars(in(0).rank()), place = parameters_.place(at);
        const auto read = [&](size_t i) { return parameter(source, input(i), place, in(0).element); };
        source.define(output(0), at,
                      fmt::format("({} - {}) * ({} / sqrt({} + {})) + {}", source.read(input(0), at), read(3), read(1),
                                  read(4), KernelSource::literal(parameters_.epsilon, in(0).element), read(2)));
    }

private:
    BatchParameters parameters_;
};

/// The same with the means and variances of the batch itself, which also update the running ones. Outputs: the result,
/// the running mean and variance and, before opset 14, those of the batch.
class BatchTraining : public RowNode {
public:
    explicit BatchTraining(const Node& node) : RowNode(node), parameters_(node) {}

    std::vector<TensorType> infer() const override {
        check_element_type(Takes::floats);
        const TensorType statistics(in(3).element, in(3).shape);
        return {TensorType(in(0).element, in(0).shape), statistics, statistics, statistics, statistics};
    }

    LayoutNeed layout_need() const override { return LayoutNeed::row_major; }
    Dim flops() const override { return out(0).elements() * 6; }

    void algorithm(KernelSource& source) const override {
        RowText row(source, *this);
        const std::string mean = row.mean("batch_mean", "sum", row.step());
        const std::string difference = fmt::format("({} - {})", row.step(), row.of_row(mean));
        const std::string variance = row.mean("batch_variance", "squares", fmt::format("{0} * {0}", difference));
        const std::string epsilon = KernelSource::literal(parameters_.epsilon, in(0).element);
        const std::string scale = row.number("scale", fmt::format("1 / sqrt({} + {})", row.of_row(variance), epsilon));
        const std::string centred = fmt::format("({} - {})", row.element(), row.of_result(mean));
        source.define(output(0), row.at(),
                      scaled(source, fmt::format("{} * {}", centred, row.of_result(scale)), input(1), input(2),
                             parameters_.place(row.at()), in(0).element));
        define_statistics(source, 1, mean, 3);
        define_statistics(source, 2, variance, 4);
    }

protected:
    std::vector<Stage> stages() const override {
        return {{"sum", RowStage::Kind::reduction},
                {"batch_mean", RowStage::Kind::number},
                {"squares", RowStage::Kind::reduction},
                {"batch_variance", RowStage::Kind::number},
                {"scale", RowStage::Kind::number}};
    }

    std::vector<size_t> row_axes() const override {
        std::vector<size_t> axes = {0};
        for (size_t axis = 2; axis < in(0).rank() && parameters_.is_spatial; ++axis) axes.push_back(axis);
        return axes;
    }

private:
    BatchParameters parameters_;

    /// Output `i` blends the batch's statistics into the running ones of input `running`; output i + 2 holds the
    /// batch's alone.
    void define_statistics(KernelSource& source, size_t i, const std::string& func, size_t running) const {
        const Coordinates at = source.vars(in(running).rank());
        const ElementType element = in(running).element;
        // A tensor of rank 1 has one row.
        const std::string own = in(0).rank() < 2 ? func + "()" : KernelSource::call(func, in(running), at);
        const std::string batch = cast_compute(own, in(0).element, element);
        const auto weight = [&](double number) { return KernelSource::literal(number, element); };
        if (has_output(i)) {
            source.define(output(i), at,
                          fmt::format("{} * {} + {} * {}", source.read(input(running), at),
                                      weight(parameters_.momentum), batch, weight(1 - parameters_.momentum)));
        }
        if (has_output(i + 2)) source.define(output(i + 2), at, batch);
    }
};

/// Before opset 14 a node trains if it has more than one output.
bool trains(const Node& node) {
    if (node.version >= 14) return node.integer("training_mode", 0) != 0;
    for (size_t i = 1; i < node.outputs.size(); ++i) {
        if (node.has_output(i)) return true;
    }
    return false;
}

std::unique_ptr<NodeGenerator> make_batch_normalization(const Node& node) {
    return trains(node) ? make<BatchTraining>(node) : make<BatchNormalization>(node);
}

}  // namespace

std::vector<Operator> batch_normalise_operators() { return {{"BatchNormalization", 1, make_batch_normalization}}; }

}  // namespace onnx2halide
