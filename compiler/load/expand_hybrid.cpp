#include <fmt/format.h>
#include <fmt/ranges.h>

#include "compiler/graph/error.h"
#include "compiler/load/expansion.h"

namespace onnx2halide {

namespace {

// Operators, besides attention, of models with several residual streams, gates, or rotations along several axes.

/// X / sqrt(mean(X^2) + epsilon) * scale * activation(gate), for rows of the length of `scale`.
OperatorBody gated_rms_norm(const OperatorCall& call) {
    OperatorBody body{{"x", "scale", "gate"}, {"y"}, {}};
    const std::string activation = call.string("activation", "silu");
    if (activation != "silu" && activation != "swish" && activation != "sigmoid")
        throw CompileError("attribute activation is '{}', expected silu, swish or sigmoid", activation);
    body.add(fmt::format(R"(
        wide = Cast<to = 1>(x)
        wide_scale = Cast<to = 1>(scale)
        any = Constant<value_ints = [-1]>()
        channels = Shape(scale)
        rows_shape = Concat<axis = 0>(any, channels)
        rows = Reshape(wide, rows_shape)
        normal_rows = RMSNormalization<axis = -1, epsilon: float = {}>(rows, wide_scale)
        shape = Shape(x)
        normal = Reshape(normal_rows, shape)
        wide_gate = Cast<to = 1>(gate)
        active = {}(wide_gate)
        gated = Mul(normal, active)
        y = CastLike(gated, x))",
                         call.real("epsilon", 1e-5f), activation == "sigmoid" ? "Sigmoid" : "Swish"));
    return body;
}

OperatorBody gated_add(const OperatorCall&) {
    return {{"x", "y", "gate"}, {"output"}, "gated = Mul(y, gate)\noutput = Add(x, gated)"};
}

OperatorBody scaled_silu(const OperatorCall& call) {
    OperatorBody body{{"x", "scale"}, {"y"}, {}};
    if (call.has_input(1)) {
        body.add("factor = CastLike(scale, x)");
    } else {
        body.add_scalar("factor", call.real("alpha", 1.0f), "x");
    }
    body.add(R"(
        scaled = Mul(x, factor)
        y = Swish(scaled))");
    return body;
}

/// Defines `branches`, as floats: `x` with an axis for the branches, which may be concatenated along the last axis.
void add_branches(OperatorBody& body, const OperatorCall& call) {
    const int64_t count = call.integer("num_branches", 0);
    body.add(R"(
        shape = Shape(x)
        wide = Cast<to = 1>(x)
        any = Constant<value_ints = [-1]>())");
    if (count == 0) return body.add("branches = Identity(wide)");
    body.add(fmt::format(R"(
        outer = Shape<end = -1>(x)
        count = Constant<value_ints = [{}]>()
        branches_shape = Concat<axis = 0>(outer, count, any)
        branches = Reshape(wide, branches_shape))",
                         count));
}

/// Defines `NAME`, rows of floats divided by the root of their mean square.
void add_standardised(OperatorBody& body, const OperatorCall& call, std::string_view name, std::string_view rows) {
    body.add(fmt::format(R"(
        {0}_unit = Constant<value_float = 1.0>()
        {0}_width = Shape<start = -1>({1})
        {0}_units = Expand({0}_unit, {0}_width)
        {0} = RMSNormalization<axis = -1, epsilon: float = {2}>({1}, {0}_units))",
                         name, rows, call.real("epsilon", 1e-5f)));
}

OperatorBody branchwise_rms_norm(const OperatorCall& call) {
    OperatorBody body{{"x", "scale"}, {"y"}, {}};
    add_branches(body, call);
    add_standardised(body, call, "standardised", "branches");
    if (call.has_input(1)) {
        body.add(R"(
            wide_scale = Cast<to = 1>(scale)
            scale_shape = Concat<axis = 0>(any, standardised_width)
            scale_rows = Reshape(wide_scale, scale_shape)
            result = Mul(standardised, scale_rows))");
    } else {
        body.add("result = Identity(standardised)");
    }
    body.add(R"(
        narrow = CastLike(result, x)
        y = Reshape(narrow, shape))");
    return body;
}

