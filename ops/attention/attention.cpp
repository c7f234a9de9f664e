#include "ops/attention/attention.h"

#include <cmath>
#include <limits>

#include "ops/attention/softmax_matmul.h"
#include "ops/composite_shapes.h"
#include "ops/families.h"

namespace onnx2halide {

namespace {

/// Attention of queries [batch, heads, queries, size] to keys [batch, key heads, keys, size] and their values, where
/// several consecutive heads, a group, may share a key head: softmax(scores) * values, where the scores are
///
///     softcap(queries * keys' * scale) + bias + penalties of masked keys
///
/// and the lowest number for keys after a query's own position.
class Attention {
public:
    explicit Attention(CompositeBuilder& builder) : builder_(builder) {
        for (const Input i : {queries_input, keys_input, values_input}) check_rank(builder, i, 4);
        queries_ = builder.input(queries_input);
        keys_ = builder.input(keys_input);
        const Dim &heads = queries_->type->shape[1], &shared = keys_->type->shape[1];
        if (!heads.constant() || !shared.constant() || shared.is(0) || !floor_mod(heads, *shared.constant()).is(0))
            throw CompileError("{} heads cannot share {} heads of keys", heads.text(), shared.text());
        shared_ = *shared.constant();
        group_ = *heads.constant() / shared_;
        // The only queries of a group are the rows of one product, which reads the shared keys once.
        groups_are_rows_ = queries_->type->shape[2].is(1);
        has_group_axis_ = group_ > 1 && !groups_are_rows_;
    }

    /// [batch, queries, heads * size]
    Value* make() {
        Value* probabilities = builder_.add("probabilities", {"Softmax", 13, {scores()}, {{"axis", int64_t{-1}}}});
        Value* mixed =
            binary("mixed", "MatMul", probabilities, shared_by_group("shared_values", builder_.input(values_input)));
        if (groups_are_rows_) return reshaped(builder_, "rows", mixed, {0, 1, -1});
        const std::vector<int64_t> perm =
            has_group_axis_ ? std::vector<int64_t>{0, 3, 1, 2, 4} : std::vector<int64_t>{0, 2, 1, 3};
        return reshaped(builder_, "rows", builder_.add("mixed_rows", {"Transpose", 13, {mixed}, {{"perm", perm}}}),
                        {0, 0, -1});
    }

private:
    enum Input { queries_input, keys_input, values_input, mask_input, positions_input, bias_input };

    /// [batch, key heads, group, queries, keys], without the axis of groups if it is not needed.
    Value* scores() {
        Value* scores = softcapped(binary("scaled", "Mul", products(), number("scale", scale())));
        if (Value* bias = builder_.optional_input(bias_input)) {
            check_rank(builder_, bias_input, 4);
            scores = binary("biased", "Add", scores, of_groups("biases", bias));
        }
        if (Value* mask = visible_by_mask()) scores = binary("masked", "Add", scores, penalty(mask));
        if (builder_.has_input(positions_input)) scores = chosen("causal", visible_by_position(), scores, lowest());
        return scores;
    }

    Value* products() {
        const std::vector<int64_t> perm =
            has_group_axis_ ? std::vector<int64_t>{0, 1, 2, 4, 3} : std::vector<int64_t>{0, 1, 3, 2};
        Value* columns =
            builder_.add("columns", {"Transpose", 13, {shared_by_group("shared_keys", keys_)}, {{"perm", perm}}});
        return binary("products", "MatMul", of_groups("queries", queries_), columns);
    }

    /// Divides the heads of a tensor [.., heads, queries, elements] into groups; heads may have extent 1, for all.
    Value* of_groups(const std::string& role, Value* x) {
        if (group_ == 1) return x;
        const Dim& heads_of_x = x->checked_type().shape.at(1);
        if (!heads_of_x.constant())
            throw CompileError("the {} have {} heads, expected a number", role, heads_of_x.text());
        const bool has_heads = !heads_of_x.is(1);
        if (groups_are_rows_) return has_heads ? reshaped(builder_, role + "_rows", x, {0, shared_, -1, 0}) : x;
        if (!has_heads) return unsqueezed(builder_, role + "_of_all", x, {1});
        Value* heads = integer_constant(builder_, role + "_heads", {0, shared_, group_});
        Value* rest = builder_.add(role + "_rest", {"Shape", 15, {x}, {{"start", int64_t{2}}}});
        Value* shape = builder_.add(role + "_shape", {"Concat", 13, {heads, rest}, {{"axis", int64_t{0}}}});
        return builder_.add(role + "_of_groups", {"Reshape", 14, {x, shape}});
    }

