#include <algorithm>

#include <fmt/format.h>

#include "compiler/graph/error.h"
#include "compiler/load/expansion.h"

namespace onnx2halide {

namespace {

/// A recurrence over tokens (Yang et al., 2024). Its state is a matrix per head, S = decay * S + k (v - ...)', which
/// queries multiply. If queries or keys have fewer heads than the other, several heads of the other share one.
class LinearAttention {
public:
    explicit LinearAttention(const OperatorCall& call)
        : call_(call), heads_(call.count("q_num_heads")), kv_heads_(call.count("kv_num_heads")),
          rule_(call.string("update_rule", "gated_delta")), body_{{"query", "key", "value", "past", "decay", "beta"},
                                                                  {"output", "present"},
                                                                  {}} {
        call.refuse_flag("state_window");
        if (rule_ != "linear" && rule_ != "gated" && rule_ != "delta" && rule_ != "gated_delta")
            throw CompileError("attribute update_rule is '{}', expected linear, gated, delta or gated_delta", rule_);
        if (std::max(heads_, kv_heads_) % std::min(heads_, kv_heads_) != 0)
            throw CompileError("q_num_heads is {}, expected a multiple or a divisor of kv_num_heads, {}", heads_,
                               kv_heads_);
        if (is_gated() && !call.has_input(4)) throw CompileError("input decay is missing");
        if (is_delta() && !call.has_input(5)) throw CompileError("input beta is missing");
    }

    OperatorBody make() {
        body_.add("zero = Constant<value_float = 0.0>()");
        add_queries();
        add_tokens("key", kv_heads_, "-1, 1");
        add_tokens("value", kv_heads_, "1, -1");
        if (is_gated()) add_tokens("decay", kv_heads_, "-1, 1");
        if (is_delta()) add_tokens("beta", -1, "1, 1");
        add_scale();
        add_first_state();
        add_scan();
        body_.add(fmt::format(R"(
            rows = Transpose<perm = [1, 0, 2, 3, 4]>(results)
            rows_shape = Constant<value_ints = [0, 0, -1]>()
            wide_output = Reshape(rows, rows_shape)
            output = CastLike(wide_output, query))"));
        if (call_.has_output(1))
            body_.add(call_.has_input(3) ? "present = CastLike(last, past)" : "present = CastLike(last, query)");
        return std::move(body_);
    }

private:
    const OperatorCall& call_;
    const int64_t heads_, kv_heads_;
    const std::string rule_;
    OperatorBody body_;

    bool is_gated() const { return rule_.starts_with("gated"); }
    bool is_delta() const { return rule_.ends_with("delta"); }

    /// Defines `NAME_steps`, as floats, of shape [tokens, batch, heads] followed by that of `matrix`.
    void add_tokens(std::string_view name, int64_t heads, std::string_view matrix) {
        body_.add(fmt::format(R"(
            wide_{0} = Cast<to = 1>({0})
            {0}_shape = Constant<value_ints = [0, 0, {1}, {2}]>()
            {0}_heads = Reshape(wide_{0}, {0}_shape)
            {0}_steps = Transpose<perm = [1, 0, 2, 3, 4]>({0}_heads))",
                              name, heads, matrix));
    }

    /// Defines `query_steps`: a row for each head that shares keys, or the same row for several heads of keys.
    void add_queries() {
        if (heads_ >= kv_heads_) return add_tokens("query", kv_heads_, fmt::format("{}, -1", heads_ / kv_heads_));
        body_.add(fmt::format(R"(
            wide_query = Cast<to = 1>(query)
            query_shape = Constant<value_ints = [0, 0, {0}, 1, -1]>()
            query_heads = Reshape(wide_query, query_shape)
            times = Constant<value_ints = [1, 1, 1, {1}, 1]>()
            more_heads = Tile(query_heads, times)
            more_shape = Constant<value_ints = [0, 0, {2}, 1, -1]>()
            all_heads = Reshape(more_heads, more_shape)
            query_steps = Transpose<perm = [1, 0, 2, 3, 4]>(all_heads))",
                              heads_, kv_heads_ / heads_, kv_heads_));
    }

