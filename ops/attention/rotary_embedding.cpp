#include "ops/attention/attention.h"
#include "ops/composite_shapes.h"

namespace onnx2halide {

namespace {

/// Rotates pairs of elements of each head, [batch, sequence, heads * size] or [batch, heads, sequence, size], by the
/// angle of its position. The pairs are adjacent if they are interleaved; else one of each half.
class RotaryEmbedding {
public:
    explicit RotaryEmbedding(CompositeBuilder& builder)
        : builder_(builder), node_(builder.node()), x_(builder.input(0)),
          is_interleaved_(node_.integer("interleaved", 0) != 0) {
        if (node_.integer("is_packed_batching", 0) != 0)
            throw CompileError("attribute is_packed_batching is {}, which is not supported",
                               node_.integer("is_packed_batching"));
        check_rank(builder, 2, 2);
        check_rank(builder, 3, 2);
        if (x_->checked_type().rank() != 4) check_rank(builder, 0, 3);
    }

    Value* make() {
        const bool has_head_axis = x_->type->rank() == 4;
        Value* heads = has_head_axis ? x_ : reshaped(builder_, "heads", x_, {0, 0, -1, head_size()});
        const auto size = heads->type->shape[3].constant();
        const int64_t rotated = rotated_size();
        if (!size || rotated > *size)
            throw CompileError("rotates {} elements of heads that have {}", rotated, heads->type->shape[3].text());
        Value* turned = joined("turned", halves_turned(heads, rotated, has_head_axis), rotated);
        if (rotated < *size) {
            Value* rest = part(builder_, "rest", heads, 3, rotated, *size);
            turned = builder_.add("whole", {"Concat", 13, {turned, rest}, {{"axis", int64_t{3}}}});
        }
        if (has_head_axis) return turned;
        return reshaped(builder_, "rows", turned, {0, 0, -1});
    }

private:
    /// Elements of a head that are rotated: two per angle.
    int64_t rotated_size() const {
        const auto angles = builder_.input(2)->checked_type().shape[1].constant();
        if (!angles || *angles < 1)
            throw CompileError("cos_cache has shape {}, expected a number of angles",
                               shape_text(builder_.input(2)->type->shape));
        const int64_t given = node_.integer("rotary_embedding_dim", 0);
        if (given > 0 && given != *angles * 2)
            throw CompileError("rotary_embedding_dim is {}, expected {}, twice cos_cache's angles", given, *angles * 2);
        return *angles * 2;
    }

    int64_t head_size() const {
        const int64_t heads = node_.integer("num_heads", 0);
        if (heads < 1) return rotated_size();
        const auto size = exact_div(x_->type->shape[2], heads);
        if (!size || !size->constant())
            throw CompileError("{} elements are not a multiple of {} heads", x_->type->shape[2].text(), heads);
        return *size->constant();
    }

    /// The two elements of every pair, rotated.
    std::pair<Value*, Value*> halves_turned(Value* heads, int64_t rotated, bool has_head_axis) {
        const auto [left, right] = halves(part(builder_, "rotated", heads, 3, 0, rotated), rotated);
        Value *cos = of_positions("cos", 2, has_head_axis), *sin = of_positions("sin", 3, has_head_axis);
        const auto product = [&](const char* role, Value* a, Value* b) {
            return builder_.add(role, {"Mul", 14, {a, b}});
        };
        return {builder_.add("left_turned",
                             {"Sub", 14, {product("left_cos", left, cos), product("right_sin", right, sin)}}),
                builder_.add("right_turned",
                             {"Add", 14, {product("right_cos", right, cos), product("left_sin", left, sin)}})};
    }

    std::pair<Value*, Value*> halves(Value* x, int64_t extent) {
        if (!is_interleaved_)
            return {part(builder_, "left", x, 3, 0, extent / 2), part(builder_, "right", x, 3, extent / 2, extent)};
        return {every_second("left", x, 0), every_second("right", x, 1)};
    }

    Value* every_second(const std::string& role, Value* x, int64_t first) {
        const auto number = [&](const char* name, int64_t value) {
            return integer_constant(builder_, role + name, {value});
        };
        const std::vector<Value*> inputs = {x, number("_start", first),
                                            number("_end", x->type->shape[3].constant().value()), number("_axis", 3),
                                            number("_step", 2)};
        return builder_.add(role, {"Slice", 13, inputs});
    }

    Value* joined(const std::string& role, std::pair<Value*, Value*> halves, int64_t rotated) {
        auto [left, right] = halves;
        if (is_interleaved_) {
            left = unsqueezed(builder_, "left_column", left, {4});
            right = unsqueezed(builder_, "right_column", right, {4});
        }
        const int64_t axis = is_interleaved_ ? 4 : 3;
        Value* both = builder_.add(role, {"Concat", 13, {left, right}, {{"axis", axis}}});
        return is_interleaved_ ? reshaped(builder_, "interleaved", both, {0, 0, 0, rotated}) : both;
    }

    /// A cache's rows at the positions, broadcast to the heads. A single position id is the first position of every row
    /// of the batch.
    Value* of_positions(const std::string& role, size_t cache, bool has_head_axis) {
        Value* positions = builder_.input(1);
        const std::vector<Dim>& shape = positions->checked_type().shape;
        if (shape.size() != 1 && shape.size() != 2)
            throw CompileError("position_ids have shape {}, expected 1 or 2 axes", shape_text(shape));
        if (shape.size() == 1) {
            Value* steps = places(builder_, role + "_steps", x_, has_head_axis ? 2 : 1);
            positions = builder_.add(role + "_positions", {"Add", 14, {positions, steps}});
        }
        Value* rows =
            builder_.add(role + "_rows", {"Gather", 13, {builder_.input(cache), positions}, {{"axis", int64_t{0}}}});
        const int64_t batch_axes = shape.size() == 1 ? 0 : 1;
        return unsqueezed(builder_, role, rows, {has_head_axis ? batch_axes : batch_axes + 1});
    }

    CompositeBuilder& builder_;
    const Node& node_;
    Value* x_;
    bool is_interleaved_;
};

std::vector<Value*> expand_rotary(CompositeBuilder& builder) { return {RotaryEmbedding(builder).make()}; }

}  // namespace

std::vector<Operator> rotary_operators() {
    return {{"RotaryEmbedding", 1, make_composite<expand_rotary>, microsoft_domain}};
}

}  // namespace onnx2halide
