#include "ops/product/einsum.h"

#include <algorithm>
#include <map>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ops/product/einsum_expansions.h"
#include "ops/product/equation.h"
#include "ops/product/matrix_product.h"

namespace onnx2halide {

namespace {

/// The equation of an Einsum that is computed as a `Base`, with the types and checks that follow from it.
template <typename Base>
class EinsumNode : public Base {
public:
    explicit EinsumNode(const Node& node) : Base(node), equation_(node.string("equation")) {}

    std::vector<TensorType> infer() const override {
        this->check_element_type(Takes::numbers);
        for (size_t i = 1; i < this->node_.inputs.size(); ++i) this->check_type_of_first(i);
        return {TensorType(this->in(0).element, contraction().shape())};
    }

    std::vector<Check> checks() const override {
        std::vector<Check> checks;
        for (const auto& [operand, axis, expected] : contraction().expected_extents(shapes()))
            this->check_extent(checks, operand, axis, expected);
        return checks;
    }

protected:
    Contraction contraction() const { return {equation_, shapes()}; }

private:
    Equation equation_;

    std::vector<std::vector<Dim>> shapes() const {
        std::vector<std::vector<Dim>> shapes;
        for (size_t i = 0; i < this->node_.inputs.size(); ++i) shapes.push_back(this->in(i).shape);
        return shapes;
    }
};

/// Products of any number of operands, summed over the indices that are not in the result.
class SumOfProducts : public EinsumNode<NodeGenerator> {
public:
    using EinsumNode::EinsumNode;

    Dim flops() const override {
        const Contraction contraction = this->contraction();
        Dim products = static_cast<int64_t>(node_.inputs.size());
        for (const auto& [label, extent] : contraction.extents) products *= extent;
        return products;
    }

    void algorithm(KernelSource& source) const override {
        const Contraction contraction = this->contraction();
        const Coordinates at = source.vars(out(0).rank());
        std::map<Label, std::string> indices;
        for (size_t i = 0; i < at.size(); ++i) indices[contraction.result[i]] = at[i];
        if (contraction.summed.empty()) return source.define(output(0), at, product(source, contraction, indices));

        std::vector<Dim> extents;
        for (const Label label : contraction.summed) extents.push_back(contraction.extents.at(label));
        const std::string rdom = source.rdom("k", extents),
                          sum = KernelSource::call(source.func(output(0)->name + "_sum"), out(0), at);
        for (size_t i = 0; i < extents.size(); ++i) indices[contraction.summed[i]] = KernelSource::axis(rdom, i);
        source.line(fmt::format("{} = {};", sum, KernelSource::literal(int64_t{0}, out(0).element)));
        source.line(fmt::format("{} += {};", sum, product(source, contraction, indices)));
        source.define(output(0), at, sum);
    }

private:
    std::string product(KernelSource& source, const Contraction& contraction,
                        const std::map<Label, std::string>& indices) const {
        std::vector<std::string> factors;
        for (size_t i = 0; i < node_.inputs.size(); ++i)
            factors.push_back(source.read(input(i), contraction.place(i, in(i).shape, indices)));
        return fmt::format("{}", fmt::join(factors, " * "));
    }
};

/// A batch of matrix products (see Equation::is_product).
class EinsumProduct : public EinsumNode<MatrixProduct> {
public:
    using EinsumNode::EinsumNode;

protected:
    Dim depth() const override { return contraction().extents.at(step()); }
    std::optional<size_t> column_axis() const override { return rank() - 1; }

    bool b_varies_along(size_t axis) const override {
        const Contraction contraction = this->contraction();
        const Labels& own = contraction.operands[1];
        const auto place = std::find(own.begin(), own.end(), contraction.result[axis]);
        return place != own.end() && !in(1).shape[place - own.begin()].is(1);
    }

    bool b_is_transposed() const override { return contraction().operands[1].back() == step(); }

    std::string a_element(KernelSource& source, const Coordinates& at, const std::string& k) const override {
        return read_a(source, place(0, at, k));
    }

    std::string b_element(KernelSource& source, const Coordinates& at, const std::string& k) const override {
        return source.read(input(1), place(1, at, k));
    }

    /// Integers wrap around: sums may be wider than the result.
    std::string result(KernelSource&, const Coordinates&, const std::string& sum) const override {
        if (sum_type() == compute_element(out(0).element)) return sum;
        return fmt::format("cast<{}>({})", KernelSource::compute_type(out(0).element), sum);
    }

private:
    Label step() const { return contraction().summed.at(0); }

    Coordinates place(size_t operand, const Coordinates& at, const std::string& k) const {
        const Contraction contraction = this->contraction();
        std::map<Label, std::string> indices = {{step(), k}};
        for (size_t i = 0; i < at.size(); ++i) indices[contraction.result[i]] = at[i];
        return contraction.place(operand, in(operand).shape, indices);
    }
};

}  // namespace

std::unique_ptr<NodeGenerator> make_einsum(const Node& node) {
    if (auto expanded = make_expanded_einsum(node)) return expanded;
    return Equation(node.string("equation")).is_product() ? make<EinsumProduct>(node) : make<SumOfProducts>(node);
}

}  // namespace onnx2halide
