#include "compiler/load/graph_builder.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "compiler/load/input_dims.h"
#include "compiler/load/schema.h"
#include "compiler/load/tensor.h"
#include "compiler/load/type_proto.h"
#include "ops/names.h"
#include "ops/node_generator.h"

namespace onnx2halide {

namespace {

/// What the builders of a model's graph and of its subgraphs share.
struct Source {
    std::filesystem::path folder;
    OpsetVersions opsets;
    std::shared_ptr<StringTable> strings;
    int next_index = 0;                                          // of nodes
    std::map<std::string, std::vector<std::string>> names = {};  // of values, by the identifiers that they make
};

/// Builds one graph: the model's, or a subgraph, for which `outer` is the builder of the graph around it.
class GraphBuilder {
public:
    GraphBuilder(const onnx::GraphProto& proto, Source& source, GraphBuilder* outer)
        : proto_(proto), source_(source), outer_(outer), graph_(std::make_shared<Graph>()) {
        graph_->name = proto.name();
        graph_->opset = source.opsets.of("");
        graph_->strings = source.strings;
        add_initialisers();
    }

    Graph& graph() { return *graph_; }

    /// Adds everything but the inputs.
    std::shared_ptr<Graph> build() {
        for (const auto& info : proto_.value_info()) declare(info);
        for (const auto& node : proto_.node()) add_node(node);
        for (const auto& output : proto_.output()) {
            declare(output);
            graph_->outputs.push_back(outer_ ? own_output(output.name()) : graph_->value(output.name()));
            graph_->output_names.push_back(output.name());
        }
        number_namesakes();
        return graph_;
    }

    /// The names of the values that this graph captures, in the order of its last inputs.
    const std::vector<std::string>& captures() const { return captures_; }

    /// Makes these the captures of the graph. All subgraphs of a node have the same ones, which are inputs of the node.
    void capture(const std::vector<std::string>& names) {
        std::vector<Value*> inputs(graph_->inputs.begin(), graph_->inputs.end() - captures_.size());
        for (const std::string& name : names) {
            const bool is_known = std::find(captures_.begin(), captures_.end(), name) != captures_.end();
            inputs.push_back(is_known ? graph_->value(name) : graph_->new_value(name));
        }
        graph_->inputs = std::move(inputs);
        captures_ = names;
    }

private:
    void add_initialisers() {
        for (const auto& tensor : proto_.initializer()) {
            Constant constant = read(tensor);
            Value* value = graph_->value(tensor.name());
            value->type = constant.type();
            value->constant = std::move(constant);
        }
        for (const auto& tensor : proto_.sparse_initializer()) {
            Value* value = graph_->value(tensor.values().name());
            value->constant = read_sparse_tensor(tensor, source_.folder);
            value->type = value->constant->type();
        }
    }

    Constant read(const onnx::TensorProto& tensor) {
        Constant constant = read_tensor(tensor, source_.folder);
        if (constant.element != ElementType::string) return constant;
        return make_constant(*source_.strings, constant.shape, constant.strings);
    }

    /// The value that a node reads by this name: one of the graph's own, or one that it captures.
    Value* resolve(const std::string& name) {
        if (Value* own = graph_->find(name)) return own;
        if (!outer_ || !outer_->has(name)) return graph_->value(name);
        captures_.push_back(name);
        graph_->inputs.push_back(graph_->value(name));
        return graph_->inputs.back();
    }

    bool has(const std::string& name) const { return graph_->find(name) || (outer_ && outer_->has(name)); }

    /// An output of a subgraph, which must be made by a node of its own: an Identity if the graph passes a value on.
    Value* own_output(const std::string& name) {
        Value* value = resolve(name);
        const bool is_taken = std::find(graph_->outputs.begin(), graph_->outputs.end(), value) != graph_->outputs.end();
        if (value->producer && !is_taken) return value;
        Node copy;
        copy.index = source_.next_index++;
        copy.op_type = "Identity";
        copy.inputs = {value};
        copy.outputs = {graph_->new_value(name)};
        copy.name = copy.outputs[0]->name;
        graph_->add(std::move(copy));
        return graph_->nodes().back()->outputs[0];
    }

    /// Notes the type that the model declares for a value, for inference to check.
    void declare(const onnx::ValueInfoProto& value_info) {
        if (value_info.type().value_case() == onnx::TypeProto::VALUE_NOT_SET) return;
        const auto type = read_type(value_info.type());
        if (!type) return;
        if (outer_ && !graph_->find(value_info.name()) && outer_->has(value_info.name())) return;
        declared_[value_info.name()] = *type;
        if (Value* value = graph_->find(value_info.name())) value->declared = type;
    }

