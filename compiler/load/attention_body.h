#pragma once

#include "compiler/load/expansion.h"

namespace onnx2halide {

/// The body of an attention operator, with what they share: queries, keys and values become heads, `q`, `k` and `v`
/// [batch, heads, sequence, size]; keys and values follow those of the past, as `keys` and `values`; the probabilities
/// that the queries' scores make weigh the values.
class AttentionBody {
public:
    AttentionBody(const OperatorCall& call, std::vector<std::string> inputs, std::vector<std::string> outputs);

    void add(std::string_view text) { body_.add(text); }
    bool has_input(std::string_view formal) const;
    bool has_output(std::string_view formal) const;
    void refuse_inputs(std::initializer_list<std::string_view> formals) const;
    void refuse_outputs(std::initializer_list<std::string_view> formals) const;
    void refuse_flags(std::initializer_list<std::string_view> attributes) const;

    /// `result`, the heads of a tensor [batch, sequence, heads * size].
    void add_heads(std::string_view result, std::string_view x, int64_t heads);
    /// `result`, a past [batch, heads, places, size] with what follows it; `past` may be empty.
    void add_states(std::string_view result, std::string_view past, std::string_view x);
    /// `positions` of the queries among the keys, of which those of the past come first.
    void add_positions();
    /// `scores` of `q` and `keys`. Formal names may be empty.
    struct Masks {
        std::string_view mask, positions, bias;
        int64_t window = 0;  // keys up to its position that a query sees; 0: all
    };
    void add_scores(const Masks& masks);
    /// `result` [batch, sequence, heads * size] from `scores` and `values`.
    void add_result(std::string_view result, int64_t heads, int64_t heads_of_values);

    OperatorBody body() && { return std::move(body_); }

private:
    const OperatorCall& call_;
    OperatorBody body_;
};

}  // namespace onnx2halide
