#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "ops/composite.h"
#include "ops/normalise/normalise.h"
#include "ops/normalise/row_node.h"

namespace onnx2halide {

namespace {

/// Subtracts each row's mean (optional), and divides by the root of its mean square.
class Standardise : public RowNode {
public:
    explicit Standardise(const Node& node) : RowNode(node), epsilon_(node.real("epsilon", 1e-5f)) {}

    std::vector<TensorType> infer() const override {
        check_element_type(Takes::floats);
        return {TensorType(in(0).element, in(0).shape)};
    }

    Dim flops() const override { return out(0).elements() * 7; }

    void algorithm(KernelSource& source) const override {
        RowText row(source, *this);
        const auto centred = [&](const std::string& x, const std::string& mean) {
            return fmt::format("({} - {})", x, mean);
        };
        std::string mean, step = row.step(), element = row.element();
        if (subtracts_mean()) {
            mean = row.mean("mean", "sum", step);
            step = centred(step, row.of_row(mean));
            element = centred(element, row.of_result(mean));
        }
        const std::string squares = row.sum("squares", fmt::format("{0} * {0}", step));
        const std::string factor =
            row.number("factor", this->factor(fmt::format("{} / {}", row.of_row(squares), row.length())));
        source.define(output(0), row.at(),
                      result(source, row.at(), fmt::format("{} * {}", element, row.of_result(factor))));
        define_others(source, row, mean, factor);
    }

protected:
    double epsilon_;

    virtual bool subtracts_mean() const { return true; }
    /// The factor of each element, computed from the mean square.
    virtual std::string factor(const std::string& mean_square) const {
        return fmt::format("1 / sqrt({} + {})", mean_square, KernelSource::literal(epsilon_, in(0).element));
    }
    /// The result, computed from the standardised element.
    virtual std::string result(KernelSource&, const Coordinates&, const std::string& x) const { return x; }
    /// Defines the outputs other than the first.
    virtual void define_others(KernelSource&, const RowText&, const std::string&, const std::string&) const {}

    std::vector<Stage> stages() const override {
        std::vector<Stage> stages;
        if (subtracts_mean()) stages = {{"sum", RowStage::Kind::reduction}, {"mean", RowStage::Kind::number}};
        stages.push_back({"squares", RowStage::Kind::reduction});
        stages.push_back({"factor", RowStage::Kind::number});
        return stages;
    }

    static std::vector<size_t> axes_from(size_t first, size_t rank) {
        std::vector<size_t> axes(rank - first);
        std::iota(axes.begin(), axes.end(), first);
        return axes;
    }
};

/// The compiler's own Standardise: over any axes, `centred` or not.
class StandardiseAxes : public Standardise {
public:
    using Standardise::Standardise;

protected:
    bool subtracts_mean() const override { return node_.integer("centred") != 0; }
    std::vector<size_t> row_axes() const override {
        const std::vector<int64_t> axes = node_.integers("axes");
        return {axes.begin(), axes.end()};
    }
};

/// Standardises over the axes from one on. Parameters are broadcast; means and factors may be outputs, too.
class LayerNormalization : public Standardise {
public:
    explicit LayerNormalization(const Node& node)
        : Standardise(node), stash_(static_cast<ElementType>(node.integer("stash_type", 1))) {
        if (!is_float(stash_)) throw CompileError("stash_type is {}, expected a float type", static_cast<int>(stash_));
    }

    std::vector<TensorType> infer() const override {
        std::vector<Dim> rows = in(0).shape;
        for (const size_t axis : row_axes()) rows[axis] = 1;
        return {Standardise::infer()[0], TensorType(stash_, rows), TensorType(stash_, rows)};
    }

protected:
    std::vector<size_t> row_axes() const override {
        return axes_from(normalised_axis(node_.integer("axis", -1), in(0).rank()), in(0).rank());
    }

