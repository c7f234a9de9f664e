#include <fmt/format.h>

#include "compiler/load/expansion.h"

namespace onnx2halide {

namespace {

/// The attributes of LayerNormalization and RMSNormalization.
std::string attributes_of_layer(const OperatorCall& call, float epsilon = 1e-5f) {
    return fmt::format("<axis = {}, epsilon: float = {}, stash_type = {}>", call.integer("axis", -1),
                       call.real("epsilon", epsilon), call.integer("stash_type", 1));
}

OperatorBody layer_normalization(const OperatorCall& call) {
    OperatorBody body{{"x", "scale", "bias"}, {"y", "mean", "inv_std_dev"}, {}};
    const char* results = call.has_output(1) || call.has_output(2) ? "y, mean, inv_std_dev" : "y";
    body.add(fmt::format("{} = LayerNormalization{}(x, scale, bias)", results, attributes_of_layer(call)));
    return body;
}

OperatorBody simplified_layer_normalization(const OperatorCall& call) {
    call.refuse_output(1, "inv_std_var");
    OperatorBody body{{"x", "scale"}, {"y", "inv_std_var"}, {}};
    body.add(fmt::format("y = RMSNormalization{}(x, scale)", attributes_of_layer(call)));
    return body;
}

/// Defines `sum`, that of the input, the skip connection and the bias.
void add_skip_sum(OperatorBody& body, const OperatorCall& call, int bias) {
    call.refuse_output(1, "mean");
    call.refuse_output(2, "inv_std_var");
    if (call.has_input(bias)) {
        body.add("biased = Add(input, bias)");
        body.add("sum = Add(biased, skip)");
    } else {
        body.add("sum = Add(input, skip)");
    }
}

constexpr float skip_epsilon = 1e-12f;

OperatorBody skip_layer_normalization(const OperatorCall& call) {
    OperatorBody body{{"input", "skip", "gamma", "beta", "bias"}, {"output", "mean", "inv_std_var", "sum"}, {}};
    add_skip_sum(body, call, 4);
    body.add(fmt::format("output = LayerNormalization<epsilon: float = {}>(sum, gamma, beta)",
                         call.real("epsilon", skip_epsilon)));
    return body;
}

OperatorBody skip_simplified_layer_normalization(const OperatorCall& call) {
    OperatorBody body{{"input", "skip", "gamma", "bias"}, {"output", "mean", "inv_std_var", "sum"}, {}};
    add_skip_sum(body, call, 3);
    body.add(
        fmt::format("output = RMSNormalization<epsilon: float = {}>(sum, gamma)", call.real("epsilon", skip_epsilon)));
    return body;
}

/// Adds embeddings of words, positions and, with `segment_ids`, segments, and standardises the sum. Without
/// `position_ids`, positions are counted from 0. The parameters must be floats.
void add_embedding(OperatorBody& body, const OperatorCall& call, bool has_positions) {
    body.add("words = Gather<axis = 0>(word_embedding, input_ids)");
    if (has_positions) {
        body.add("positions = Gather<axis = 0>(position_embedding, position_ids)");
    } else {
        body.add(R"(
            first = Constant<value_ints = [0]>()
            length = Shape<start = 1, end = 2>(input_ids)
            positions = Slice(position_embedding, first, length, first))");
    }
    if (call.has_input(1)) {
        body.add(R"(
            placed = Add(words, positions)
            segments = Gather<axis = 0>(segment_embedding, segment_ids)
            embedding_sum = Add(placed, segments))");
    } else {
        body.add("embedding_sum = Add(words, positions)");
    }
    body.add(fmt::format("output = LayerNormalization<epsilon: float = {}>(embedding_sum, gamma, beta)",
                         call.real("epsilon", skip_epsilon)));
    if (!call.has_output(1)) return;
    if (call.has_input(7)) {
        body.add(R"(
            one = Constant<value_int = 1>()
            mark = CastLike(one, mask)
            is_marked = Equal(mask, mark)
            marks = CastLike(is_marked, mask)
            row = Constant<value_ints = [1]>()
            mask_index = ReduceSum<keepdims = 0>(marks, row))");
    } else {
        body.add(R"(
            zero = Constant<value_int = 0>()
            no_marks = CastLike(zero, input_ids)
            batch = Shape<start = 0, end = 1>(input_ids)
            mask_index = Expand(no_marks, batch))");
    }
}

OperatorBody embed_layer_normalization(const OperatorCall& call) {
    OperatorBody body{{"input_ids", "segment_ids", "word_embedding", "position_embedding", "segment_embedding", "gamma",
                       "beta", "mask", "position_ids"},
                      {"output", "mask_index", "embedding_sum"},
                      {}};
    add_embedding(body, call, call.has_input(8));
    return body;
}

/// The same with 8-bit parameters, each with a scale and a zero point.
OperatorBody quantised_embed_layer_normalization(const OperatorCall& call) {
    OperatorBody body{{"input_ids", "segment_ids"}, {"output", "mask_index"}, {}};
    const std::vector<std::string> parameters = {"word_embedding", "position_embedding", "segment_embedding", "gamma",
                                                 "beta"};
    for (const std::string_view ending : {"_bytes", "_scale", "_zero"}) {
        for (const std::string& name : parameters) body.inputs.push_back(fmt::format("{}{}", name, ending));
        if (ending == "_bytes") body.inputs.push_back("mask");
    }
    for (size_t i = 0; i < parameters.size(); ++i) {
        if (call.has_input(static_cast<int>(i) + 2))
            body.add(fmt::format("{0} = DequantizeLinear({0}_bytes, {0}_scale, {0}_zero)", parameters[i]));
    }
    add_embedding(body, call, false);
    return body;
}

/// GroupNormalization before opset 21, with a scale and a bias per group rather than per channel.
OperatorBody group_normalization(const OperatorCall& call) {
    OperatorBody body{{"x", "scale", "bias"}, {"y"}, {}};
    body.add(R"(
        channels = Shape<start = 1, end = 2>(x)
        groups = Shape(scale)
        channels_of_group = Div(channels, groups)
        both = Concat<axis = 0>(groups, channels_of_group)
        one = Constant<value_ints = [1]>()
        row = Constant<value_ints = [-1]>())");
    for (const std::string_view operand : {"scale", "bias"}) {
        body.add(fmt::format(R"(
            {0}_column = Unsqueeze({0}, one)
            {0}_matrix = Expand({0}_column, both)
            {0}_of_channels = Reshape({0}_matrix, row))",
                             operand));
    }
    body.add(fmt::format("y = GroupNormalization{}(x, scale_of_channels, bias_of_channels)",
                         call.passed_on({"epsilon", "num_groups"})));
    return body;
}

}  // namespace

std::vector<ExpandedOperator> normalisation_expansions() {
    return {
        {microsoft_domain, "GroupNormalization", 1, group_normalization},
        {microsoft_domain, "EmbedLayerNormalization", 1, embed_layer_normalization},
        {microsoft_domain, "LayerNormalization", 1, layer_normalization},
        {microsoft_domain, "QEmbedLayerNormalization", 1, quantised_embed_layer_normalization},
        {microsoft_domain, "SimplifiedLayerNormalization", 1, simplified_layer_normalization},
        {microsoft_domain, "SkipLayerNormalization", 1, skip_layer_normalization},
        {microsoft_domain, "SkipSimplifiedLayerNormalization", 1, skip_simplified_layer_normalization},
    };
}

}  // namespace onnx2halide
