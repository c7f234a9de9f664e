#include <fmt/format.h>
#include <fmt/ranges.h>

#include "compiler/graph/error.h"
#include "compiler/load/attention_body.h"

namespace onnx2halide {

namespace {

/// The masks of an operator with these formal inputs, as far as the call has them.
AttentionBody::Masks masks_of(AttentionBody& body, const OperatorCall& call, std::string_view mask,
                              std::string_view bias) {
    AttentionBody::Masks masks;
    if (body.has_input(mask)) masks.mask = mask;
    if (body.has_input(bias)) masks.bias = bias;
    if (call.integer("unidirectional", 0) != 0) {
        body.add_positions();
        masks.positions = "positions";
    }
    return masks;
}

/// Defines `keys`, `values` and `present`; `past` and `present` hold keys and values stacked along axis 0.
void add_past_and_present(AttentionBody& body) {
    const bool has_past = body.has_input("past");
    body.add("outermost = Constant<value_ints = [0]>()");
    if (has_past) {
        body.add(R"(
            past_k_part, past_v_part = Split<axis = 0, num_outputs = 2>(past)
            past_k = Squeeze(past_k_part, outermost)
            past_v = Squeeze(past_v_part, outermost))");
    }
    body.add_states("keys", has_past ? "past_k" : "", "k");
    body.add_states("values", has_past ? "past_v" : "", "v");
    if (!body.has_output("present")) return;
    body.add(R"(
        present_k = Unsqueeze(keys, outermost)
        present_v = Unsqueeze(values, outermost)
        present = Concat<axis = 0>(present_k, present_v))");
}

/// Defines `sizes`, the numbers of columns for queries, keys and values, and returns it as a further operand of Split;
/// empty without the attribute, when all have the same.
std::string split_sizes(AttentionBody& body, const OperatorCall& call) {
    const std::vector<int64_t> sizes = call.integers("qkv_hidden_sizes");
    if (sizes.empty()) return "";
    if (sizes.size() != 3) throw CompileError("attribute qkv_hidden_sizes has {} values, expected 3", sizes.size());
    body.add(fmt::format("sizes = Constant<value_ints = [{}]>()", fmt::join(sizes, ", ")));
    return ", sizes";
}

/// The text that splits a tensor into three parts along an axis.
std::string split(std::string_view x, int axis, const std::string& sizes) {
    return fmt::format("Split<axis = {}{}>({}{})", axis, sizes.empty() ? ", num_outputs = 3" : "", x, sizes);
}

/// Defines `result`, the heads of queries, keys or values, from their rows plus, if there is a bias, their part of it.
void add_biased_heads(AttentionBody& body, std::string_view result, std::string_view rows, int64_t heads) {
    body.add_heads(result, rows, heads, body.has_input("bias") ? fmt::format("b_{}", result) : "");
}

OperatorBody attention(const OperatorCall& call) {
    AttentionBody body(call, {"input", "weights", "bias", "mask_index", "past", "attention_bias", "past_length"},
                       {"output", "present"});
    const int64_t heads = call.count("num_heads");
    body.refuse_flags({"do_rotary", "past_present_share_buffer"});
    body.refuse_inputs({"past_length"});
    const std::string sizes = split_sizes(body, call);
    body.add("w_q, w_k, w_v = " + split("weights", 1, sizes));
    if (body.has_input("bias")) body.add("b_q, b_k, b_v = " + split("bias", 0, sizes));
    for (const char* name : {"q", "k", "v"}) {
        body.add(fmt::format("{0}_product = MatMul(input, w_{0})", name));
        add_biased_heads(body, name, fmt::format("{}_product", name), heads);
    }
    add_past_and_present(body);
    body.add_attention("output", masks_of(body, call, "mask_index", "attention_bias"));
    return std::move(body).body();
}

/// Like Attention, but with an integer product whose result is scaled.
OperatorBody quantised_attention(const OperatorCall& call) {
    AttentionBody body(call,
                       {"input", "weight", "bias", "input_scale", "weight_scale", "mask_index", "input_zero_point",
                        "weight_zero_point", "past"},
                       {"output", "present"});
    const int64_t heads = call.count("num_heads");
    body.refuse_flags({"do_rotary", "past_present_share_buffer"});
    body.add(fmt::format(R"(
        sums = MatMulInteger(input, weight, input_zero_point, weight_zero_point)
        scale = Mul(input_scale, weight_scale)
        real_sums = CastLike(sums, scale)
        products = Mul(real_sums, scale)
        rows = Add(products, bias)
        q_rows, k_rows, v_rows = {})",
                         split("rows", -1, "")));
    for (const char* name : {"q", "k", "v"}) body.add_heads(name, fmt::format("{}_rows", name), heads);
    add_past_and_present(body);
    body.add_attention("output", masks_of(body, call, "mask_index", ""));
    return std::move(body).body();
}

/// Defines q, k and v from separate tensors. Keys and values may have been split into heads already; then onnxruntime
/// adds no bias to them, which should be zeros for them.
void add_separate(AttentionBody& body, int64_t heads) {
    if (body.has_input("bias")) {
        body.add(R"(
            q_size = Shape<start = 2, end = 3>(query)
            q_and_k_size = Add(q_size, q_size)
            all_size = Shape(bias)
            v_size = Sub(all_size, q_and_k_size)
            sizes = Concat<axis = 0>(q_size, q_size, v_size)
            b_q, b_k, b_v = Split<axis = 0>(bias, sizes))");
    }
    add_biased_heads(body, "q", "query", heads);
    add_biased_heads(body, "k", "key", heads);
    add_biased_heads(body, "v", "value", heads);
}

/// Defines `names` as the parts of a tensor [batch, sequence, heads, names, size].
void add_packed(AttentionBody& body, std::string_view x, const std::vector<std::string>& names) {
    body.add(
        fmt::format("{}_part = Split<axis = 3, num_outputs = {}>({})", fmt::join(names, "_part, "), names.size(), x));
    body.add("names_axis = Constant<value_ints = [3]>()");
    for (const std::string& name : names) {
        body.add(fmt::format("{0}_split = Squeeze({0}_part, names_axis)", name));
        std::string heads = name + "_split";
        if (body.has_input("bias")) {
            body.add(fmt::format("{0}_biased = Add({0}_split, b_{0})", name));
            heads = name + "_biased";
        }
        body.add(fmt::format("{} = Transpose<perm = [0, 2, 1, 3]>({})", name, heads));
    }
}

void add_queries_keys_values(AttentionBody& body, int64_t heads) {
    if (body.has_input("value")) return add_separate(body, heads);
    if (body.has_input("key")) {
        body.refuse_inputs({"bias"});
        body.add_heads("q", "query", heads);
        return add_packed(body, "key", {"k", "v"});
    }
    if (body.has_input("bias")) {
        body.add(fmt::format(R"(
            bias_shape = Constant<value_ints = [3, {}, -1]>()
            bias_split = Reshape(bias, bias_shape)
            b_q, b_k, b_v = Split<axis = 0, num_outputs = 3>(bias_split))",
                             heads));
    }
    add_packed(body, "query", {"q", "k", "v"});
}

