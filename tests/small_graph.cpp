#include "tests/small_graph.h"

#include <algorithm>
#include <map>
#include <sstream>
#include <stdexcept>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "compiler/infer/infer.h"
#include "compiler/load/load.h"
#include "ops/node_generator.h"

namespace onnx2halide {

namespace {

std::string trimmed(std::string_view text) {
    const size_t first = text.find_first_not_of(" \t");
    if (first == std::string_view::npos) return "";
    return std::string(text.substr(first, text.find_last_not_of(" \t") - first + 1));
}

std::vector<std::string> split(std::string_view text, char separator) {
    std::vector<std::string> parts;
    if (trimmed(text).empty()) return parts;
    std::istringstream stream{std::string(text)};
    for (std::string part; std::getline(stream, part, separator);) parts.push_back(trimmed(part));
    if (text.back() == separator) parts.emplace_back();
    return parts;
}

bool is_number(const std::string& text) {
    return !text.empty() && text.find_first_not_of("-0123456789") == std::string::npos;
}

ElementType element_type(const std::string& name) {
    for (int i = 0; i <= static_cast<int>(ElementType::int2); ++i) {
        if (info(static_cast<ElementType>(i)).name == name) return static_cast<ElementType>(i);
    }
    throw std::invalid_argument("no element type " + name);
}

template <typename T>
Constant filled(const TensorType& type, const std::vector<std::string>& numbers) {
    std::vector<int64_t> shape;
    for (const Dim& dim : type.shape) shape.push_back(dim.constant().value());
    std::vector<T> elements(type.elements().constant().value(), std::is_floating_point_v<T> ? T(0.5) : T(1));
    for (size_t i = 0; i < numbers.size(); ++i) elements.at(i) = static_cast<T>(std::stod(numbers[i]));
    return make_constant(type.element, shape, elements);
}

Constant constant_of(const TensorType& type, const std::vector<std::string>& numbers) {
    using enum ElementType;
    switch (type.element) {
    case float32: return filled<float>(type, numbers);
    case float64: return filled<double>(type, numbers);
    case int32: return filled<int32_t>(type, numbers);
    case int64: return filled<int64_t>(type, numbers);
    case int8: return filled<int8_t>(type, numbers);
    case uint8:
    case boolean: return filled<uint8_t>(type, numbers);
    default: throw std::invalid_argument("no constant of this type");
    }
}

Attribute attribute_of(const std::string& text) {
    if (is_number(text)) return static_cast<int64_t>(std::stoll(text));
    if (text.find(',') != std::string::npos) {
        std::vector<int64_t> list;
        for (const std::string& part : split(text, ',')) list.push_back(std::stoll(part));
        return list;
    }
    if (text.find_first_not_of("-0123456789.e") == std::string::npos) return std::stof(text);
    return text;
}

class Parser {
public:
    explicit Parser(Graph& graph) : graph_(graph) { graph.opset = newest_opset(); }

    void read(const std::string& line) {
        if (line.starts_with("output ")) {
            for (const std::string& name : split(line.substr(7), ',')) {
                graph_.outputs.push_back(graph_.value(name));
                graph_.output_names.push_back(name);
            }
            return;
        }
        const size_t equals = line.find('=');
        const std::string names = trimmed(line.substr(0, equals)), what = trimmed(line.substr(equals + 1));
        std::istringstream words(what);
        std::string kind;
        words >> kind;
        if (kind == "input") return add_input(names, words);
        if (kind == "constant") return add_constant(names, words);
        add_node(split(names, ','), what);
    }

private:
    void add_input(const std::string& name, std::istringstream& words) {
        graph_.inputs.push_back(graph_.value(name));
        graph_.inputs.back()->type = type(words);
    }

    void add_constant(const std::string& name, std::istringstream& words) {
        const TensorType of = type(words);
        std::vector<std::string> numbers;
        for (std::string number; words >> number;) numbers.push_back(number);
        graph_.value(name)->constant = constant_of(of, numbers);
        graph_.value(name)->type = of;
    }

    TensorType type(std::istringstream& words) {
        std::string text;
        words >> text;
        const size_t open = text.find('[');
        std::vector<Dim> shape;
        for (const std::string& extent : split(text.substr(open + 1, text.find(']') - open - 1), ',')) {
            if (is_number(extent))
                shape.emplace_back(std::stoll(extent));
            else
                shape.push_back(graph_.symbols[extent] = Dim::symbol(extent));
        }
        return {element_type(text.substr(0, open)), shape};
    }

