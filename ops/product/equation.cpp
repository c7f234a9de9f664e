#include "ops/product/equation.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "ops/node_generator.h"

namespace onnx2halide {

namespace {

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

}  // namespace

Labels Term::labels(size_t ellipsis_rank) const {
    Labels all = before;
    for (size_t i = has_ellipsis ? ellipsis_rank : 0; i-- > 0;)
        all.push_back(first_of_ellipsis + static_cast<Label>(i));
    all.insert(all.end(), after.begin(), after.end());
    return all;
}

Equation::Equation(std::string text) {
    std::erase(text, ' ');
    const size_t arrow = text.find("->");
    std::string left = text.substr(0, arrow);
    for (size_t comma; (comma = left.find(',')) != std::string::npos; left.erase(0, comma + 1))
        operands.push_back(parse_term(left.substr(0, comma)));
    operands.push_back(parse_term(left));
    result = arrow == std::string::npos ? implied_result() : parse_term(text.substr(arrow + 2));
}

/// Without an arrow the result has the ellipsis, followed by the letters that occur once in alphabetical order.
Term Equation::implied_result() const {
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

bool Equation::is_product() const {
    if (operands.size() != 2 || this->result.labels(0).empty()) return false;
    const Labels a = operands[0].labels(1), b = operands[1].labels(1), result = this->result.labels(1);
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

Contraction::Contraction(const Equation& equation, const std::vector<std::vector<Dim>>& shapes) {
    if (equation.operands.size() != shapes.size()) {
        throw CompileError("equation has {} operands, the node {}", equation.operands.size(), shapes.size());
    }
    size_t ellipsis_rank = 0;
    for (size_t i = 0; i < shapes.size(); ++i) {
        const Term& term = equation.operands[i];
        const bool fits = term.has_ellipsis ? shapes[i].size() >= term.letters() : shapes[i].size() == term.letters();
        if (!fits)
            throw CompileError("operand {} has rank {}, the equation names {} axes", i, shapes[i].size(),
                               term.letters());
        const size_t own = shapes[i].size() - term.letters();
        operands.push_back(term.labels(own));
        ellipsis_rank = std::max(ellipsis_rank, own);
    }
    if (ellipsis_rank > 0 && !equation.result.has_ellipsis)
        throw CompileError("equation has an ellipsis of {} axes that the result has not", ellipsis_rank);
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
        if (std::count(result.begin(), result.end(), label) > 1)
            throw CompileError("the result has index '{}' twice", static_cast<char>(label));
    }
}

std::vector<Dim> Contraction::shape() const {
    std::vector<Dim> shape;
    for (const Label label : result) shape.push_back(extents.at(label));
    return shape;
}

std::vector<Contraction::Extent> Contraction::expected_extents(const std::vector<std::vector<Dim>>& shapes) const {
    std::vector<Extent> expected;
    for (size_t i = 0; i < operands.size(); ++i) {
        for (size_t axis = 0; axis < shapes[i].size(); ++axis) {
            if (!shapes[i][axis].is(1)) expected.push_back({i, axis, extents.at(operands[i][axis])});
        }
    }
    return expected;
}

Coordinates Contraction::place(size_t operand, const std::vector<Dim>& shape,
                               const std::map<Label, std::string>& indices) const {
    Coordinates place;
    for (size_t axis = 0; axis < shape.size(); ++axis)
        place.push_back(shape[axis].is(1) ? "0" : indices.at(operands[operand][axis]));
    return place;
}

void Contraction::add_extent(Label label, const Dim& extent) {
    const auto [known, is_new] = extents.try_emplace(label, extent);
    if (!is_new) known->second = broadcast({known->second}, {extent})[0];
}

}  // namespace onnx2halide