/// Defines `gates`, as floats: a row or one number for each branch.
void add_gates(OperatorBody& body, std::string_view operand) {
    body.add(fmt::format(R"(
        wide_gates = Cast<to = 1>({})
        of_branches = Shape<end = -1>(branches)
        gates_shape = Concat<axis = 0>(of_branches, any)
        gates = Reshape(wide_gates, gates_shape))",
                         operand));
}

/// Y[..., h] = reduction_scale * sum over c of X[..., c, h] * pre_mix[..., c, h]
OperatorBody hyper_connection_pre_mix(const OperatorCall& call) {
    OperatorBody body{{"x", "pre_mix"}, {"y"}, {}};
    add_branches(body, call);
    add_gates(body, "pre_mix");
    body.add(fmt::format(R"(
        gated = Mul(branches, gates)
        axis = Constant<value_ints = [-2]>()
        sum = ReduceSum<keepdims = 0>(gated, axis)
        factor = Constant<value_float: float = {}>()
        scaled = Mul(sum, factor)
        y = CastLike(scaled, x))",
                         call.real("reduction_scale", 1.0f)));
    return body;
}

/// Y[..., k, h] = sum over c of stream_mix[..., c, k] * X[..., c, h] + post_mix[..., k, h] * block[..., h]
OperatorBody hyper_connection_post_mix(const OperatorCall& call) {
    OperatorBody body{{"x", "block", "post_mix", "stream_mix"}, {"y"}, {}};
    add_branches(body, call);
    add_gates(body, "post_mix");
    if (call.has_input(3)) {
        body.add(R"(
            wide_mix = Cast<to = 1>(stream_mix)
            mixed = com.microsoft.FusedMatMul<transA = 1>(wide_mix, branches))");
    } else {
        body.add("mixed = Identity(branches)");
    }
    body.add(R"(
        wide_block = Cast<to = 1>(block)
        axis = Constant<value_ints = [-2]>()
        row = Unsqueeze(wide_block, axis)
        gated = Mul(gates, row)
        sum = Add(mixed, gated)
        narrow = CastLike(sum, x)
        y = Reshape(narrow, shape))");
    return body;
}

/// Defines `NAME_normal`, the rows of `name` standardised and scaled, as floats.
void add_rms_norm(OperatorBody& body, const OperatorCall& call, std::string_view name, std::string_view scale) {
    const std::string rows = fmt::format("{}_rows", name);
    body.add(fmt::format("wide_{0} = Cast<to = 1>({0})", name));
    add_standardised(body, call, rows, fmt::format("wide_{}", name));
    body.add(fmt::format(R"(
        wide_{1} = Cast<to = 1>({1})
        {0}_normal = Mul({2}, wide_{1}))",
                         name, scale, rows));
}

/// sigmoid(sign(dot) * sqrt(max(|dot|, 1e-6))) * value, where dot is the scaled dot product of normalised keys and
/// queries.
OperatorBody engram_gate(const OperatorCall& call) {
    OperatorBody body{
        {"key", "query", "value", "key_norm_scale", "query_norm_scale", "conv_norm_scale"}, {"output", "normed"}, {}};
    add_rms_norm(body, call, "key", "key_norm_scale");
    add_rms_norm(body, call, "query", "query_norm_scale");
    body.add(R"(
        products = Mul(key_normal, query_normal)
        last = Constant<value_ints = [-1]>()
        sum = ReduceSum(products, last)
        size = Cast<to = 1>(key_rows_width)
        root = Sqrt(size)
        dot = Div(sum, root)
        sign = Sign(dot)
        magnitude = Abs(dot)
        least = Constant<value_float: float = 1e-6>()
        held = Max(magnitude, least)
        held_root = Sqrt(held)
        signed = Mul(sign, held_root)
        gate = Sigmoid(signed)
        wide_value = Cast<to = 1>(value)
        branch = Constant<value_ints = [2]>()
        value_row = Unsqueeze(wide_value, branch)
        gated = Mul(gate, value_row)
        output = CastLike(gated, value))");
    if (!call.has_output(1)) return body;
    add_rms_norm(body, call, "gated", "conv_norm_scale");
    body.add("normed = CastLike(gated_normal, value)");
    return body;
}