    void add_node(const onnx::NodeProto& proto) {
        Node node;
        node.index = source_.next_index++;
        node.domain = proto.domain();
        node.op_type = proto.op_type();
        node.name = !proto.name().empty()     ? proto.name()
                    : proto.output_size() > 0 ? proto.output(0)
                                              : fmt::format("{}_{}", proto.op_type(), node.index);
        const onnx::OpSchema* schema = find_schema(proto, source_.opsets);
        node.version = schema ? schema->since_version() : source_.opsets.of(proto.domain());
        if (schema) add_default_attributes(node, *schema);
        for (const auto& name : proto.input()) node.inputs.push_back(name.empty() ? nullptr : resolve(name));
        for (const auto& attribute : proto.attribute()) add_attribute(node, attribute);
        add_graphs(node, proto);
        for (int i = 0; i < proto.output_size(); ++i) {
            const std::string& name = proto.output(i);
            node.outputs.push_back(name.empty() ? omitted_output(node, schema, i) : new_output(name));
        }
        if (node.subgraphs().empty()) fill_outputs(node);
        if (const auto constant = constant_of(node)) {
            node.outputs[0]->constant = constant;
            node.outputs[0]->type = constant->type();
            return;
        }
        graph_->add(std::move(node));
    }

    /// Numbers values whose names make the same identifier, as `i.1` and `i_1` do, so that names derived from them
    /// differ.
    void number_namesakes() {
        const auto number = [this](Value* value) {
            if (!value) return;
            std::vector<std::string>& names = source_.names[identifier(value->name)];
            const auto found = std::find(names.begin(), names.end(), value->name);
            value->duplicate_index = found - names.begin();
            if (found == names.end()) names.push_back(value->name);
        };
        std::for_each(graph_->inputs.begin(), graph_->inputs.end(), number);
        for (const auto& node : graph_->nodes()) std::for_each(node->outputs.begin(), node->outputs.end(), number);
    }

    /// The value of a Constant that has a tensor, dense or sparse, or strings.
    std::optional<Constant> constant_of(const Node& node) {
        if (node.op_type != "Constant" || !node.domain.empty() || !node.has_output(0)) return std::nullopt;
        for (const char* name : {"value", "sparse_value"}) {
            if (node.has(name)) return node.tensor(name);
        }
        if (node.has("value_string")) return make_constant(*source_.strings, {}, {node.string("value_string")});
        if (!node.has("value_strings")) return std::nullopt;
        const std::vector<std::string> strings = node.strings("value_strings");
        return make_constant(*source_.strings, {static_cast<int64_t>(strings.size())}, strings);
    }

    Value* new_output(const std::string& name) {
        Value* value = graph_->value(name);
        const auto declared = declared_.find(name);
        if (declared != declared_.end()) value->declared = declared->second;
        return value;
    }

    /// Cuts off optional outputs that are omitted at the end, and makes those before others values that nothing reads.
    void fill_outputs(Node& node) {
        while (!node.outputs.empty() && !node.outputs.back()) node.outputs.pop_back();
        for (size_t i = 0; i < node.outputs.size(); ++i) {
            if (!node.outputs[i]) node.outputs[i] = unread_output(node, i);
        }
    }

    Value* unread_output(const Node& node, size_t i) {
        return graph_->new_value(fmt::format("{}_unread_{}", node.name, i));
    }

    /// An unused value for an omitted output that the operator always makes, such as a part of a Split; null if the
    /// output is optional.
    Value* omitted_output(const Node& node, const onnx::OpSchema* schema, size_t i) {
        if (!schema || schema->outputs().empty() || !node.subgraphs().empty()) return nullptr;
        const auto& formal = schema->outputs()[std::min(i, schema->outputs().size() - 1)];
        if (formal.GetOption() == onnx::OpSchema::Optional) return nullptr;
        return unread_output(node, i);
    }

    /// Adds the subgraphs of an If, Loop or Scan. The values that they capture become further inputs of the node, in
    /// the same order for each; the attribute `captures` counts them.
    void add_graphs(Node& node, const onnx::NodeProto& proto) {
        std::vector<std::pair<std::string, std::unique_ptr<GraphBuilder>>> builders;
        std::vector<std::string> captures;
        for (const auto& attribute : proto.attribute()) {
            if (attribute.type() != onnx::AttributeProto::GRAPH) continue;
            auto builder = std::make_unique<GraphBuilder>(attribute.g(), source_, this);
            for (const auto& input : attribute.g().input()) {
                Value* value = builder->graph().value(input.name());
                // Up to IR version 3, initialisers had to be inputs, too.
                if (!value->constant) builder->graph().inputs.push_back(value);
            }
            node.attributes[attribute.name()] = builder->build();
            for (const std::string& name : builder->captures()) {
                if (std::find(captures.begin(), captures.end(), name) == captures.end()) captures.push_back(name);
            }
            builders.emplace_back(attribute.name(), std::move(builder));
        }
        if (builders.empty()) return;
        for (auto& [name, builder] : builders) builder->capture(captures);
        for (const std::string& name : captures) node.inputs.push_back(resolve(name));
        node.attributes["captures"] = static_cast<int64_t>(captures.size());
    }

    static void add_default_attributes(Node& node, const onnx::OpSchema& schema) {
        for (const auto& [name, attribute] : schema.attributes()) {
            if (attribute.default_value.name() == name) add_plain_attribute(node, attribute.default_value);
        }
    }

