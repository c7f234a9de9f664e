#include "compiler/load/expansion.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <onnx/defs/printer.h>
#include <onnx/onnx_pb.h>

#include "compiler/graph/error.h"

namespace onnx2halide {

namespace {

/// The name of an attribute type in ONNX's textual syntax: ints.
std::string type_name(int type) {
    std::string name = onnx::AttributeProto::AttributeType_Name(static_cast<onnx::AttributeProto::AttributeType>(type));
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
    return name;
}

std::vector<ExpandedOperator> sorted_rows() {
    std::vector<ExpandedOperator> rows;
    for (const auto family :
         {activation_expansions, normalisation_expansions, attention_expansions, grouped_attention_expansions,
          fused_expansions, image_expansions, spectrum_expansions, integer_expansions, hybrid_expansions,
          linear_attention_expansions, expert_expansions, recurrent_expansions, precursor_expansions,
          experimental_expansions, generation_expansions}) {
        const std::vector<ExpandedOperator> more = family();
        rows.insert(rows.end(), more.begin(), more.end());
    }
    std::sort(rows.begin(), rows.end(), [](const ExpandedOperator& a, const ExpandedOperator& b) {
        return std::tie(a.domain, a.type) < std::tie(b.domain, b.type);
    });
    return rows;
}

}  // namespace

bool OperatorCall::has_input(int i) const { return i < node_.input_size() && !node_.input(i).empty(); }

bool OperatorCall::has_output(int i) const { return i < node_.output_size() && !node_.output(i).empty(); }

const onnx::AttributeProto* OperatorCall::find(std::string_view attribute) const {
    const auto found = std::find_if(node_.attribute().begin(), node_.attribute().end(),
                                    [&](const auto& each) { return each.name() == attribute; });
    return found == node_.attribute().end() ? nullptr : &*found;
}

const onnx::AttributeProto* OperatorCall::find(std::string_view attribute, int type) const {
    const onnx::AttributeProto* found = find(attribute);
    if (found && found->type() != type)
        throw CompileError("attribute {} is of type {}, expected {}", attribute, type_name(found->type()),
                           type_name(type));
    return found;
}

int64_t OperatorCall::integer(std::string_view attribute, int64_t otherwise) const {
    const auto* found = find(attribute, onnx::AttributeProto::INT);
    return found ? found->i() : otherwise;
}

float OperatorCall::real(std::string_view attribute, float otherwise) const {
    const auto* found = find(attribute, onnx::AttributeProto::FLOAT);
    return found ? found->f() : otherwise;
}

std::string OperatorCall::string(std::string_view attribute, const std::string& otherwise) const {
    const auto* found = find(attribute, onnx::AttributeProto::STRING);
    return found ? found->s() : otherwise;
}

std::vector<int64_t> OperatorCall::integers(std::string_view attribute) const {
    const auto* found = find(attribute, onnx::AttributeProto::INTS);
    if (!found) return {};
    return {found->ints().begin(), found->ints().end()};
}

std::vector<float> OperatorCall::reals(std::string_view attribute) const {
    const auto* found = find(attribute, onnx::AttributeProto::FLOATS);
    if (!found) return {};
    return {found->floats().begin(), found->floats().end()};
}

std::vector<std::string> OperatorCall::strings(std::string_view attribute) const {
    const auto* found = find(attribute, onnx::AttributeProto::STRINGS);
    if (!found) return {};
    return {found->strings().begin(), found->strings().end()};
}

int64_t OperatorCall::count(std::string_view attribute) const {
    if (!has(attribute)) throw CompileError("attribute {} is missing", attribute);
    const int64_t number = integer(attribute, 0);
    constexpr int64_t largest = std::numeric_limits<int32_t>::max();
    if (number < 1 || number > largest)
        throw CompileError("attribute {} is {}, expected 1 to {}", attribute, number, largest);
    return number;
}

std::string OperatorCall::passed_on(std::initializer_list<std::string_view> attributes) const {
    std::vector<std::string> texts;
    for (const std::string_view name : attributes) {
        if (const auto* found = find(name)) texts.push_back(onnx::ProtoToString(*found));
    }
    return texts.empty() ? "" : fmt::format("<{}>", fmt::join(texts, ", "));
}

size_t OperatorCall::spatial_rank() const {
    for (const std::string_view name : {"kernel_shape", "strides", "dilations"}) {
        if (has(name)) return integers(name).size();
    }
    return has("pads") ? integers("pads").size() / 2 : 2;
}

void OperatorCall::refuse_flag(std::string_view attribute) const {
    const int64_t value = integer(attribute, 0);
    if (value > 0) throw CompileError("attribute {} is {}, which is not supported", attribute, value);
}

void OperatorCall::refuse_input(int i, std::string_view name) const {
    if (has_input(i)) throw CompileError("input {} ({}) is not supported", i, name);
}

void OperatorCall::refuse_output(int i, std::string_view name) const {
    if (has_output(i)) throw CompileError("output {} ({}) is not supported", i, name);
}

void OperatorBody::add(std::string_view text) { nodes.append(text).append("\n"); }

void OperatorBody::add_scalar(std::string_view name, float value, std::string_view like) {
    add(fmt::format("{0}_float = Constant<value_float: float = {1}>()\n{0} = CastLike({0}_float, {2})", name, value,
                    like));
}

void OperatorBody::add_planes(std::string_view planes, std::string_view image, size_t spatial_rank) {
    std::vector<size_t> perm = {0, spatial_rank + 1};
    for (size_t axis = 1; axis <= spatial_rank; ++axis) perm.push_back(axis);
    add(fmt::format("{} = Transpose<perm = [{}]>({})", planes, fmt::join(perm, ", "), image));
}

void OperatorBody::add_image(std::string_view image, std::string_view planes, size_t spatial_rank) {
    std::vector<size_t> perm = {0};
    for (size_t axis = 2; axis <= spatial_rank + 1; ++axis) perm.push_back(axis);
    perm.push_back(1);
    add(fmt::format("{} = Transpose<perm = [{}]>({})", image, fmt::join(perm, ", "), planes));
}

std::span<const ExpandedOperator> expanded_operators() {
    static const std::vector<ExpandedOperator> rows = sorted_rows();
    return rows;
}

}  // namespace onnx2halide