    bool treats_rows_alike() const override {
        const size_t axes = row_axes().size();
        return in(1).rank() <= axes && (!has_input(2) || in(2).rank() <= axes);
    }

    std::vector<Check> checks() const override {
        std::vector<Check> checks;
        const std::vector<Dim>& shape = in(0).shape;
        for (size_t i = 1; i < node_.inputs.size() && has_input(i); ++i) {
            for (size_t axis = 0; axis < in(i).rank() && in(i).rank() <= shape.size(); ++axis) {
                if (!in(i).shape[axis].is(1)) check_extent(checks, i, axis, shape[shape.size() - in(i).rank() + axis]);
            }
        }
        return checks;
    }

    std::string result(KernelSource& source, const Coordinates& at, const std::string& x) const override {
        return scaled(source, x, input(1), has_input(2) ? input(2) : nullptr, at, in(0).element);
    }

    void define_others(KernelSource& source, const RowText& row, const std::string& mean,
                       const std::string& factor) const override {
        const std::string funcs[] = {mean, factor};
        for (size_t i = 0; i < 2; ++i) {
            if (!has_output(i + 1)) continue;
            source.define(output(i + 1), row.at(), cast_compute(row.of_result(funcs[i]), in(0).element, stash_));
        }
    }

private:
    ElementType stash_;
};

/// Divides by the root of the mean square over the axes from one on.
class RmsNormalization : public LayerNormalization {
public:
    using LayerNormalization::LayerNormalization;

    /// The result has the scale's type.
    std::vector<TensorType> infer() const override {
        return {TensorType(in(1).element, Standardise::infer()[0].shape)};
    }

protected:
    bool subtracts_mean() const override { return false; }

    std::string result(KernelSource& source, const Coordinates& at, const std::string& x) const override {
        return scaled(source, cast_compute(x, in(0).element, in(1).element), input(1), nullptr, at, in(1).element);
    }
};

/// Standardises each channel of each image.
class InstanceNormalization : public Standardise {
public:
    using Standardise::Standardise;

    std::vector<TensorType> infer() const override {
        if (in(0).rank() < 2)
            throw CompileError("input has shape {}, expected channels as its axis 1", shape_text(in(0).shape));
        for (const size_t i : {1, 2}) {
            if (in(i).rank() != 1) throw CompileError("input {} has rank {}, expected 1", i, in(i).rank());
        }
        return Standardise::infer();
    }

protected:
    std::vector<size_t> row_axes() const override { return axes_from(std::min<size_t>(2, in(0).rank()), in(0).rank()); }
    size_t first_axis_of_places() const override { return 2; }

    std::string result(KernelSource& source, const Coordinates& at, const std::string& x) const override {
        return scaled(source, x, input(1), input(2), {at.at(1)}, in(0).element);
    }

public:
    std::vector<Check> checks() const override {
        std::vector<Check> checks;
        for (const size_t i : {1, 2}) check_extent(checks, i, 0, in(0).shape[1]);
        return checks;
    }
};

/// Standardises groups of channels of each image. Opset 18 has a scale and bias per group, 21 per channel.
class GroupNormalization : public Standardise {
public:
    explicit GroupNormalization(const Node& node) : Standardise(node), groups_(node.integer("num_groups")) {
        if (groups_ < 1) throw CompileError("num_groups is {}, expected 1 or more", groups_);
    }

    std::vector<TensorType> infer() const override {
        const std::vector<Dim>& shape = in(0).shape;
        if (shape.size() < 2)
            throw CompileError("input has shape {}, expected channels as its axis 1", shape_text(shape));
        if (!exact_div(shape[1], groups_))
            throw CompileError("{} channels are not a multiple of {} groups", shape[1].text(), groups_);
        return Standardise::infer();
    }

protected:
    std::vector<size_t> row_axes() const override { return axes_from(1, in(0).rank()); }
    size_t first_axis_of_places() const override { return 2; }

