#include "ops/einsum.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ops/matrix_product.h"

namespace onnx2halide {

namespace {

/// An index of an equation: a letter, or an axis that an ellipsis stands for, which counts from the last one.
using Label = int;
using Labels = std::vector<Label>;
constexpr Label first_of_ellipsis = 256;

/// One operand's or the result's indices, with a place for an ellipsis.
struct Term {
    Labels before, after;
    bool has_ellipsis = false;

    /// All indices, where the ellipsis stands for so many axes.
    Labels labels(size_t ellipsis_rank) const {
        Labels all = before;
        for (size_t i = has_ellipsis ? ellipsis_rank : 0; i-- > 0;)
            all.push_back(first_of_ellipsis + static_cast<Label>(i));
        all.insert(all.end(), after.begin(), after.end());
        return all;
    }
    size_t letters() const { return before.size() + after.size(); }
};

Term parse_term(const std::string& text) {
    Term term;
    for (size_t i = 0; i < text.size(); ++i) {
        if (text.compare(i, 3, "...") == 0 && !term.has_ellipsis) {
            term.has_ellipsis = true;
            i += 2;
        } else if (std::isalpha(static_cast<unsigned char>(text[i]))) {
            (term.has_ellipsis ? term.after : term.before).push_back(text[i]);
        } else {
            throw CompileError("equation has '{}', expected letters and at most one ellipsis in each term", text);
        }
    }
    return term;
}

/// `ij,jk->ik`
struct Equation {
    std::vector<Term> operands;
    Term result;

    explicit Equation(std::string text) {
        std::erase(text, ' ');
        const size_t arrow = text.find("->");
        std::string left = text.substr(0, arrow);
        for (size_t comma; (comma = left.find(',')) != std::string::npos; left.erase(0, comma + 1))
            operands.push_back(parse_term(left.substr(0, comma)));
        operands.push_back(parse_term(left));
        result = arrow == std::string::npos ? implied_result() : parse_term(text.substr(arrow + 2));
    }

private:
    /// Without an arrow the result has the ellipsis and then, sorted, the letters that occur once.
    Term implied_result() const {
        std::map<Label, int> uses;
        Term term;
        for (const Term& operand : operands) {
            for (const Label label : operand.labels(0)) ++uses[label];
            term.has_ellipsis = term.has_ellipsis || operand.has_ellipsis;
        }
        for (const auto& [label, count] : uses) {
            if (count == 1) term.after.push_back(label);
        }
        return term;
    }
};

/// An equation applied to operands whose shapes are known.
struct Contraction {
    std::vector<Labels> operands;
    Labels result, summed;
    std::map<Label, Dim> extents;

    Contraction(const Equation& equation, const std::vector<std::vector<Dim>>& shapes) {
        if (equation.operands.size() != shapes.size()) {
            throw CompileError("equation has {} operands, the node {}", equation.operands.size(), shapes.size());
        }
        size_t ellipsis_rank = 0;
        for (size_t i = 0; i < shapes.size(); ++i) {
            const Term& term = equation.operands[i];
            const bool fits =
                term.has_ellipsis ? shapes[i].size() >= term.letters() : shapes[i].size() == term.letters();
            if (!fits)
                throw CompileError("operand {} has rank {}, the equation names {} axes", i, shapes[i].size(),
                                   term.letters());
            const size_t own = shapes[i].size() - term.letters();
            operands.push_back(term.labels(own));
            ellipsis_rank = std::max(ellipsis_rank, own);
        }
        result = equation.result.labels(ellipsis_rank);
        for (size_t i = 0; i < shapes.size(); ++i) {
            for (size_t axis = 0; axis < shapes[i].size(); ++axis) add_extent(operands[i][axis], shapes[i][axis]);
        }
        for (const auto& [label, extent] : extents) {
            if (std::find(result.begin(), result.end(), label) == result.end()) summed.push_back(label);
        }
        for (const Label label : result) {
            if (!extents.contains(label))
                throw CompileError("index '{}' of the result is in no operand", static_cast<char>(label));
        }
    }

