#include "compiler/plan/write_kernel.h"

#include <algorithm>
#include <set>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace onnx2halide {

namespace {

/// Defines the outputs of a node whose elements inference knows, which needs no algorithm of its own.
void write_known(const Node& node, KernelSource& source) {
    for (const Value* output : node.outputs) {
        const TensorType& type = output->checked_type();
        const Coordinates at = source.vars(type.rank());
        std::string index = "0";
        for (size_t i = 0; i < type.rank(); ++i)
            index = i == 0 ? at[0] : fmt::format("({}) * {} + {}", index, source.dim(type.shape[i]), at[i]);
        std::vector<std::string> elements;
        const std::string compute_type = KernelSource::compute_type(type.element);
        for (const Dim& element : output->known->integers) {
            const auto number = element.constant();
            elements.push_back(number ? KernelSource::literal(*number, type.element)
                                      : fmt::format("cast<{}>({})", compute_type, source.dim(element)));
        }
        for (const double element : output->known->reals)
            elements.push_back(KernelSource::literal(element, type.element));
        const std::string all = fmt::format("{}", fmt::join(elements, ", "));
        source.define(output, at, elements.size() == 1 ? all : fmt::format("mux({}, {{{}}})", index, all));
    }
}

/// Whether inference knows all elements of the outputs without reading them at run time.
bool is_known(const Node& node) {
    return std::all_of(node.outputs.begin(), node.outputs.end(), [](const Value* output) {
        return output && output->known && output->known->size() > 0 && output->bindings.empty();
    });
}

std::string operands(const std::vector<Value*>& values) {
    std::vector<std::string> names;
    for (const Value* value : values) names.push_back(value ? value->name : "");
    return fmt::format("{}", fmt::join(names, ", "));
}

bool are_all(const std::vector<int64_t>& numbers, int64_t number) {
    return std::all_of(numbers.begin(), numbers.end(), [&](int64_t other) { return other == number; });
}

/// `kernel 3x3`, `pads 1`; empty for defaults.
std::string attribute_text(const std::string& name, const Attribute& attribute) {
    // Attributes of packed nodes that repeat what the shapes of their inputs say.
    static const std::set<std::string_view> packed = {"columns", "cycles",           "depth",
                                                      "form",    "inputs_per_group", "output_channels"};
    if (packed.contains(name)) return "";
    if (const auto* numbers = std::get_if<std::vector<int64_t>>(&attribute)) {
        if (numbers->empty()) return "";
        if (name == "kernel_shape") return fmt::format("kernel {}", fmt::join(*numbers, "x"));
        const bool is_default =
            name == "pads" ? are_all(*numbers, 0) : (name == "strides" || name == "dilations") && are_all(*numbers, 1);
        if (is_default) return "";
        const bool is_uniform = numbers->size() > 1 && are_all(*numbers, numbers->front());
        return is_uniform ? fmt::format("{} {}", name, numbers->front())
                          : fmt::format("{} {}", name, fmt::join(*numbers, ", "));
    }
    if (const auto* number = std::get_if<int64_t>(&attribute)) {
        const bool is_default = name == "group" ? *number == 1 : name != "axis" && *number == 0;
        return is_default ? "" : fmt::format("{} {}", name, *number);
    }
    if (const auto* number = std::get_if<float>(&attribute)) {
        const bool is_default = (name == "alpha" || name == "beta") && *number == 1;
        return is_default ? "" : fmt::format("{} {}", name, *number);
    }
    if (const auto* word = std::get_if<std::string>(&attribute))
        return *word == "NOTSET" || word->empty() ? "" : fmt::format("{} {}", name, *word);
    return "";
}

/// `Node 0  conv1 = Conv(image, W, B)   kernel 3x3, pads 1`; with the node's name where its outputs do not begin with
/// it.
std::string node_comment(const Node& node) {
    std::vector<std::string> attributes;
    for (const auto& [name, attribute] : node.attributes) {
        std::string text = attribute_text(name, attribute);
        if (!text.empty()) attributes.push_back(std::move(text));
    }
    const bool shows_name = std::any_of(node.outputs.begin(), node.outputs.end(), [&](const Value* output) {
        return output && output->name.starts_with(node.name);
    });
    const std::string name = shows_name ? "" : fmt::format(" ({})", node.name);
    std::string text = fmt::format("Node {}{}  {} = {}({})", node.index, name, operands(node.outputs), node.op_type,
                                   operands(node.inputs));
    if (!attributes.empty()) text += fmt::format("   {}", fmt::join(attributes, ", "));
    return text;
}

}  // namespace

KernelSource write_kernel(const Group& group, const std::vector<const Value*>& escaping, const Target& target,
                          const std::string& name, KernelSource::Naming naming) {
    std::vector<const Value*> defined;
    for (const Node* node : group.nodes) defined.insert(defined.end(), node->outputs.begin(), node->outputs.end());
    KernelSource source(target, name, defined, escaping, naming);
    for (const Node* node : group.nodes) {
        if (naming == KernelSource::Naming::model) source.comment(node_comment(*node));
        try {
            is_known(*node) ? write_known(*node, source) : make_generator(*node)->algorithm(source);
        } catch (const CompileError& error) {
            throw CompileError("{}: {}", node->label(), error.what());
        }
    }
    if (!group.anchor) return source;
    const auto anchor = make_generator(*group.anchor);
    is_known(*group.anchor) ? anchor->NodeGenerator::schedule(source) : anchor->schedule(source);
    return source;
}

}  // namespace onnx2halide
