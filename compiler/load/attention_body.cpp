#include "compiler/load/attention_body.h"

#include <algorithm>

#include <fmt/format.h>

#include "compiler/graph/error.h"

namespace onnx2halide {

namespace {

int place(const std::vector<std::string>& formals, std::string_view name) {
    return static_cast<int>(std::find(formals.begin(), formals.end(), name) - formals.begin());
}

}  // namespace

AttentionBody::AttentionBody(const OperatorCall& call, std::vector<std::string> inputs,
                             std::vector<std::string> outputs)
    : call_(call), body_{std::move(inputs), std::move(outputs), {}} {}

bool AttentionBody::has_input(std::string_view formal) const { return call_.has_input(place(body_.inputs, formal)); }

bool AttentionBody::has_output(std::string_view formal) const { return call_.has_output(place(body_.outputs, formal)); }

void AttentionBody::refuse_inputs(std::initializer_list<std::string_view> formals) const {
    for (const std::string_view formal : formals) call_.refuse_input(place(body_.inputs, formal), formal);
}

void AttentionBody::refuse_outputs(std::initializer_list<std::string_view> formals) const {
    for (const std::string_view formal : formals) call_.refuse_output(place(body_.outputs, formal), formal);
}

void AttentionBody::refuse_flags(std::initializer_list<std::string_view> attributes) const {
    for (const std::string_view attribute : attributes) call_.refuse_flag(attribute);
}

void AttentionBody::add_heads(std::string_view result, std::string_view x, int64_t heads, std::string_view bias) {
    add(fmt::format("{} = onnx2halide.SplitHeads<num_heads = {}>({}, {})", result, heads, x, bias));
}

void AttentionBody::add_states(std::string_view result, std::string_view past, std::string_view x) {
    add(past.empty() ? fmt::format("{} = Identity({})", result, x)
                     : fmt::format("{} = Concat<axis = 2>({}, {})", result, past, x));
}

void AttentionBody::add_positions() {
    add(R"(
        new_count = Shape<start = 2, end = 3>(k)
        all_count = Shape<start = 2, end = 3>(keys)
        past_count = Sub(all_count, new_count)
        query_count = Shape<start = 2, end = 3>(q)
        end_count = Add(past_count, query_count)
        first_position = Squeeze(past_count)
        end_position = Squeeze(end_count)
        one_position = Constant<value_int = 1>()
        positions = Range(first_position, end_position, one_position))");
}

void AttentionBody::add_attention(std::string_view result, const Masks& masks) {
    add(fmt::format(
        R"({} = onnx2halide.Attention<scale: float = {}, softcap: float = {}, mask_filter_value: float = {},
                                     window = {}>(q, keys, values, {}, {}, {}))",
        result, call_.real("scale", 0.0f), call_.real("softcap", 0.0f), call_.real("mask_filter_value", -10000.0f),
        masks.window, masks.mask, masks.positions, masks.bias));
}

}  // namespace onnx2halide