    void add_node(const std::vector<std::string>& names, const std::string& what) {
        const size_t open = what.find('('), close = what.find(')');
        Node node;
        node.name = names.at(0);
        node.index = static_cast<int>(graph_.nodes().size());
        node.op_type = what.substr(0, open);
        node.version = newest_opset();
        if (const size_t dash = node.op_type.find('-'); dash != std::string::npos) {
            node.version = std::stoi(node.op_type.substr(dash + 1));
            node.op_type.resize(dash);
        }
        if (const size_t dot = node.op_type.find('.'); dot != std::string::npos) {
            node.domain = node.op_type.substr(dot + 1);
            node.op_type.resize(dot);
        }
        for (const std::string& operand : split(what.substr(open + 1, close - open - 1), ',')) {
            node.inputs.push_back(operand.empty() ? nullptr : graph_.value(operand));
        }
        for (const std::string& name : names) node.outputs.push_back(name.empty() ? nullptr : graph_.value(name));
        std::istringstream attributes(what.substr(close + 1));
        for (std::string attribute; attributes >> attribute;) {
            const size_t equals = attribute.find('=');
            node.attributes[attribute.substr(0, equals)] = attribute_of(attribute.substr(equals + 1));
        }
        graph_.add(std::move(node));
    }

    Graph& graph_;
};

std::string names_of(const std::vector<Value*>& values) {
    std::vector<std::string> names;
    for (const Value* value : values) names.push_back(value ? value->name : "");
    return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

std::unique_ptr<Graph> parse_graph(std::string_view text) {
    auto graph = std::make_unique<Graph>();
    Parser parser(*graph);
    for (const std::string& line : split(text, '\n')) {
        const std::string statement = trimmed(line.substr(0, line.find('#')));
        if (!statement.empty()) parser.read(statement);
    }
    infer_types(*graph);
    return graph;
}

std::string graph_text(const Graph& graph) {
    std::string text;
    for (const auto& node : graph.nodes()) {
        text += fmt::format("{} = {}({})\n", names_of(node->outputs), node->op_type, names_of(node->inputs));
    }
    return text + fmt::format("output {}\n", names_of(graph.outputs));
}

bool is_left_alone(std::string_view text, const std::function<void(Graph&)>& pass) {
    const auto graph = parse_graph(text);
    const std::string before = graph_text(*graph);
    pass(*graph);
    return graph_text(*graph) == before;
}

std::string type_text(const TensorType& type) {
    std::vector<std::string> extents;
    for (const Dim& dim : type.shape) extents.push_back(dim.text());
    const std::string text = fmt::format("{}[{}]", info(type.element).name, fmt::join(extents, ","));
    return type.is_row_major() ? text : fmt::format("{}{{{}}}", text, fmt::join(type.layout, ","));
}

std::string error_of(std::string_view text) {
    try {
        parse_graph(text);
    } catch (const CompileError& error) {
        return error.what();
    }
    return "";
}

std::string kernel_text(std::string_view text) { return kernel_text(*parse_graph(text), "x86-64-linux-avx2-fma"); }

std::string kernel_text(const Graph& graph, const std::string& target) {
    Value* result = graph.outputs.at(0);
    KernelSource source(Target::parse(target), "kernel", {result}, {result});
    const auto generator = make_generator(*result->producer);
    generator->algorithm(source);
    generator->schedule(source);
    return source.text();
}

std::string statements(std::string_view text) {
    const std::string all = kernel_text(text);
    // Between the buffers' extents and the schedule.
    const size_t begin = all.find("\n\n", all.find("dense(")), end = all.find("    }\n", begin);
    std::string lines;
    for (size_t i = begin + 2; i < end; ++i) {
        if (all[i] == ' ' && (lines.empty() || lines.back() == '\n')) continue;
        lines += all[i];
    }
    return lines;
}

Node* find_node(const Graph& graph, std::string_view name) {
    const auto has_name = [&](const auto& node) { return node->name == name; };
    const auto found = std::find_if(graph.nodes().begin(), graph.nodes().end(), has_name);
    return found == graph.nodes().end() ? nullptr : found->get();
}

}  // namespace onnx2halide