    void add_attribute(Node& node, const onnx::AttributeProto& attribute) {
        if (attribute.type() == onnx::AttributeProto::TENSOR) {
            node.attributes[attribute.name()] = read(attribute.t());
        } else if (attribute.type() == onnx::AttributeProto::SPARSE_TENSOR) {
            node.attributes[attribute.name()] = read_sparse_tensor(attribute.sparse_tensor(), source_.folder);
        } else {
            add_plain_attribute(node, attribute);
        }
    }

    static void add_plain_attribute(Node& node, const onnx::AttributeProto& attribute) {
        Attribute& value = node.attributes[attribute.name()];
        switch (attribute.type()) {
        case onnx::AttributeProto::INT: value = static_cast<int64_t>(attribute.i()); break;
        case onnx::AttributeProto::FLOAT: value = attribute.f(); break;
        case onnx::AttributeProto::STRING: value = attribute.s(); break;
        case onnx::AttributeProto::INTS:
            value = std::vector<int64_t>(attribute.ints().begin(), attribute.ints().end());
            break;
        case onnx::AttributeProto::FLOATS:
            value = std::vector<float>(attribute.floats().begin(), attribute.floats().end());
            break;
        case onnx::AttributeProto::STRINGS:
            value = std::vector<std::string>(attribute.strings().begin(), attribute.strings().end());
            break;
        case onnx::AttributeProto::TYPE_PROTO:
            if (const auto type = read_type(attribute.tp())) {
                value = *type;
                break;
            }
            [[fallthrough]];
        default: node.attributes.erase(attribute.name());
        }
    }

    const onnx::GraphProto& proto_;
    Source& source_;
    GraphBuilder* outer_;
    std::shared_ptr<Graph> graph_;
    std::vector<std::string> captures_;
    std::map<std::string, TensorType> declared_;
};

TensorType type_of(const onnx::ValueInfoProto& input, InputDims& dims) {
    if (input.type().has_tensor_type()) return dims.type_of(input);
    try {
        return read_type(input.type()).value();
    } catch (const CompileError& error) {
        throw CompileError("input '{}' {}", input.name(), error.what());
    }
}

void add_inputs(Graph& graph, const onnx::GraphProto& proto, InputDims& dims) {
    for (const auto& input : proto.input()) {
        Value* value = graph.value(input.name());
        if (value->constant) continue;  // old models list initialisers as inputs, too
        value->type = type_of(input, dims);
        graph.inputs.push_back(value);
    }
    dims.check_given();
    graph.symbols = dims.symbols();
}

/// What a user can do about unsupported operators of a domain; may be empty.
std::string_view advice(const std::string& domain) {
    if (domain != "com.microsoft.nchwc") return "";
    return "\ncom.microsoft.nchwc lays tensors out for the machine on which onnxruntime optimised the model: "
           "save it with ORT_ENABLE_EXTENDED, not ORT_ENABLE_ALL";
}

/// A line for each unsupported operator, in the order of the nodes, those of subgraphs included.
std::string unsupported_operators(Graph& graph) {
    std::vector<std::vector<const Node*>> groups;
    size_t count = 0, unknown = 0;
    for_each_graph(graph, [&](Graph& each) {
        for (const auto& node : each.nodes()) {
            ++count;
            if (find_operator(node->domain, node->op_type, node->version)) continue;
            const auto is_alike = [&](const auto& group) {
                return group[0]->qualified_op() == node->qualified_op() && group[0]->version == node->version;
            };
            const auto group = std::find_if(groups.begin(), groups.end(), is_alike);
            (group == groups.end() ? groups.emplace_back() : *group).push_back(node.get());
            ++unknown;
        }
    });
    if (groups.empty()) return "";
    std::string text = fmt::format("unsupported operators in {} of {} nodes:", unknown, count);
    for (const auto& group : groups) {
        text +=
            fmt::format("\n  {} (version {}): {}'{}'", group[0]->qualified_op(), group[0]->version,
                        group.size() == 1 ? "node " : fmt::format("{} nodes, first ", group.size()), group[0]->name);
    }
    std::set<std::string_view> told;
    for (const auto& group : groups) {
        const std::string_view more = advice(group[0]->domain);
        if (told.insert(more).second) text += more;
    }
    return text;
}

}  // namespace

std::shared_ptr<Graph> build_graph(const onnx::ModelProto& model, const std::filesystem::path& folder,
                                   const LoadOptions& options) {
    Source source{folder, OpsetVersions(model), std::make_shared<StringTable>()};
    GraphBuilder builder(model.graph(), source, nullptr);
    InputDims dims(options.dims, model.graph());
    add_inputs(builder.graph(), model.graph(), dims);
    std::shared_ptr<Graph> graph = builder.build();
    const std::string problem = unsupported_operators(*graph);
    if (!problem.empty()) throw CompileError("{}", problem);
    return graph;
}

}  // namespace onnx2halide
