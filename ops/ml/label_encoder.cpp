#include "ops/ml/label_encoder.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>
#include <stdexcept>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ops/constant_rows.h"
#include "ops/families.h"
#include "ops/host_node.h"
#include "ops/replaced_node.h"

namespace onnx2halide {

namespace {

using enum ElementType;

/// `keys` or `values`, for which there is an attribute per type, or a tensor.
Constant read_elements(const Node& node, const std::string& name, StringTable& strings) {
    if (node.has(name + "_strings")) return row_of(strings, node.strings(name + "_strings"));
    if (node.has(name + "_tensor")) return node.tensor(name + "_tensor");
    if (node.has(name + "_int64s")) return row_of(int64, node.integers(name + "_int64s"));
    if (!node.has(name + "_floats")) throw CompileError("there are no {}", name);
    return row_of(float32, node.reals(name + "_floats"));
}

/// Keys and values from class names: LabelEncoder (1) numbers them in their order, CategoryMapper lists numbers. The
/// input's type determines which of the two are keys.
std::pair<Constant, Constant> read_classes(const Node& node, StringTable& strings) {
    const bool is_mapper = node.op_type == "CategoryMapper";
    const std::vector<std::string> texts = node.strings(is_mapper ? "cats_strings" : "classes_strings");
    std::vector<int64_t> numbers(texts.size());
    std::iota(numbers.begin(), numbers.end(), 0);
    if (is_mapper) numbers = node.integers("cats_int64s", {});
    Constant names = row_of(strings, texts), places = row_of(int64, numbers);
    const bool from_names = node.inputs.at(0)->checked_type().element == string;
    return from_names ? std::pair(std::move(names), std::move(places)) : std::pair(std::move(places), std::move(names));
}

/// Some elements of a constant, as a row.
Constant taken(const Constant& from, const std::vector<size_t>& places) {
    const size_t bytes = info(from.element).bytes;
    std::vector<std::byte> elements(places.size() * bytes);
    for (size_t i = 0; i < places.size(); ++i)
        std::memcpy(elements.data() + i * bytes, from.data->data() + places[i] * bytes, bytes);
    return {from.element,
            {static_cast<int64_t>(places.size())},
            std::make_shared<const std::vector<std::byte>>(std::move(elements)),
            {}};
}

Constant read_default(const Node& node, ElementType type, StringTable& strings) {
    if (node.has("default_tensor")) {
        const Constant& tensor = node.tensor("default_tensor");
        if (tensor.element != type || tensor.elements() != 1)
            throw CompileError("default_tensor is {}, expected one {}", tensor.type().text(), info(type).name);
        return taken(tensor, {0});
    }
    const float real = node.real("default_float", -0.0f);
    const int64_t integer = node.integer("default_int64", -1);
    switch (type) {
    case string: return row_of(strings, {node.string("default_string", "_Unused")});
    case float32: return make_constant<float>(type, {1}, {real});
    case float64: return make_constant<double>(type, {1}, {real});
    case int64: return make_constant<int64_t>(type, {1}, {integer});
    case int32: return make_constant<int32_t>(type, {1}, {-1});
    case int16: return make_constant<int16_t>(type, {1}, {-1});
    default: throw CompileError("values of type {} are not supported", info(type).name);
    }
}

/// The indices of keys in ascending order, the last one for each key. NaN is the greatest.
template <typename T>
std::vector<size_t> ascending(const std::vector<T>& keys) {
    const auto is_less = [&](size_t a, size_t b) {
        if constexpr (std::is_same_v<T, double>) {
            if (std::isnan(keys[a]) || std::isnan(keys[b])) return !std::isnan(keys[a]);
        }
        return keys[a] < keys[b];
    };
    std::vector<size_t> order;
    for (size_t i = keys.size(); i-- > 0;) order.push_back(i);
    std::stable_sort(order.begin(), order.end(), is_less);
    const auto is_equal = [&](size_t a, size_t b) { return !is_less(a, b) && !is_less(b, a); };
    order.erase(std::unique(order.begin(), order.end(), is_equal), order.end());
    return order;
}

/// LabelEncoder or CategoryMapper of the model. A pass replaces it by Lookup (see expand_encoders).
class LabelEncoder : public ReplacedNode {
public:
    using ReplacedNode::ReplacedNode;

    bool takes_strings() const override { return true; }

    std::vector<TensorType> infer() const override {
        StringTable strings;
        const Encoding encoding = read_encoding(node_, strings);
        if (encoding.keys.element != in(0).element)
            throw CompileError("keys have type {}, expected {} as input 0", info(encoding.keys.element).name,
                               info(in(0).element).name);
        return {TensorType(encoding.values.element, in(0).shape)};
    }
};

/// OneHotEncoder, likewise. It becomes comparisons with the categories or, with zeros = 0, OneHotOfKnown.
class OneHotEncoder : public ReplacedNode {
public:
    using ReplacedNode::ReplacedNode;
    bool takes_strings() const override { return true; }