    std::vector<Dim> shape() const {
        std::vector<Dim> shape;
        for (const Label label : result) shape.push_back(extents.at(label));
        return shape;
    }

    /// Where an operand of this shape has the element for given indices; axes of extent 1 are broadcast.
    Coordinates place(size_t operand, const std::vector<Dim>& shape,
                      const std::map<Label, std::string>& indices) const {
        Coordinates place;
        for (size_t axis = 0; axis < shape.size(); ++axis)
            place.push_back(shape[axis].is(1) ? "0" : indices.at(operands[operand][axis]));
        return place;
    }

private:
    void add_extent(Label label, const Dim& extent) {
        const auto [known, is_new] = extents.try_emplace(label, extent);
        if (!is_new) known->second = broadcast({known->second}, {extent})[0];
    }
};

void check_element(ElementType element) {
    if (!is_float(element) && !is_integer(element))
        throw CompileError("element type {} is not supported", info(element).name);
}

/// Products of any number of operands, summed over the indices that the result lacks.
class SumOfProducts : public NodeGenerator {
public:
    explicit SumOfProducts(const Node& node) : NodeGenerator(node), equation_(node.string("equation")) {}

    std::vector<TensorType> infer() const override {
        check_element(in(0).element);
        return {TensorType(in(0).element, contraction().shape())};
    }

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
    Equation equation_;

    Contraction contraction() const {
        std::vector<std::vector<Dim>> shapes;
        for (size_t i = 0; i < node_.inputs.size(); ++i) shapes.push_back(in(i).shape);
        return {equation_, shapes};
    }

    std::string product(KernelSource& source, const Contraction& contraction,
                        const std::map<Label, std::string>& indices) const {
        std::vector<std::string> factors;
        for (size_t i = 0; i < node_.inputs.size(); ++i)
            factors.push_back(source.read(input(i), contraction.place(i, in(i).shape, indices)));
        return fmt::format("{}", fmt::join(factors, " * "));
    }
};

/// The equation of a batch of matrix products: one index is summed, which both operands have, and the result's last is
/// a column of the second.
class EinsumProduct : public MatrixProduct {
public:
    explicit EinsumProduct(const Node& node) : MatrixProduct(node), equation_(node.string("equation")) {}

    static bool fits(const Equation& equation) {
        if (equation.operands.size() != 2 || equation.result.labels(0).empty()) return false;
        const Labels a = equation.operands[0].labels(1), b = equation.operands[1].labels(1),
                     result = equation.result.labels(1);
        const auto count = [](const Labels& labels, Label label) {
            return std::count(labels.begin(), labels.end(), label);
        };
        std::set<Label> all(a.begin(), a.end());
        all.insert(b.begin(), b.end());
        const auto repeats = [&](Label label) { return count(a, label) > 1 || count(b, label) > 1; };
        if (std::any_of(all.begin(), all.end(), repeats)) return false;
        Labels summed;
        std::copy_if(all.begin(), all.end(), std::back_inserter(summed),
                     [&](Label label) { return count(result, label) == 0; });
        const bool has_step =
            summed.size() == 1 && summed[0] != first_of_ellipsis && count(a, summed[0]) && count(b, summed[0]);
        const Label column = result.back();
        return has_step && column != first_of_ellipsis && !count(a, column);
    }

    std::vector<TensorType> infer() const override {
        check_element(in(0).element);
        return {TensorType(in(0).element, contraction().shape())};
    }

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

private:
    Equation equation_;

    Contraction contraction() const { return {equation_, {in(0).shape, in(1).shape}}; }
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
    return EinsumProduct::fits(Equation(node.string("equation"))) ? make<EinsumProduct>(node)
                                                                  : make<SumOfProducts>(node);
}

}  // namespace onnx2halide
