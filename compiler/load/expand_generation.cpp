#include <fmt/format.h>

#include "compiler/load/expansion.h"

namespace onnx2halide {

namespace {

/// Bans every token that would complete an n-gram of `ngram_size` tokens which the sequence already contains: its score
/// becomes -inf.
OperatorBody ngram_repeat_block(const OperatorCall& call) {
    OperatorBody body{{"input_ids", "scores"}, {"scores_out"}, {}};
    const int64_t size = call.count("ngram_size");
    body.add(fmt::format(R"(
        row = Constant<value_ints = [1]>()
        none = Constant<value_ints = [0]>()
        before = Constant<value_ints = [{}]>()
        all = Constant<value_ints = [{}]>()
        length = Shape<start = 1, end = 2>(input_ids)
        runs_or_less = Sub(length, before)
        runs = Max(runs_or_less, none)
        ends = Slice(input_ids, before, all, row)
        same_0 = Equal(ends, ends))",
                         size - 1, INT64_MAX));
    for (int64_t i = 1; i < size; ++i) {
        body.add(fmt::format(R"(
            first_{0} = Constant<value_ints = [{1}]>()
            end_{0} = Add(runs, first_{0})
            at_{0} = Slice(input_ids, first_{0}, end_{0}, row)
            back_{0} = Constant<value_ints = [{2}]>()
            behind_{0} = Constant<value_ints = [{3}]>()
            last_{0} = Slice(input_ids, back_{0}, behind_{0}, row)
            equal_{0} = Equal(at_{0}, last_{0})
            same_{0} = And(same_{4}, equal_{0}))",
                             i, i - 1, i - size, i + 1 < size ? i - size + 1 : INT64_MAX, i - 1));
    }
    body.add(fmt::format(R"(
        unlimited = Constant<value_float = 3.402823466e38>()
        twice = Add(unlimited, unlimited)
        infinite = CastLike(twice, scores)
        banned = Neg(infinite)
        limits = Where(same_{}, banned, infinite)
        scores_out = ScatterElements<axis = 1, reduction = "min">(scores, ends, limits))",
                         size - 1));
    return body;
}

}  // namespace

std::vector<ExpandedOperator> generation_expansions() {
    return {{microsoft_domain, "NGramRepeatBlock", 1, ngram_repeat_block}};
}

}  // namespace onnx2halide