    std::vector<TensorType> infer() const override {
        StringTable strings;
        const Constant categories = read_categories(node_, strings);
        if ((in(0).element == string) != (categories.element == string))
            throw CompileError("categories have type {}, but input 0 has {}", info(categories.element).name,
                               info(in(0).element).name);
        std::vector<Dim> shape = in(0).shape;
        shape.push_back(categories.elements());
        return {TensorType(float32, shape)};
    }
};

/// OneHotEncoder that fails on elements which are not categories: the compiler's own operator, a function in
/// runtime/one_hot.c. Inputs 1 and 2 are the keys and values of an Encoding, from categories to columns.
class OneHotOfKnown : public HostNode {
public:
    using HostNode::HostNode;
    bool takes_strings() const override { return true; }

    std::vector<TensorType> infer() const override {
        std::vector<Dim> shape = in(0).shape;
        shape.push_back(node_.integer("columns"));
        return {TensorType(float32, shape)};
    }
    HostCall host_call() const override {
        return {
            "onnx2halide_one_hot", {in(0).element == string ? "1" : "0", fmt::to_string(node_.integer("columns"))}, 3};
    }
};

/// Replaces each element of input 0 by the value of its key: the compiler's own operator. Its further inputs are the
/// constants of an Encoding.
class Lookup : public NodeGenerator {
public:
    using NodeGenerator::NodeGenerator;
    bool takes_strings() const override { return true; }

    std::vector<TensorType> infer() const override { return {TensorType(in(2).element, in(0).shape)}; }

    Dim flops() const override { return out(0).elements() * steps(); }

    void algorithm(KernelSource& source) const override {
        const Coordinates at = source.vars(out(0).rank());
        const std::string x = source.read(input(0), at), below = source.func(output(0)->name + "_below"),
                          here = fmt::format("{}({})", below, fmt::join(at, ", "));
        // A binary search for the number of keys that are less than the element.
        source.line(fmt::format("{} = 0;", here));
        const std::string step = source.rdom("step", {steps()}), next = source.local("next"),
                          place = source.local("place");
        source.line(fmt::format("Expr {} = {} + (Expr({}) >> {});", next, here, 1 << (steps() - 1), step));
        source.line(fmt::format("{0} = select({1} <= {2} && {3}, {1}, {0});", here, next, count(),
                                compared(key(source, fmt::format("min({}, {}) - 1", next, count())), "<", x)));
        source.line(fmt::format("Expr {} = min({}, {});", place, here, count() - 1));
        std::string value = fmt::format("select({}, {}, {})", compared(key(source, place), "==", x),
                                        source.element(input(2), {clamped(place)}), source.element(input(3), {"0"}));
        if (has_input(4))
            value = fmt::format("select(onnx::is_nan({}), {}, {})", x, source.element(input(4), {"0"}), value);
        source.store(output(0), at, value);
    }

private:
    int64_t count() const { return in(1).shape[0].number(); }
    int steps() const { return std::bit_width(static_cast<uint64_t>(count())); }

    std::string clamped(const std::string& place) const {
        return fmt::format("unsafe_promise_clamped({}, 0, {})", place, count() - 1);
    }
    std::string key(KernelSource& source, const std::string& place) const {
        return source.read(input(1), {clamped(place)});
    }
    std::string compared(const std::string& a, const std::string& comparison, const std::string& b) const {
        const std::string text = fmt::format("{} {} {}", a, comparison, b);
        return is_float(in(0).element) ? fmt::format("strict_float({})", text) : text;
    }
};

}  // namespace

Constant read_categories(const Node& node, StringTable& strings) {
    if (node.has("cats_strings")) return row_of(strings, node.strings("cats_strings"));
    return row_of(int64, node.integers("cats_int64s"));
}

Encoding read_encoding(const Node& node, StringTable& strings) {
    const bool has_classes = node.op_type == "CategoryMapper" || (node.op_type == "LabelEncoder" && node.version == 1);
    auto [keys, values] = has_classes
                              ? read_classes(node, strings)
                              : std::pair(read_elements(node, "keys", strings), read_elements(node, "values", strings));
    if (keys.elements() != values.elements())
        throw CompileError("there are {} keys, expected {} as there are values", keys.elements(), values.elements());
    Encoding encoding;
    encoding.otherwise = read_default(node, values.element, strings);
    std::vector<size_t> places = is_float(keys.element) ? ascending(keys.reals()) : ascending(keys.integers());
    if (is_float(keys.element) && !places.empty() && std::isnan(keys.reals()[places.back()])) {
        encoding.missing = taken(values, {places.back()});
        places.pop_back();
    }
    encoding.keys = taken(keys, places);
    encoding.values = taken(values, places);
    if (!places.empty()) return encoding;
    // A key without a meaning.
    encoding.keys = {
        keys.element, {1}, std::make_shared<const std::vector<std::byte>>(info(keys.element).bytes, std::byte{}), {}};
    encoding.values = encoding.otherwise;
    return encoding;
}

std::vector<Operator> encoder_operators() {
    return {{"LabelEncoder", 1, make<LabelEncoder>, ml_domain},
            {"CategoryMapper", 1, make<LabelEncoder>, ml_domain},
            {"OneHotEncoder", 1, make<OneHotEncoder>, ml_domain},
            {"OneHotOfKnown", 1, make<OneHotOfKnown>, own_domain},
            {"Lookup", 1, make<Lookup>, own_domain}};
}

}  // namespace onnx2halide