    void add_scale() {
        if (const float scale = call_.real("scale", 0.0f); scale != 0)
            return body_.add(fmt::format("scale = Constant<value_float: float = {}>()", scale));
        body_.add(R"(
            size = Shape<start = 4>(query_steps)
            wide_size = Cast<to = 1>(size)
            root = Sqrt(wide_size)
            scale = Reciprocal(root))");
    }

    void add_first_state() {
        if (call_.has_input(3)) return body_.add("first = Cast<to = 1>(past)");
        body_.add(R"(
            outer = Shape<start = 1, end = 4>(key_steps)
            inner = Shape<start = 4>(value_steps)
            state_shape = Concat<axis = 0>(outer, inner)
            first = Expand(zero, state_shape))");
    }

    void add_scan() {
        std::vector<std::string> steps = {"query", "key", "value"};
        if (is_gated()) steps.push_back("decay");
        if (is_delta()) steps.push_back("beta");
        std::string operands, formals = "state";
        for (const std::string& step : steps) {
            operands += fmt::format(", {}_steps", step);
            formals += fmt::format(", one_{}", step);
        }
        std::string iteration =
            is_gated() ? "factor = Exp(one_decay)\nkept = Mul(state, factor)\n" : "kept = Identity(state)\n";
        if (is_delta()) {
            iteration += R"(
                row = Transpose<perm = [0, 1, 3, 2]>(one_key)
                foreseen = MatMul(row, kept)
                error = Sub(one_value, foreseen)
                update = Mul(error, one_beta))";
        } else {
            iteration += "update = Identity(one_value)";
        }
        body_.add(fmt::format(R"(
            last, results = Scan<num_scan_inputs = {}, body = iteration ({}) => (next, result) {{
                {}
                added = Mul(one_key, update)
                next = Add(kept, added)
                read = MatMul(one_query, next)
                result = Mul(read, scale)
            }}>(first{}))",
                              steps.size(), formals, iteration, operands));
    }
};

OperatorBody linear_attention(const OperatorCall& call) { return LinearAttention(call).make(); }

/// Defines `NAME_signal` with the layout [batch, channels, length].
void add_signal(OperatorBody& body, std::string_view name, bool is_last) {
    if (!is_last) return body.add(fmt::format("{0}_signal = Identity({0})", name));
    body.add(fmt::format(R"(
        {0}_rows = Reshape({0}, flat)
        {0}_signal = Transpose<perm = [0, 2, 1]>({0}_rows))",
                         name));
}

/// Defines the outputs in the layout of the input, with channels last, which may be several axes.
void add_channels_last(OperatorBody& body, const OperatorCall& call) {
    body.add(R"(
        shape = Shape(input)
        output_rows = Transpose<perm = [0, 2, 1]>(output_signal)
        output = Reshape(output_rows, shape))");
    if (!call.has_output(1)) return;
    body.add(R"(
        batch = Shape<end = 1>(input)
        channels = Shape<start = 2>(input)
        present_shape = Concat<axis = 0>(batch, kept, channels)
        present_rows = Transpose<perm = [0, 2, 1]>(present_signal)
        present = Reshape(present_rows, present_shape))");
}

/// Throws CompileError if CausalConvWithState has attributes that are not supported.
void check_causal_conv(const OperatorCall& call) {
    call.refuse_flag("state_window");
    if (const int64_t axes = call.integer("ndim", 1); axes != 1)
        throw CompileError("attribute ndim is {}, expected 1", axes);
    const std::string activation = call.string("activation", "none");
    if (activation != "none" && activation != "silu" && activation != "swish")
        throw CompileError("attribute activation is '{}', expected none, silu or swish", activation);
    if (const int64_t dilation = call.integer("dilation", 1); dilation < 1)
        throw CompileError("attribute dilation is {}, expected 1 or more", dilation);
}

/// Defines `signal`: `past_signal` or, without it, as many zeros, followed by `input_signal`.
void add_whole_signal(OperatorBody& body, const OperatorCall& call, bool is_last) {
    add_signal(body, "input", is_last);
    if (call.has_input(3)) {
        add_signal(body, "past", is_last);
        return body.add("signal = Concat<axis = 2>(past_signal, input_signal)");
    }
    body.add(R"(
        pads = Concat<axis = 0>(kept, zero_row)
        signal = Pad(input_signal, pads, , along))");
}