    Loops row_numbers(KernelSource& source) const override {
        return {"", {source.var("group"), source.vars(in(0).rank())[0]}, {groups_, in(0).shape[0]}, compute_element()};
    }

    Coordinates row_of(const Coordinates& at) const override { return {group(at), at[0]}; }

    std::vector<Dim> row_extents() const override {
        std::vector<Dim> extents;
        for (const int axis : in(0).layout) {
            if (axis != 0) extents.push_back(axis == 1 ? channels() : in(0).shape[axis]);
        }
        return extents;
    }

    Coordinates step_place(KernelSource& source, const std::string& rdom) const override {
        Coordinates place = source.vars(in(0).rank());
        size_t next = 0;
        for (const int axis : in(0).layout) {
            if (axis != 0) place[axis] = KernelSource::axis(rdom, next++);
        }
        place[1] = fmt::format("{} * {} + {}", source.var("group"), source.dim(channels()), place[1]);
        return place;
    }

    std::string result(KernelSource& source, const Coordinates& at, const std::string& x) const override {
        return scaled(source, x, input(1), input(2), {node_.version < 21 ? group(at) : at[1]}, in(0).element);
    }

    std::optional<Loops> loops_of_rows(KernelSource& source, const Loops& output) const override {
        if (!channels().constant()) return std::nullopt;
        const std::string c = source.vars(in(0).rank())[1], group = source.var("group");
        source.schedule(fmt::format("{0}.split({1}, {2}, {1}, {3}, TailStrategy::RoundUp);", output.func, c, group,
                                    channels().text()));
        Loops loops = output;
        const auto place = std::find(loops.vars.begin(), loops.vars.end(), c) - loops.vars.begin();
        loops.extents[place] = channels();
        loops.vars.insert(loops.vars.begin() + place + 1, group);
        loops.extents.insert(loops.extents.begin() + place + 1, groups_);
        return loops;
    }

private:
    int64_t groups_;

    /// Channels of a group.
    Dim channels() const { return floor_div(in(0).shape[1], groups_); }
    std::string group(const Coordinates& at) const { return fmt::format("{} / {}", at[1], channels().text()); }
};

std::vector<Value*> expand_open_groups(CompositeBuilder& builder) {
    const Node& node = builder.node();
    Value* x = builder.input(0);
    const auto integers = [&](const std::string& role, const std::vector<int64_t>& numbers) {
        const auto count = static_cast<int64_t>(numbers.size());
        return builder.constant(role, make_constant(ElementType::int64, {count}, numbers));
    };
    const auto shape_from = [&](const std::string& role, int64_t start, int64_t end) {
        return builder.add(role, {"Shape", 15, {x}, {{"start", start}, {"end", end}}});
    };
    const auto rank = static_cast<int64_t>(x->checked_type().rank());
    Value *batch = shape_from("batch", 0, 1), *channels = shape_from("channels", 1, 2),
          *places = shape_from("places", 2, rank), *groups = integers("groups", {node.integer("num_groups")});
    Value* of_group = builder.add("of_group", {"Div", 14, {channels, groups}});
    Value* grouped_shape =
        builder.add("grouped_shape", {"Concat", 13, {batch, groups, of_group, places}, {{"axis", int64_t{0}}}});
    Value* grouped = builder.add("grouped", {"Reshape", 14, {x, grouped_shape}});
    std::map<std::string, Attribute> attributes = {{"axis", int64_t{2}}};
    if (node.has("epsilon")) attributes.emplace("epsilon", node.attributes.at("epsilon"));
    Value* one = builder.constant("one", make_constant(ElementType::float32, {1}, std::vector<float>{1}));
    Value* unit = builder.add("unit", cast(one, x->checked_type().element));
    Value* standardised = builder.add("standardised", {"LayerNormalization", 17, {grouped, unit}, attributes});
    Value* result = builder.add("as_given", {"Reshape", 14, {standardised, builder.add("shape", {"Shape", 13, {x}})}});
    std::vector<int64_t> axes(rank - 2);
    std::iota(axes.begin(), axes.end(), 1);
    const auto of_channels = [&](const std::string& role, size_t i) {
        return builder.add(role, {"Unsqueeze", 13, {builder.input(i), integers(role + "_axes", axes)}});
    };
    result = builder.add("scaled", {"Mul", 14, {result, of_channels("scale", 1)}});
    return {builder.add("result", {"Add", 14, {result, of_channels("bias", 2)}})};
}

/// If the number of channels is known only at run time, it may not be a multiple of the groups: the channels of a group
/// become an axis.
std::unique_ptr<NodeGenerator> make_group_normalization(const Node& node) {
    const auto* type = node.has_input(0) && node.inputs[0]->type ? &*node.inputs[0]->type : nullptr;
    const bool is_open = type && type->rank() >= 2 && !type->shape[1].constant() && node.version >= 21 &&
                         node.integer("num_groups") > 0 && !exact_div(type->shape[1], node.integer("num_groups"));
    return is_open ? make_composite<expand_open_groups>(node) : make<GroupNormalization>(node);
}

/// Standardises over any axes.
class MeanVarianceNormalization : public Standardise {
public:
    using Standardise::Standardise;

protected:
    std::vector<size_t> row_axes() const override {
        std::vector<size_t> axes;
        for (const int64_t axis : node_.integers("axes", {0, 2, 3}))
            axes.push_back(normalised_axis(axis, in(0).rank()));
        return axes;
    }

