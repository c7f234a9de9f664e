#include "compiler/graph/node_key.h"

#include <set>
#include <string_view>
#include <type_traits>

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
void add_value(Key& key, const Value* value, ComputedInputs computed) {
    const bool is_constant =
        value && value->constant && value->constant->data && value->type == value->constant->type();
    const bool is_small = is_constant && value->constant->data->size() <= most_bytes;
    const bool is_known = value && value->known && computed == ComputedInputs::by_elements;
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

}  // namespace

bool draws_random_numbers(const Node& node) {
    static const std::set<std::string_view> types = {"Bernoulli",        "Multinomial",   "RandomNormal",
                                                     "RandomNormalLike", "RandomUniform", "RandomUniformLike"};
    const bool is_training = node.op_type == "Dropout" && node.has_input(2);
    return is_training || types.contains(node.op_type);
}

std::optional<std::string> node_key(const Node& node, ComputedInputs computed) {
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
    for (const Value* input : node.inputs) add_value(key, input, computed);
    for (const Value* output : node.outputs) key.add(output != nullptr);
    return key.text();
}

}  // namespace onnx2halide
