#include "compiler/graph/graph.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include <fmt/format.h>

namespace onnx2halide {

namespace {

/// The types of attributes, in the order of Attribute's alternatives.
constexpr std::string_view attribute_types[] = {"int",    "float",   "string", "tensor", "ints",
                                                "floats", "strings", "graph",  "type"};
static_assert(std::size(attribute_types) == std::variant_size_v<Attribute>);

template <typename T>
const T* attribute_as(const Node& node, const std::string& name) {
    const auto found = node.attributes.find(name);
    if (found == node.attributes.end()) return nullptr;
    if (const T* value = std::get_if<T>(&found->second)) return value;
    throw CompileError("attribute {} has type {}, expected {}", name, attribute_types[found->second.index()],
                       attribute_types[Attribute(std::in_place_type<T>).index()]);
}

template <typename T>
const T& required(const Node& node, const std::string& name) {
    const T* value = attribute_as<T>(node, name);
    if (!value) throw CompileError("attribute {} is missing", name);
    return *value;
}

float from_half(uint16_t bits) {
    const uint32_t sign = (bits & 0x8000u) << 16, exponent = (bits >> 10) & 0x1f, mantissa = bits & 0x3ff;
    if (exponent == 0) {
        const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
        return sign ? -magnitude : magnitude;
    }
    const uint32_t wide = exponent == 31 ? 0xffu : exponent + 112;
    return std::bit_cast<float>(sign | wide << 23 | mantissa << 13);
}

float from_bfloat(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

template <typename To>
std::vector<To> converted(const Constant& constant) {
    const auto all = [&]<typename T>(T) {
        const auto elements = constant.as<T>();
        return std::vector<To>(elements.begin(), elements.end());
    };
    const auto narrow = [&](float (*widen)(uint16_t)) {
        std::vector<To> result;
        for (const uint16_t bits : constant.as<uint16_t>()) result.push_back(static_cast<To>(widen(bits)));
        return result;
    };
    using enum ElementType;
    switch (constant.element) {
    case float32: return all(float());
    case float64: return all(double());
    case uint8:
    case uint4:
    case uint2:
    case boolean: return all(uint8_t());
    case int8:
    case int4:
    case int2: return all(int8_t());
    case uint16: return all(uint16_t());
    case int16: return all(int16_t());
    case int32: return all(int32_t());
    case string:
    case int64: return all(int64_t());
    case uint32: return all(uint32_t());
    case uint64: return all(uint64_t());
    case float16: return narrow(from_half);
    case bfloat16: return narrow(from_bfloat);
    default: throw CompileError("a constant of type {} has no numbers", info(constant.element).name);
    }
}

}  // namespace

Constant make_constant(StringTable& table, std::vector<int64_t> shape, std::vector<std::string> strings) {
    Constant constant = make_constant(ElementType::string, std::move(shape), table.numbers(strings));
    constant.strings = std::move(strings);
    return constant;
}

int64_t Constant::elements() const {
    int64_t count = 1;
    for (const int64_t dim : shape) count *= dim;
    return count;
}

std::vector<int64_t> Constant::integers() const { return converted<int64_t>(*this); }

std::vector<double> Constant::reals() const { return converted<double>(*this); }

const TensorType& Value::checked_type() const {
    if (!type) throw std::logic_error("value '" + name + "' has no type yet");
    return *type;
}

std::optional<int64_t> Value::pitch() const {
    if (!part || checked_type().rank() < 2 || checked_type().extents()[0].is(part->pitch)) return {};
    return part->pitch;
}

int64_t Node::integer(const std::string& attribute) const { return required<int64_t>(*this, attribute); }

int64_t Node::integer(const std::string& attribute, int64_t otherwise) const {
    const auto* value = attribute_as<int64_t>(*this, attribute);
    return value ? *value : otherwise;
}

float Node::real(const std::string& attribute) const { return required<float>(*this, attribute); }

float Node::real(const std::string& attribute, float otherwise) const {
    const auto* value = attribute_as<float>(*this, attribute);
    return value ? *value : otherwise;
}

const std::string& Node::string(const std::string& attribute) const { return required<std::string>(*this, attribute); }

std::string Node::string(const std::string& attribute, const std::string& otherwise) const {
    const auto* value = attribute_as<std::string>(*this, attribute);
    return value ? *value : otherwise;
}

std::vector<int64_t> Node::integers(const std::string& attribute) const {
    return required<std::vector<int64_t>>(*this, attribute);
}

std::vector<int64_t> Node::integers(const std::string& attribute, std::vector<int64_t> otherwise) const {
    const auto* value = attribute_as<std::vector<int64_t>>(*this, attribute);
    return value ? *value : otherwise;
}

std::vector<float> Node::reals(const std::string& attribute) const {
    return required<std::vector<float>>(*this, attribute);
}

std::vector<std::string> Node::strings(const std::string& attribute) const {
    const auto* value = attribute_as<std::vector<std::string>>(*this, attribute);
    return value ? *value : std::vector<std::string>();
}

const Constant& Node::tensor(const std::string& attribute) const { return required<Constant>(*this, attribute); }

Graph& Node::graph(const std::string& attribute) const { return *required<std::shared_ptr<Graph>>(*this, attribute); }

std::vector<Graph*> Node::subgraphs() const {
    std::vector<Graph*> result;
    for (const auto& [attribute, value] : attributes) {
        if (const auto* graph = std::get_if<std::shared_ptr<Graph>>(&value)) result.push_back(graph->get());
    }
    return result;
}

std::string Node::qualified_op() const { return domain.empty() ? op_type : domain + "." + op_type; }

std::string Node::label() const {
    return origin.empty() ? fmt::format("node '{}' ({})", name, qualified_op()) : origin;
}

void Node::become(const std::string& new_type, int new_version, const std::string& new_domain) {
    origin = label();
    op_type = new_type;
    version = new_version;
    domain = new_domain;
}

Value* Graph::value(const std::string& name) {
    auto& place = values_[name];
    if (!place) {
        place = std::make_unique<Value>();
        place->name = name;
    }
    return place.get();
}

Value* Graph::find(const std::string& name) const {
    const auto found = values_.find(name);
    return found == values_.end() ? nullptr : found->second.get();
}

std::vector<Node*> Graph::snapshot() const {
    std::vector<Node*> nodes;
    for (const auto& node : nodes_) nodes.push_back(node.get());
    return nodes;
}

Value* Graph::new_value(const std::string& hint) {
    if (!values_.contains(hint)) return value(hint);
    int& number = next_numbers_.try_emplace(hint, 2).first->second;
    std::string name;
    do {
        name = fmt::format("{}_{}", hint, number++);
    } while (values_.contains(name));
    return value(name);
}

Node* Graph::add(Node node, const Node* before) {
    const auto place =
        nodes_.insert(before ? places_.at(before) : nodes_.end(), std::make_unique<Node>(std::move(node)));
    Node* added = place->get();
    places_.emplace(added, place);
    next_index_ = std::max(next_index_, added->index + 1);
    for (Value* input : added->inputs) {
        if (input) input->consumers.push_back(added);
    }
    for (Value* output : added->outputs) {
        if (output) output->producer = added;
    }
    return added;
}

void Graph::remove(Node* node) {
    for (size_t i = 0; i < node->inputs.size(); ++i) set_input(node, i, nullptr);
    for (Value* output : node->outputs) {
        if (output && output->producer == node) output->producer = nullptr;
    }
    const Nodes::iterator place = places_.at(node);
    places_.erase(node);
    nodes_.erase(place);
}

const Node* Graph::after(const Node* node) const {
    const Nodes::const_iterator place = node ? std::next(places_.at(node)) : nodes_.begin();
    return place == nodes_.end() ? nullptr : place->get();
}

void Graph::replace_uses(Value* from, Value* to) {
    const std::vector<Node*> consumers = from->consumers;
    for (Node* consumer : consumers) {
        for (size_t i = 0; i < consumer->inputs.size(); ++i) {
            if (consumer->inputs[i] == from) set_input(consumer, i, to);
        }
    }
    std::replace(outputs.begin(), outputs.end(), from, to);
}

void Graph::set_input(Node* node, size_t i, Value* value) {
    if (Value* old = node->inputs[i]) {
        const auto use = std::find(old->consumers.begin(), old->consumers.end(), node);
        if (use != old->consumers.end()) old->consumers.erase(use);
    }
    node->inputs[i] = value;
    if (value) value->consumers.push_back(node);
}

bool Graph::is_output(const Value* value) const {
    return std::find(outputs.begin(), outputs.end(), value) != outputs.end();
}

void for_each_graph(Graph& graph, const std::function<void(Graph&)>& visit) {
    for (const auto& node : graph.nodes()) {
        for (Graph* inner : node->subgraphs()) for_each_graph(*inner, visit);
    }
    visit(graph);
}

std::vector<OpenDim> open_dims(const Graph& graph) {
    std::vector<OpenDim> result;
    for (const auto& [symbol, dim] : graph.symbols) {
        for (size_t input = 0; input < graph.inputs.size(); ++input) {
            const auto& shape = graph.inputs[input]->port_type().shape;
            const auto axis = std::find(shape.begin(), shape.end(), dim);
            if (axis == shape.end()) continue;
            result.push_back({symbol, dim, input, static_cast<size_t>(axis - shape.begin())});
            break;
        }
    }
    return result;
}

int64_t constant_elements(Graph& graph) {
    std::map<const void*, int64_t> elements;
    for_each_graph(graph, [&](const Graph& each) {
        for (const auto& [name, value] : each.values()) {
            if (value->constant) elements[value->constant->data.get()] = value->constant->elements();
        }
    });
    int64_t sum = 0;
    for (const auto& [data, count] : elements) sum += count;
    return sum;
}

}  // namespace onnx2halide
