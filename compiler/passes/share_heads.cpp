#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/passes/match.h"
#include "compiler/passes/node_replacement.h"
#include "compiler/passes/passes.h"
#include "ops/node_generator.h"

namespace onnx2halide {

namespace {

/// Heads [batch, shared, 1, rows, columns], each of which is repeated for a group: [batch, shared * group, rows,
/// columns].
struct RepeatedHeads {
    Value* heads;
    bool is_transposed;  // after they are repeated
    int64_t shared, group;
};

/// The matrices [batch, heads, rows, columns] that a value has transposed; null if it is something else. PyTorch's
/// newer exporter makes one axis of batch and heads meanwhile.
const Value* transposed_matrices(const Value& value) {
    const auto made_by = [](const Value& result, std::string_view type) {
        return result.producer && is_operator(*result.producer, type) ? result.producer : nullptr;
    };
    const Node* apart = made_by(value, "Reshape");
    const Node* transpose = made_by(apart ? *apart->inputs[0] : value, "Transpose");
    if (!transpose) return nullptr;
    const std::vector<int64_t> perm = transpose->integers("perm", {});
    if (!apart) return perm == std::vector<int64_t>{0, 1, 3, 2} ? transpose->inputs[0] : nullptr;
    const Node* joined = made_by(*transpose->inputs[0], "Reshape");
    if (!joined || perm != std::vector<int64_t>{0, 2, 1}) return nullptr;
    const Value* matrices = joined->inputs[0];
    std::vector<Dim> shape = matrices->checked_type().shape, batch = joined->outputs[0]->checked_type().shape;
    if (shape.size() != 4 || !std::equal(shape.begin() + 2, shape.end(), batch.begin() + 1)) return nullptr;
    std::swap(shape[2], shape[3]);
    return value.checked_type().shape == shape ? matrices : nullptr;
}

/// What an operand of a product repeats; nullopt if it is something else.
std::optional<RepeatedHeads> repeated_heads(const Value& operand) {
    const Value* transposed = transposed_matrices(operand);
    const bool is_transposed = transposed != nullptr;
    const Node* node = (transposed ? transposed : &operand)->producer;
    if (!node || !is_operator(*node, "Reshape")) return {};
    const Node* expand = node->inputs[0]->producer;
    if (!expand || !is_operator(*expand, "Expand")) return {};
    const std::vector<Dim>&own = expand->inputs[0]->checked_type().shape,
          &apart = expand->outputs[0]->checked_type().shape, &whole = node->outputs[0]->checked_type().shape;
    if (own.size() != 5 || apart.size() != 5 || whole.size() != 4 || !own[2].is(1)) return {};
    const auto shared = own[1].constant(), group = apart[2].constant();
    if (!shared || !group || *group < 2 || !whole[1].is(*shared * *group)) return {};
    for (const size_t axis : {0, 1, 3, 4}) {
        if (own[axis] != apart[axis]) return {};
        if (axis != 1 && apart[axis] != whole[axis < 1 ? axis : axis - 1]) return {};
    }
    return RepeatedHeads{expand->inputs[0], is_transposed, *shared, *group};
}

/// Whether a node computes each score by itself, or normalises rows of scores.
bool keeps_scores_apart(const Node& node) {
    if (node.outputs.size() != 1) return false;
    if (is_operator(node, "Softmax")) {
        const int64_t axis = node.integer("axis", node.version < 13 ? 1 : -1);
        return axis == -1 || axis == 3;
    }
    const auto generator = make_generator(node);
    return generator->is_pointwise() && !generator->has_own_axis();
}

/// Attention whose queries' heads share heads of keys and values in groups. Its nodes are written anew with an axis of
/// shared heads and one of a group's heads, so that the products read keys and values themselves. A group's only
/// queries become the rows of one product instead.
class GroupedAttention {
public:
    /// `mix` multiplies probabilities and values.
    GroupedAttention(Graph& graph, Node& mix, const RepeatedHeads& values)
        : graph_(graph), mix_(mix), values_(values), scores_(mix.inputs[0]->checked_type().shape),
          replacement_(graph, mix) {}

    /// Finds the nodes from the product of queries and keys on. Returns whether all of them can be written anew.
    bool find() {
        if (scores_.size() != 4 || !follows_scores(mix_.inputs[0])) return false;
        const auto is_internal = [this](const Node* node) {
            return std::ranges::all_of(node->outputs[0]->consumers,
                                       [this](const Node* reader) {
                                           return reader == &mix_ || std::ranges::find(steps_, reader) != steps_.end();
                                       }) &&
                   !graph_.is_output(node->outputs[0]);
        };
        const auto fits = [this](const Node* node) {
            return std::ranges::all_of(node->inputs, [this](const Value* input) { return !input || grouped(*input); });
        };
        return is_internal(product_) && std::ranges::all_of(steps_, is_internal) && std::ranges::all_of(steps_, fits);
    }