OperatorBody multi_head_attention(const OperatorCall& call) {
    AttentionBody body(call,
                       {"query", "key", "value", "bias", "key_padding_mask", "attention_bias", "past_key", "past_value",
                        "past_sequence_length", "cache_indirection"},
                       {"output", "present_key", "present_value", "qk"});
    const int64_t heads = call.count("num_heads");
    body.refuse_inputs({"past_sequence_length", "cache_indirection"});
    body.refuse_outputs({"qk"});
    add_queries_keys_values(body, heads);
    body.add_states("keys", body.has_input("past_key") ? "past_key" : "", "k");
    body.add_states("values", body.has_input("past_value") ? "past_value" : "", "v");
    if (body.has_output("present_key")) body.add("present_key = Identity(keys)");
    if (body.has_output("present_value")) body.add("present_value = Identity(values)");
    body.add_attention("output", masks_of(body, call, "key_padding_mask", "attention_bias"));
    return std::move(body).body();
}

}  // namespace

std::vector<ExpandedOperator> attention_expansions() {
    return {
        {microsoft_domain, "Attention", 1, attention},
        {microsoft_domain, "MultiHeadAttention", 1, multi_head_attention},
        {microsoft_domain, "QAttention", 1, quantised_attention},
    };
}

}  // namespace onnx2halide