/// The position, 0 for time, 1 for height or 2 for width, that the angle of each element of a rotation is for.
std::vector<int64_t> position_of_elements(const std::vector<int64_t>& sections, bool is_interleaved) {
    std::vector<int64_t> positions;
    const int64_t size = sections[0] + sections[1] + sections[2];
    for (int64_t i = 0; i < size; ++i) {
        const bool is_height = i % 3 == 1 && i < sections[1] * 3, is_width = i % 3 == 2 && i < sections[2] * 3;
        if (is_interleaved) {
            positions.push_back(is_height ? 1 : is_width ? 2 : 0);
        } else {
            positions.push_back(i < sections[0] ? 0 : i < sections[0] + sections[1] ? 1 : 2);
        }
    }
    return positions;
}

/// A rotary embedding with three positions per token. Each token gets a row of its own in the caches of cosines and
/// sines.
OperatorBody m_rotary_embedding(const OperatorCall& call) {
    OperatorBody body{{"input", "position_ids", "cos_cache", "sin_cache"}, {"output"}, {}};
    call.refuse_flag("is_packed_batching");
    if (const float scale = call.real("scale", 1.0f); scale != 1.0f)
        throw CompileError("attribute scale is {}, expected 1", scale);
    const std::vector<int64_t> sections = call.integers("mrope_section");
    if (sections.size() != 3) throw CompileError("mrope_section has {} values, expected 3", sections.size());
    const int64_t layout = call.integer("mrope_layout", 0);
    if (layout < 0 || layout > 1) throw CompileError("attribute mrope_layout is {}, expected 0 or 1", layout);
    body.add(fmt::format(R"(
        first = Constant<value_int = 0>()
        one = Constant<value_int = 1>()
        axis = Constant<value_ints = [1]>()
        of_elements = Constant<value_ints = [{}]>()
        shape = Shape<start = 1>(position_ids)
        tokens = ReduceProd<keepdims = 0>(shape)
        rows = Range(first, tokens, one)
        places = Reshape(rows, shape)
        any = Constant<value_ints = [-1]>()
        three = Constant<value_ints = [3]>()
        streams_shape = Concat<axis = 0>(three, any)
        streams = Reshape(position_ids, streams_shape)
        by_element = Gather<axis = 0>(streams, of_elements))",
                         fmt::join(position_of_elements(sections, layout == 1), ", ")));
    for (const char* angle : {"cos", "sin"}) {
        body.add(fmt::format(R"(
            {0}_places = Transpose<perm = [1, 0]>(by_element)
            {0}_rows = GatherElements<axis = 0>({0}_cache, {0}_places))",
                             angle));
    }
    body.add(fmt::format("output = com.microsoft.RotaryEmbedding<interleaved = {}, num_heads = {}, "
                         "rotary_embedding_dim = {}>(input, places, cos_rows, sin_rows)",
                         call.integer("interleaved", 0), call.integer("num_heads", 0),
                         call.integer("rotary_embedding_dim", 0)));
    return body;
}

}  // namespace

std::vector<ExpandedOperator> hybrid_expansions() {
    return {
        {microsoft_domain, "BranchwiseRMSNorm", 1, branchwise_rms_norm},
        {microsoft_domain, "EngramGate", 1, engram_gate},
        {microsoft_domain, "GatedAdd", 1, gated_add},
        {microsoft_domain, "GatedRMSNorm", 1, gated_rms_norm},
        {microsoft_domain, "HyperConnectionPostMix", 1, hyper_connection_post_mix},
        {microsoft_domain, "HyperConnectionPreMix", 1, hyper_connection_pre_mix},
        {microsoft_domain, "MRotaryEmbedding", 1, m_rotary_embedding},
        {microsoft_domain, "ScaledSiLU", 1, scaled_silu},
    };
}

}  // namespace onnx2halide