    void write() {
        written_[product_->outputs[0]] = multiply(in_groups(product_->inputs[0]), *keys_);
        for (const Node* step : steps_) {
            NewNode copy{step->op_type, step->version, {}, step->attributes, step->domain};
            for (Value* input : step->inputs) copy.inputs.push_back(in_groups(input));
            if (is_operator(*step, "Softmax")) copy.attributes["axis"] = int64_t{-1};
            written_[step->outputs[0]] = replacement_.add(copy);
        }
        put(multiply(in_groups(mix_.inputs[0]), values_));
    }

private:
    int64_t heads() const { return values_.shared * values_.group; }
    bool groups_are_rows() const { return scores_[2].is(1); }

    bool has_heads(const Value& value) const {
        const std::vector<Dim>& shape = value.checked_type().shape;
        return shape.size() == 4 && shape[1].is(heads()) && (!groups_are_rows() || shape[2].is(1));
    }

    /// Whether a value depends on the scores, element by element or row by row; collects the nodes between.
    bool follows_scores(const Value* value) {
        const Node* node = value ? value->producer : nullptr;
        if (!node || !has_heads(*value)) return false;
        if (node == product_ || std::ranges::find(steps_, node) != steps_.end()) return true;
        if (is_operator(*node, "MatMul")) {
            const auto keys = repeated_heads(*node->inputs[1]);
            if (product_ || !keys || keys->shared != values_.shared || keys->group != values_.group) return false;
            if (!has_heads(*node->inputs[0])) return false;
            keys_ = keys;
            product_ = node;
            return true;
        }
        if (!keeps_scores_apart(*node)) return false;
        const auto count = std::ranges::count_if(node->inputs, [this](Value* input) { return follows_scores(input); });
        if (count > 0) steps_.push_back(node);
        return count > 0;
    }

    /// The shape of a tensor that broadcasts to [batch, heads, queries, columns], with its heads in groups; nullopt if
    /// it has another number of heads.
    std::optional<std::vector<Dim>> grouped(const Value& value) const {
        std::vector<Dim> shape = value.checked_type().shape;
        if (shape.size() < 3) return shape;
        const auto of_heads = shape.end() - 3;
        const bool is_one_for_all = of_heads->is(1);
        if (!is_one_for_all && !of_heads->is(heads())) return {};
        if (groups_are_rows()) {
            if (!of_heads[1].is(1)) return {};
            if (is_one_for_all) return shape;
            of_heads[0] = values_.shared;
            of_heads[1] = values_.group;
        } else if (!is_one_for_all) {
            *of_heads = values_.group;
            shape.insert(shape.end() - 3, values_.shared);
        } else if (shape.size() == 4) {
            shape.insert(shape.begin() + 1, 1);
        }
        return shape;
    }

    /// The value written anew that replaces one, or a view of one that is computed elsewhere.
    Value* in_groups(Value* value) {
        if (!value) return nullptr;
        if (const auto found = written_.find(value); found != written_.end()) return found->second;
        const std::vector<Dim> shape = *grouped(*value);
        if (shape == value->checked_type().shape) return value;
        return replacement_.add(view(value, TensorType(value->checked_type().element, shape)));
    }

    Value* multiply(Value* left, const RepeatedHeads& repeated) {
        Value* right = repeated.heads;
        std::vector<Dim> shape = right->checked_type().shape;
        std::vector<int64_t> transposed = {0, 1, 2, 4, 3};
        if (groups_are_rows()) {
            shape.erase(shape.begin() + 2);
            transposed = {0, 1, 3, 2};
            right = replacement_.add(view(right, TensorType(right->checked_type().element, shape)));
        }
        if (repeated.is_transposed) right = replacement_.add("Transpose", 13, {right}, {{"perm", transposed}});
        return replacement_.add("MatMul", 13, {left, right});
    }

    /// Replaces the result of attention. If a Transpose puts the heads of each query side by side, that is done here,
    /// where the product's kernel can do it.
    void put(Value* result) {
        Value* output = mix_.outputs[0];
        const Node* reader = output->consumers.size() == 1 ? output->consumers[0] : nullptr;
        const bool is_transposed = reader && is_operator(*reader, "Transpose") && !graph_.is_output(output) &&
                                   reader->integers("perm", {}) == std::vector<int64_t>{0, 2, 1, 3};
        if (is_transposed) {
            output = reader->outputs[0];
            const std::vector<int64_t> order = {0, 3, 1, 2, 4};
            if (!groups_are_rows()) result = replacement_.add("Transpose", 13, {result}, {{"perm", order}});
        }
        replacement_.replace(output, replacement_.add(view(result, output->checked_type())));
    }

    Graph& graph_;
    Node& mix_;
    const RepeatedHeads values_;
    const std::vector<Dim> scores_;  // [batch, heads, queries, keys]
    NodeReplacement replacement_;
    const Node* product_ = nullptr;  // of queries and keys
    std::optional<RepeatedHeads> keys_;
    std::vector<const Node*> steps_;  // from the scores to the probabilities
    std::map<const Value*, Value*> written_;
};

}  // namespace

void share_heads(Graph& graph) {
    bool is_any = false;
    for (Node* node : graph.snapshot()) {
        if (!is_operator(*node, "MatMul")) continue;
        const auto values = repeated_heads(*node->inputs[1]);
        if (!values) continue;
        GroupedAttention attention(graph, *node, *values);
        if (!attention.find()) continue;
        attention.write();
        is_any = true;
    }
    if (is_any) prune(graph);
}

}  // namespace onnx2halide