/// Defines `sum`, the weighted sum of each element of the input and those before it, as floats.
void add_window_sums(OperatorBody& body) {
    body.add(R"(
        length_row = Shape<start = 2>(input_signal)
        length = Squeeze(length_row)
        places_row = Range(zero, length, one)
        places = Unsqueeze(places_row, column)
        taps_places = Range(zero, taps, one)
        offsets = Mul(taps_places, dilation)
        windows_places = Add(places, offsets)
        windows = Gather<axis = 2>(signal, windows_places)
        wide_windows = Cast<to = 1>(windows)
        wide_weight = Cast<to = 1>(weight)
        products = Mul(wide_windows, wide_weight)
        sum = ReduceSum<keepdims = 0>(products, last))");
}

/// Defines `result`, the activation of `sum` plus the bias, in the input's type.
void add_biased_activation(OperatorBody& body, const OperatorCall& call, std::string_view result) {
    if (call.has_input(2)) {
        body.add(R"(
            wide_bias = Cast<to = 1>(bias)
            bias_column = Unsqueeze(wide_bias, column)
            result = Add(sum, bias_column))");
    } else {
        body.add("result = Identity(sum)");
    }
    const bool is_linear = call.string("activation", "none") == "none";
    body.add(fmt::format(R"(
        wide_output = {}(result)
        {} = CastLike(wide_output, input))",
                         is_linear ? "Identity" : "Swish", result));
}

/// A causal depthwise convolution along a signal. It reads the last elements of the previous part of the signal from
/// `past`, and returns those of this one as `present`.
OperatorBody causal_conv_with_state(const OperatorCall& call) {
    OperatorBody body{{"input", "weight", "bias", "past"}, {"output", "present"}, {}};
    check_causal_conv(call);
    const bool is_last = call.integer("channels_last", 0) != 0;
    body.add(fmt::format(R"(
        flat = Constant<value_ints = [0, 0, -1]>()
        zero = Constant<value_int = 0>()
        one = Constant<value_int = 1>()
        zero_row = Constant<value_ints = [0]>()
        column = Constant<value_ints = [1]>()
        along = Constant<value_ints = [2]>()
        last = Constant<value_ints = [-1]>()
        all = Constant<value_ints = [9223372036854775807]>()
        dilation = Constant<value_int = {}>()
        taps_row = Shape<start = 2>(weight)
        taps = Squeeze(taps_row)
        gaps_row = Sub(taps_row, one)
        kept = Mul(gaps_row, dilation))",
                         call.integer("dilation", 1)));
    add_whole_signal(body, call, is_last);
    add_window_sums(body);
    add_biased_activation(body, call, is_last ? "output_signal" : "output");
    if (call.has_output(1))
        body.add(fmt::format("{} = Slice(signal, length_row, all, along)", is_last ? "present_signal" : "present"));
    if (is_last) add_channels_last(body, call);
    return body;
}

/// decay_scale * Softplus(a + dt_bias) and Sigmoid(b)
OperatorBody linear_attention_gate(const OperatorCall& call) {
    OperatorBody body{{"a", "dt_bias", "decay_scale", "b"}, {"decay", "beta"}, {}};
    body.add(R"(
        wide = Cast<to = 1>(a)
        biased = Add(wide, dt_bias)
        rate = Softplus(biased)
        wide_decay = Mul(decay_scale, rate)
        decay = CastLike(wide_decay, a))");
    if (call.has_output(1)) body.add("beta = Sigmoid(b)");
    return body;
}

}  // namespace

std::vector<ExpandedOperator> linear_attention_expansions() {
    return {
        {microsoft_domain, "CausalConvWithState", 1, causal_conv_with_state},
        {microsoft_domain, "LinearAttention", 1, linear_attention},
        {microsoft_domain, "LinearAttentionGate", 1, linear_attention_gate},
    };
}

}  // namespace onnx2halide
