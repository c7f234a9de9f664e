#pragma once

#include "compiler/load/expansion.h"

namespace onnx2halide {

/// Builds the body of an attention operator from the parts that these share: queries, keys and values are split into
/// heads, `q`, `k` and `v` [batch, heads, sequence, size]; `keys` and `values` are those of the past followed by the
/// new ones; the softmax of the scores weighs the values.
class AttentionBody {
public:
    AttentionBody(const OperatorCall& call, std::vector<std::string> inputs, std::vector<std::string> outputs);

    void add(std::string_view text) { body_.add(text); }
    bool has_input(std::string_view formal) const;
    bool has_output(std::string_view formal) const;
    void refuse_inputs(std::initializer_list<std::string_view> formals) const;
    void refuse_outputs(std::initializer_list<std::string_view> formals) const;
    void refuse_flags(std::initializer_list<std::string_view> attributes) const;

    /// Defines `result`, the heads of a tensor x [batch, sequence, heads * size] plus a bias [heads * size], whose name
    /// may be empty. An x that has already been split into heads stays as it is, without bias.
    void add_heads(std::string_view result, std::string_view x, int64_t heads, std::string_view bias = "");
    /// Defines `result`, a past [batch, heads, sequence, size] followed by x; the name `past` may be empty.
    void add_states(std::string_view result, std::string_view past, std::string_view x);
    /// Defines `positions`, those of the queries among all keys, past ones included.
    void add_positions();
    /// The operands that mask scores, by formal name, empty where there is none.
    struct Masks {
        std::string_view mask, positions, bias;
        int64_t window = 0;  // the number of keys, up to its own position, that a query sees; 0: all
    };
    /// Defines `result` [batch, sequence, heads * size], the attention of `q` to `keys` and `values`.
    void add_attention(std::string_view result, const Masks& masks);

    OperatorBody body() && { return std::move(body_); }

private:
    const OperatorCall& call_;
    OperatorBody body_;
};

}  // namespace onnx2halide