    /// Keys or values with an axis of extent 1 where queries have a group's heads.
    Value* shared_by_group(const std::string& role, Value* x) {
        return has_group_axis_ ? unsqueezed(builder_, role, x, {2}) : x;
    }

    /// Inserts `axes` of extent 1, of which the first is that of heads, to make a mask [batch, heads, queries, keys].
    Value* over_heads(const std::string& role, Value* mask, std::vector<int64_t> axes) {
        if (has_group_axis_) {
            for (int64_t& axis : axes) ++axis;
            axes.insert(axes.begin(), 1);
        }
        return unsqueezed(builder_, role, mask, axes);
    }

    float scale() const {
        const float given = builder_.node().real("scale", 0.0f);
        if (given != 0.0f) return given;
        const auto size = queries_->type->shape[3].constant();
        if (!size || *size < 1)
            throw CompileError("heads have {} elements, expected a number", queries_->type->shape[3].text());
        return 1.0f / std::sqrt(static_cast<float>(*size));
    }

    Value* softcapped(Value* scores) {
        const float cap = builder_.node().real("softcap", 0.0f);
        if (!(cap > 0.0f)) return scores;
        Value* small = binary("small", "Div", scores, number("cap", cap));
        return binary("capped", "Mul", builder_.add("tanh", {"Tanh", 13, {small}}), number("cap", cap));
    }

    /// Which keys a mask shows, [batch, 1, 1 or queries, keys]; null if the mask has one element for all keys.
    Value* visible_by_mask() {
        Value* mask = builder_.optional_input(mask_input);
        if (!mask) return nullptr;
        const std::vector<Dim>& shape = mask->checked_type().shape;
        if (shape.size() == 1) return visible_by_lengths(mask);
        if (shape.size() != 2 && shape.size() != 3)
            throw CompileError("mask has shape {}, expected 1, 2 or 3 axes", shape_text(shape));
        if (shape.size() == 2 && shape[1].is(1)) return nullptr;
        if (!may_be_equal(shape.back(), keys_->type->shape[2]))
            throw CompileError("mask has shape {}, expected {} keys", shape_text(shape), keys_->type->shape[2].text());
        mask = over_keys(mask);
        Value* shows = mask;
        if (mask->type->element != ElementType::boolean) {
            Value* zero = builder_.add("zero", {"CastLike", 15, {number("zero_real", 0), mask}});
            shows = binary("shown", "Greater", mask, zero);
        }
        return over_heads("visible", shows, shape.size() == 2 ? std::vector<int64_t>{1, 2} : std::vector<int64_t>{1});
    }

    /// Reshapes a mask so that its last axis is the keys'. Otherwise symbols that must be equal would look like a
    /// broadcast to all readers, and scores would be stored and masked by another kernel.
    Value* over_keys(Value* mask) {
        const size_t rank = mask->type->rank();
        if (prove_equal(mask->type->shape.back(), keys_->type->shape[2]) == Proof::yes) return mask;
        Value* kept = integer_constant(builder_, "mask_axes", std::vector<int64_t>(rank - 1, 0));
        Value* keys = builder_.add("keys_count", {"Shape", 15, {keys_}, {{"start", int64_t{2}}, {"end", int64_t{3}}}});
        Value* shape = builder_.add("mask_shape", {"Concat", 13, {kept, keys}, {{"axis", int64_t{0}}}});
        return builder_.add("mask_of_keys", {"Reshape", 14, {mask, shape}});
    }

    /// Which keys are shown by a vector with the number of keys of each batch row and, if it is twice as long, the
    /// first keys.
    Value* visible_by_lengths(Value* mask) {
        const Dim &extent = mask->type->shape[0], &batch = queries_->type->shape[0];
        Value* rows = builder_.add("batch", {"Shape", 15, {queries_}, {{"start", int64_t{0}}, {"end", int64_t{1}}}});
        const auto column = [&](const std::string& role, Value* from, Value* to) {
            Value* numbers = builder_.add(role, {"Slice", 13, {mask, from, to}});
            Value* wide = builder_.add(role + "_wide", cast(numbers, ElementType::int64));
            return over_heads(role + "_column", wide, {1, 2, 3});
        };
        Value* places = key_places();
        Value* ends = column("ends", integer_constant(builder_, "first", {0}), rows);
        Value* visible = binary("before_end", "Less", places, ends);
        if (prove_equal(extent, batch) == Proof::yes) return visible;
        if (prove_equal(extent, batch * 2) != Proof::yes)
            throw CompileError("mask has {} numbers, expected {} or {}", extent.text(), batch.text(),
                               (batch * 2).text());
        Value* all = integer_constant(builder_, "last", {std::numeric_limits<int64_t>::max()});
        Value* after_start = binary("after_start", "GreaterOrEqual", places, column("starts", rows, all));
        return binary("visible", "And", visible, after_start);
    }