    std::string factor(const std::string& mean_square) const override {
        return fmt::format("1 / (sqrt({}) + {})", mean_square, KernelSource::literal(1e-9, in(0).element));
    }
};

/// Divides by the 1- or 2-norm of the row; a row of zeros is unchanged.
class LpNormalization : public RowNode {
public:
    explicit LpNormalization(const Node& node) : RowNode(node), p_(node.integer("p", 2)) {
        if (p_ != 1 && p_ != 2) throw CompileError("p is {}, expected 1 or 2", p_);
    }

    std::vector<TensorType> infer() const override {
        check_element_type(Takes::floats);
        return {TensorType(in(0).element, in(0).shape)};
    }

    Dim flops() const override { return out(0).elements() * 3; }

    void algorithm(KernelSource& source) const override {
        RowText row(source, *this);
        const std::string sum =
            row.sum("sum", p_ == 1 ? fmt::format("abs({})", row.step()) : fmt::format("{0} * {0}", row.step()));
        const std::string total = row.of_row(sum), zero = KernelSource::literal(0.0, in(0).element);
        const std::string factor = row.number("factor", fmt::format("select({0} == 0, {1}, 1 / {2})", total, zero,
                                                                    p_ == 1 ? total : fmt::format("sqrt({})", total)));
        source.define(output(0), row.at(), fmt::format("{} * {}", row.element(), row.of_result(factor)));
    }

protected:
    std::vector<Stage> stages() const override {
        return {{"sum", RowStage::Kind::reduction}, {"factor", RowStage::Kind::number}};
    }
    std::vector<size_t> row_axes() const override { return {normalised_axis(node_.integer("axis", -1), in(0).rank())}; }

private:
    int64_t p_;
};

}  // namespace

std::vector<Operator> row_normalise_operators() {
    return {
        {"LayerNormalization", 1, make<LayerNormalization>},
        {"RMSNormalization", 1, make<RmsNormalization>},
        {"InstanceNormalization", 1, make<InstanceNormalization>},
        {"GroupNormalization", 1, make_group_normalization},
        {"MeanVarianceNormalization", 1, make<MeanVarianceNormalization>},
        {"LpNormalization", 1, make<LpNormalization>},
        {"Standardise", 1, make<StandardiseAxes>, own_domain},
    };
}

}  // namespace onnx2halide
