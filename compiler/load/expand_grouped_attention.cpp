#include <fmt/format.h>

#include "compiler/graph/error.h"
#include "compiler/load/attention_body.h"

namespace onnx2halide {

namespace {

/// Attention in which groups of heads share keys and values. Each row of the batch has a length of its own: seqlens_k
/// is the number of its keys, new ones included, minus one.
class GroupedAttention {
public:
    explicit GroupedAttention(const OperatorCall& call)
        : call_(call), heads_(call.count("num_heads")), shared_(call.count("kv_num_heads")),
          body_(call,
                {"query", "key", "value", "past_key", "past_value", "seqlens_k", "total_sequence_length", "cos_cache",
                 "sin_cache", "position_ids", "attention_bias", "head_sink", "k_scale", "v_scale", "q_norm_weight",
                 "k_norm_weight"},
                {"output", "present_key", "present_value", "output_qk"}) {
        if (heads_ % shared_ != 0)
            throw CompileError("attribute num_heads is {}, expected a multiple of kv_num_heads, {}", heads_, shared_);
        body_.refuse_inputs({"head_sink", "k_scale", "v_scale", "q_norm_weight", "k_norm_weight"});
        body_.refuse_outputs({"output_qk"});
        body_.refuse_flags({"smooth_softmax", "qk_output", "kv_cache_bit_width", "sliding_window_cache"});
        for (const char* name : {"k_quant_type", "v_quant_type"}) {
            const std::string type = call.string(name, "NONE");
            if (type != "NONE") throw CompileError("attribute {} is '{}', expected NONE", name, type);
        }
        if (call.integer("causal", 1) == 0) throw CompileError("attribute causal is 0, which is not supported");
    }

    OperatorBody expand() && {
        add_heads();
        add_lengths();
        if (call_.integer("do_rotary", 0) != 0) add_rotation();
        add_keys_and_values();
        AttentionBody::Masks masks{"", "positions", body_.has_input("attention_bias") ? "attention_bias" : ""};
        masks.window = call_.integer("local_window_size", -1);
        body_.add_attention("output", masks);
        return std::move(body_).body();
    }

private:
    /// Defines `raw_q`, `raw_k` and `v`, from separate inputs or from one that packs the heads of all.
    void add_heads() {
        if (body_.has_input("key")) {
            body_.add_heads("raw_q", "query", heads_);
            body_.add_heads("raw_k", "key", shared_);
            body_.add_heads("v", "value", shared_);
            return;
        }
        body_.add_heads("packed", "query", heads_ + 2 * shared_);
        body_.add(fmt::format(R"(
            counts = Constant<value_ints = [{0}, {1}, {1}]>()
            raw_q, raw_k, v = Split<axis = 1>(packed, counts))",
                              heads_, shared_));
    }

    /// Defines `lengths`, the number of past keys of each row of the batch, and `positions`, those of its queries. If
    /// all keys are new, there are no past ones, whatever the row's length.
    void add_lengths() {
        body_.add(R"(
            flat = Constant<value_ints = [-1]>()
            last_keys = Reshape(seqlens_k, flat)
            last_wide = Cast<to = 7>(last_keys)
            one = Constant<value_int = 1>()
            zero = Constant<value_int = 0>()
            ends = Add(last_wide, one)
            query_count = Shape<start = 2, end = 3>(raw_q)
            queries = Squeeze(query_count)
            starts = Sub(ends, queries)
            total_scalar = Squeeze(total_sequence_length)
            total = Cast<to = 7>(total_scalar)
            is_first = Equal(total, queries)
            lengths = Where(is_first, zero, starts)
            column = Constant<value_ints = [1]>()
            lengths_column = Unsqueeze(lengths, column)
            steps = Range(zero, queries, one)
            positions = Add(lengths_column, steps))");
    }

    void add_rotation() {
        for (const char* name : {"q", "k"}) {
            body_.add(fmt::format(
                "{0} = com.microsoft.RotaryEmbedding<interleaved = {1}>(raw_{0}, {2}, cos_cache, sin_cache)", name,
                call_.integer("rotary_interleaved", 0),
                body_.has_input("position_ids") ? "position_ids" : "positions"));
        }
    }

    void add_keys_and_values() {
        const bool is_rotated = call_.integer("do_rotary", 0) != 0;
        if (!is_rotated) body_.add("q = Identity(raw_q)");
        add_states("keys", "past_key", is_rotated ? "k" : "raw_k", "present_key");
        add_states("values", "past_value", "v", "present_value");
    }

    /// Defines `present`, and `result` without the places that no row of the batch has filled yet.
    void add_states(std::string_view result, std::string_view past, std::string_view added, std::string_view present) {
        const bool has_past = body_.has_input(past);
        const std::string all = has_past ? fmt::format("{}_places", result) : std::string(added);
        if (has_past) body_.add(fmt::format("{} = onnx2halide.AppendStates({}, {}, lengths, total)", all, past, added));
        body_.add(has_past ? fmt::format("{} = onnx2halide.FirstStates({}, total)", result, all)
                           : fmt::format("{} = Identity({})", result, all));
        if (body_.has_output(present)) body_.add(fmt::format("{} = Identity({})", present, all));
    }

    const OperatorCall& call_;
    int64_t heads_, shared_;
    AttentionBody body_;
};

OperatorBody group_query_attention(const OperatorCall& call) { return GroupedAttention(call).expand(); }

}  // namespace

std::vector<ExpandedOperator> grouped_attention_expansions() {
    return {{microsoft_domain, "GroupQueryAttention", 1, group_query_attention}};
}

}  // namespace onnx2halide