    Value* penalty(Value* visible) {
        const float filter = builder_.node().real("mask_filter_value", -10000.0f);
        return chosen("penalty", visible, number("none", 0), number("filter", std::max(filter, lowest_number())));
    }

    /// Shows keys up to a query's position, and at most a window of them.
    Value* visible_by_position() {
        Value* positions = builder_.input(positions_input);
        const std::vector<Dim>& shape = positions->checked_type().shape;
        if (shape.size() != 1 && shape.size() != 2)
            throw CompileError("positions have shape {}, expected 1 or 2 axes", shape_text(shape));
        positions = shape.size() == 1 ? unsqueezed(builder_, "position", positions, {1})
                                      : over_heads("position", positions, {1, 3});
        Value* places = key_places();
        Value* before = binary("before", "LessOrEqual", places, positions);
        const int64_t window = builder_.node().integer("window", 0);
        if (window <= 0) return before;
        Value* width = builder_.constant("window", make_constant(ElementType::int64, {}, std::vector{window}));
        Value* near = binary("near", "Greater", places, binary("behind", "Sub", positions, width));
        return binary("inside", "And", before, near);
    }

    Value* key_places() { return places(builder_, "places", keys_, 2); }

    float lowest_number() const {
        return queries_->type->element == ElementType::float16 ? -65504.0f : std::numeric_limits<float>::lowest();
    }
    Value* lowest() { return number("lowest", lowest_number()); }

    /// A scalar of the queries' type.
    Value* number(const std::string& role, float value) {
        const ElementType element = queries_->type->element;
        Value* real = builder_.constant(role, make_constant(ElementType::float32, {}, std::vector{value}));
        if (element == ElementType::float32) return real;
        return builder_.add(role, cast(real, element));
    }

    Value* binary(const std::string& role, const std::string& type, Value* a, Value* b) {
        return builder_.add(role, {type, type == "LessOrEqual" || type == "GreaterOrEqual" ? 16 : 13, {a, b}});
    }

    Value* chosen(const std::string& role, Value* condition, Value* yes, Value* no) {
        return builder_.add(role, {"Where", 16, {condition, yes, no}});
    }

    CompositeBuilder& builder_;
    Value *queries_, *keys_;
    int64_t shared_, group_;  // the number of key heads, and of heads that share one
    bool groups_are_rows_, has_group_axis_;
};

std::vector<Value*> expand_attention(CompositeBuilder& builder) { return {Attention(builder).make()}; }

/// [batch, sequence, heads * size], plus a bias if there is one, as [batch, heads, sequence, size]. A tensor of rank 4
/// is returned as it is.
std::vector<Value*> expand_heads(CompositeBuilder& builder) {
    Value* x = builder.input(0);
    if (x->checked_type().rank() == 4) return {builder.add("heads", {"Identity", 13, {x}})};
    check_rank(builder, 0, 3);
    const int64_t heads = builder.node().integer("num_heads");
    if (!exact_div(x->type->shape[2], heads))
        throw CompileError("{} elements are not a multiple of {} heads", x->type->shape[2].text(), heads);
    if (Value* bias = builder.optional_input(1)) x = builder.add("biased", {"Add", 14, {x, bias}});
    Value* split = reshaped(builder, "split", x, {0, 0, heads, -1});
    return {builder.add("heads", {"Transpose", 13, {split}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}}})};
}

}  // namespace

std::vector<Operator> attention_operators() {
    std::vector<Operator> rows = rotary_operators();
    for (const Operator& row : append_states_operators()) rows.push_back(row);
    rows.push_back({"Attention", 1, make_composite<expand_attention>, own_domain});
    rows.push_back({"SoftmaxMatMul", 1, make<SoftmaxMatMul>, own_domain});
    rows.push_back({"SplitHeads", 1, make_composite<expand_heads>, own_domain});
    return rows;
}

}  // namespace onnx2halide
