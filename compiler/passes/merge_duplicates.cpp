#include <optional>
#include <string_view>
#include <type_traits>
#include <unordered_map>

#include "compiler/passes/constants.h"
#include "compiler/passes/passes.h"

namespace onnx2halide {

namespace {

/// The largest constant, in bytes, whose elements are compared.
constexpr size_t most_bytes = 4096;

/// Serialises values so that equal sequences of values have equal texts.
class Key {
public:
    void add(std::string_view text) {
        add(text.size());
        text_ += text;
    }
    template <typename T>
    requires std::is_arithmetic_v<T> || std::is_enum_v<T> || std::is_pointer_v<T>
    void add(T number) { text_.append(reinterpret_cast<const char*>(&number), sizeof number); }
    template <typename T>
    void add(const std::vector<T>& list) {
        add(list.size());
        for (const T& element : list) add(element);
    }
    void add(const std::string& text) { add(std::string_view(text)); }
    void add(const Constant& constant) {
        add_type(constant);
        add(std::string_view(reinterpret_cast<const char*>(constant.data->data()), constant.data->size()));
    }
    /// Adds which bytes a constant holds: views of one constant share them.
    void add_bytes_of(const Constant& constant) {
        add_type(constant);
        add(constant.data.get());
    }
    const std::string& text() const { return text_; }

private:
    std::string text_;

    void add_type(const Constant& constant) {
        add(constant.element);
        add(constant.shape);
        add(constant.strings);
    }
};

/// Adds the elements of a value if they are known and few, else its identity.
void add_value(Key& key, const Value* value) {
    const bool is_constant =
        value && value->constant && value->constant->data && value->type == value->constant->type();
    const bool is_small = is_constant && value->constant->data->size() <= most_bytes;
    const bool is_known = value && value->known;
    key.add(is_small ? 'c' : is_constant ? 'b' : is_known ? 'k' : 'v');
    if (is_small) {
        key.add(*value->constant);
    } else if (is_constant) {
        key.add_bytes_of(*value->constant);
    } else if (is_known) {
        key.add(value->checked_type().element);
        for (const auto* dims : {&value->checked_type().shape, &value->known->integers}) {
            key.add(dims->size());
            for (const Dim& dim : *dims) key.add(dim.text());
        }
        key.add(value->known->reals);
    } else {
        key.add(value);
    }
}

/// Everything that a node's results depend on; nullopt for a node that may not be merged.
std::optional<std::string> key_of(const Node& node) {
    if (node.outputs.empty() || draws_random_numbers(node)) return std::nullopt;
    Key key;
    key.add(node.domain);
    key.add(node.op_type);
    key.add(node.version);
    for (const auto& [name, attribute] : node.attributes) {
        key.add(name);
        key.add(attribute.index());
        const bool is_comparable = std::visit(
            [&](const auto& value) {
                using T = std::decay_t<decltype(value)>;
                if constexpr (std::is_same_v<T, std::shared_ptr<Graph>> || std::is_same_v<T, TensorType>) {
                    return false;
                } else {
                    key.add(value);
                    return true;
                }
            },
            attribute);
        if (!is_comparable) return std::nullopt;
    }
    key.add(node.inputs.size());
    for (const Value* input : node.inputs) add_value(key, input);
    for (const Value* output : node.outputs) key.add(output != nullptr);
    return key.text();
}

/// Whether the outputs of a node may replace those of a duplicate.
bool may_replace(const Graph& graph, const Node& node, const Node& duplicate) {
    for (size_t i = 0; i < node.outputs.size(); ++i) {
        const Value *kept = node.outputs[i], *other = duplicate.outputs[i];
        if (!kept) continue;
        // Symbols that are bound to a value belong to it alone.
        if (graph.is_output(other) || kept->type != other->type || !kept->bindings.empty() || !other->bindings.empty())
            return false;
    }
    return true;
}

/// Replaces a duplicate. Inference may have known its elements, but not yet those of the first.
void replace(Graph& graph, Value* duplicate, Value* kept) {
    if (!kept->known) kept->known = duplicate->known;
    graph.replace_uses(duplicate, kept);
}

}  // namespace

void merge_duplicates(Graph& graph) {
    std::unordered_map<std::string, Node*> known;
    for (Node* node : graph.snapshot()) {
        const auto key = key_of(*node);
        if (!key) continue;
        const auto [first, is_new] = known.emplace(*key, node);
        if (is_new || !may_replace(graph, *first->second, *node)) continue;
        for (size_t i = 0; i < node->outputs.size(); ++i) {
            if (node->outputs[i]) replace(graph, node->outputs[i], first->second->outputs[i]);
        }
        graph.remove(node);
    }
}

}  // namespace onnx2halide
