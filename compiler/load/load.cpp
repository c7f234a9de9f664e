#include "compiler/load/load.h"

#include <array>
#include <iterator>
#include <set>
#include <span>
#include <sstream>

#include <fmt/ranges.h>
#include <onnx/checker.h>

#include "compiler/build/sha256.h"
#include "compiler/load/cut.h"
#include "compiler/load/functions.h"
#include "compiler/load/model_file.h"
#include "compiler/load/schema.h"
#include "compiler/load/tensor.h"
#include "ops/names.h"
#include "ops/node_generator.h"

namespace onnx2halide {

namespace {

/// What the checker says as one phrase, with the node that it speaks of in parentheses.
std::string checker_message(const std::string& text) {
    const std::string mark = "==> Context: ";
    const size_t context = text.find(mark);
    const auto phrase = [](const std::string& lines) {
        std::istringstream stream(lines);
        const std::vector<std::string> words{std::istream_iterator<std::string>(stream), {}};
        const std::string line = fmt::format("{}", fmt::join(words, " "));
        return line.ends_with('.') ? line.substr(0, line.size() - 1) : line;
    };
    if (context == std::string::npos) return phrase(text);
    return fmt::format("{} ({})", phrase(text.substr(0, context)), phrase(text.substr(context + mark.size())));
}

/// A node without a name is called like its first result, in the checker's messages as in ours.
void name_nodes(onnx::GraphProto& graph) {
    for (auto& node : *graph.mutable_node()) {
        if (node.name().empty() && node.output_size() > 0) node.set_name(node.output(0));
    }
}

/// ONNX's checker takes opsets of the future for granted.
void check_opsets(const onnx::ModelProto& model) {
    const auto& known = onnx::OpSchemaRegistry::DomainToVersionRange::Instance().Map();
    for (const auto& import : model.opset_import()) {
        const auto range = known.find(normalised_domain(import.domain()));
        if (range == known.end() || import.version() <= range->second.second) continue;
        throw CompileError("uses opset {} of {}, expected at most {}", import.version(),
                           import.domain().empty() ? "ai.onnx" : import.domain(), range->second.second);
    }
}

bool has_external_data(const onnx::ModelProto& model) {
    for (const auto& tensor : model.graph().initializer()) {
        if (tensor.data_location() == onnx::TensorProto::EXTERNAL) return true;
    }
    return false;
}

void check(const onnx::ModelProto& model, const std::filesystem::path& path) {
    // read_tensor says better than the checker which file is missing.
    if (has_external_data(model)) {
        for (const auto& tensor : model.graph().initializer()) read_tensor(tensor, path.parent_path());
    }
    try {
        has_external_data(model) ? onnx::checker::check_model(path.string()) : onnx::checker::check_model(model);
    } catch (const std::exception& error) {
        throw CompileError("rejected by ONNX's checker: {}", checker_message(error.what()));
    }
    check_opsets(model);
}

/// A dim that the model leaves open, where one of its inputs has it.
struct OpenDim {
    std::string name;  // the model's; may be empty
    std::string input;
    int axis;

    std::string place() const { return fmt::format("{}:{}", input, axis); }
    std::string symbol_name() const { return name.empty() ? fmt::format("{}_dim_{}", input, axis) : name; }
};

/// Turns a checked ModelProto without functions into a Graph.
class GraphBuilder {
public:
    GraphBuilder(const onnx::ModelProto& model, const std::filesystem::path& folder, const LoadOptions& options)
        : model_(model), folder_(folder), options_(options), opsets_(model), graph_(std::make_unique<Graph>()) {}

    std::unique_ptr<Graph> build() {
        graph_->name = model_.graph().name();
        graph_->opset = opsets_.of("");
        add_initialisers();
        add_inputs();
        for (const auto& info : model_.graph().value_info()) declare(info);
        for (const auto& node : model_.graph().node()) add_node(node);
        for (const auto& output : model_.graph().output()) {
            declare(output);
            graph_->outputs.push_back(graph_->value(output.name()));
            graph_->output_names.push_back(output.name());
        }
        refuse_all(std::array{unsupported_operators(), open_dims_to_give()});
        return std::move(graph_);
    }

private:
    void add_initialisers() {
        for (const auto& tensor : model_.graph().initializer()) {
            Constant constant = read_tensor(tensor, folder_);
            Value* value = graph_->value(tensor.name());
            value->type = constant.type();
            value->constant = std::move(constant);
        }
    }

    void add_inputs() {
        for (const auto& input : model_.graph().input()) {
            Value* value = graph_->value(input.name());
            if (value->constant) continue;  // old models list initialisers as inputs too
            if (!input.type().has_tensor_type()) throw CompileError("input '{}' is not a tensor", input.name());
            value->type = input_type(input);
            graph_->inputs.push_back(value);
        }
        for (const auto& [name, number] : options_.dims) {
            if (!used_dims_.contains(name))
                throw CompileError("--dim {}={}: the model leaves no dim of that name open{}", name, number,
                                   open_dims_text());
        }
    }

    TensorType input_type(const onnx::ValueInfoProto& input) {
        const auto& tensor = input.type().tensor_type();
        if (!tensor.has_shape()) throw CompileError("input '{}' has no shape", input.name());
        std::vector<Dim> shape;
        for (int axis = 0; axis < tensor.shape().dim_size(); ++axis)
            shape.push_back(input_dim(input.name(), tensor.shape().dim(axis), axis));
        return {static_cast<ElementType>(tensor.elem_type()), std::move(shape)};
    }

    Dim input_dim(const std::string& input, const onnx::TensorShapeProto::Dimension& dim, int axis) {
        if (dim.has_dim_value() && dim.dim_value() >= 0) return dim.dim_value();
        const OpenDim open{dim.dim_param(), input, axis};
        dims_.push_back(open);
        for (const std::string& key : {open.place(), open.name}) {
            const auto given = options_.dims.find(key);
            if (key.empty() || given == options_.dims.end()) continue;
            used_dims_.insert(key);
            return given->second;
        }
        open_dims_.push_back(open);
        const std::string name = open.symbol_name();
        if (!symbols_.contains(name)) {
            const std::string symbol = symbol_names_.unique(name);
            symbols_[name] = Dim::symbol(symbol);
            graph_->symbols[symbol] = symbols_[name];
        }
        return symbols_[name];
    }

    /// What gives this dim a number with `--dim`: its name, but its place where it has none or where the name says
    /// nothing, as a '?' that stands at several axes of one input.
    std::string key_of(const OpenDim& dim) const {
        const auto is_namesake = [&](const OpenDim& other) {
            return other.name == dim.name && other.input == dim.input && other.axis != dim.axis;
        };
        const bool is_unclear = dim.name.empty() || std::any_of(dims_.begin(), dims_.end(), is_namesake);
        return is_unclear ? dim.place() : dim.name;
    }

    std::string open_dims_text() const {
        if (open_dims_.empty()) return "";
        std::set<std::string> keys;
        for (const OpenDim& dim : open_dims_) keys.insert(key_of(dim));
        return fmt::format("; open are: {}", fmt::join(keys, ", "));
    }

    /// A batch, which is one name that stands only at axis 0 of inputs, may stay open.
    std::string open_dims_to_give() const {
        std::set<std::string> keys, batches, batch_keys;
        for (const OpenDim& dim : open_dims_) {
            if (dim.axis != 0) keys.insert(key_of(dim));
        }
        for (const OpenDim& dim : open_dims_) {
            if (dim.axis != 0 || keys.contains(key_of(dim))) continue;
            batches.insert(dim.symbol_name());
            batch_keys.insert(key_of(dim));
        }
        if (batches.size() > 1) keys.merge(batch_keys);
        if (keys.empty()) return "";
        std::string flags;
        for (const std::string& key : keys) flags += fmt::format(" --dim '{}=N'", key);
        return "the model leaves dims open that must be given, with numbers for N:" + flags;
    }

    /// Notes what the model says of a value's type, for inference to compare with.
    void declare(const onnx::ValueInfoProto& value_info) {
        const auto& tensor = value_info.type().tensor_type();
        if (!value_info.type().has_tensor_type() || !tensor.has_shape()) return;
        std::vector<Dim> shape;
        for (const auto& dim : tensor.shape().dim())
            shape.push_back(dim.has_dim_value() && dim.dim_value() >= 0 ? Dim(dim.dim_value()) : Dim::symbol("?", 0));
        graph_->value(value_info.name())->declared =
            TensorType(static_cast<ElementType>(tensor.elem_type()), std::move(shape));
    }

    void add_node(const onnx::NodeProto& proto) {
        Node node;
        node.index = next_index_++;
        node.domain = normalised_domain(proto.domain());
        node.op_type = proto.op_type();
        node.name = !proto.name().empty()     ? proto.name()
                    : proto.output_size() > 0 ? proto.output(0)
                                              : fmt::format("{}_{}", proto.op_type(), node.index);
        const onnx::OpSchema* schema = find_schema(proto, opsets_);
        node.version = schema ? schema->since_version() : opsets_.of(proto.domain());
        if (schema) add_default_attributes(node, *schema);
        for (const auto& attribute : proto.attribute()) add_attribute(node, attribute);
        for (const auto& name : proto.input()) node.inputs.push_back(name.empty() ? nullptr : graph_->value(name));
        for (const auto& name : proto.output()) node.outputs.push_back(name.empty() ? nullptr : graph_->value(name));
        if (node.op_type == "Constant" && node.domain.empty() && node.has("value") && node.has_output(0)) {
            node.outputs[0]->constant = node.tensor("value");
            node.outputs[0]->type = node.outputs[0]->constant->type();
            return;
        }
        graph_->add(std::move(node));
    }

    static void add_default_attributes(Node& node, const onnx::OpSchema& schema) {
        for (const auto& [name, attribute] : schema.attributes()) {
            if (attribute.default_value.name() == name) add_plain_attribute(node, attribute.default_value);
        }
    }

    void add_attribute(Node& node, const onnx::AttributeProto& attribute) {
        if (attribute.type() == onnx::AttributeProto::TENSOR) {
            node.attributes[attribute.name()] = read_tensor(attribute.t(), folder_);
        } else {
            add_plain_attribute(node, attribute);
        }
    }

    /// Sub-graphs, sparse tensors and type protos are left out: no NodeGenerator reads them yet.
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
        default: node.attributes.erase(attribute.name());
        }
    }

    /// A line an operator, in the order of the graph.
    std::string unsupported_operators() const {
        std::vector<std::vector<const Node*>> groups;
        size_t count = 0;
        for (const auto& node : graph_->nodes()) {
            if (find_operator(node->domain, node->op_type, node->version)) continue;
            const auto is_alike = [&](const auto& group) {
                return group[0]->qualified_op() == node->qualified_op() && group[0]->version == node->version;
            };
            const auto group = std::find_if(groups.begin(), groups.end(), is_alike);
            (group == groups.end() ? groups.emplace_back() : *group).push_back(node.get());
            ++count;
        }
        if (groups.empty()) return "";
        std::string text = fmt::format("unsupported operators in {} of {} nodes:", count, graph_->nodes().size());
        for (const auto& group : groups) {
            text += fmt::format("\n  {} (version {}): {}'{}'", group[0]->qualified_op(), group[0]->version,
                                group.size() == 1 ? "node " : fmt::format("{} nodes, first ", group.size()),
                                group[0]->name);
        }
        return text;
    }

    /// All that is wrong is told at once.
    static void refuse_all(std::span<const std::string> problems) {
        std::vector<std::string> found;
        std::copy_if(problems.begin(), problems.end(), std::back_inserter(found),
                     [](const std::string& problem) { return !problem.empty(); });
        if (!found.empty()) throw CompileError("{}", fmt::join(found, "\n"));
    }

    const onnx::ModelProto& model_;
    std::filesystem::path folder_;
    const LoadOptions& options_;
    OpsetVersions opsets_;
    std::unique_ptr<Graph> graph_;
    Names symbol_names_;
    std::map<std::string, Dim> symbols_;     // by the model's names
    std::vector<OpenDim> dims_, open_dims_;  // all that the model leaves open, and those that got no number
    std::set<std::string> used_dims_;
    int next_index_ = 0;
};

}  // namespace

Model load_model(const std::filesystem::path& path, const LoadOptions& options) {
    try {
        const std::string bytes = read_model_file(path);
        onnx::ModelProto proto = parse_model(bytes);
        name_nodes(*proto.mutable_graph());
        check(proto, path);
        if (!options.until.empty()) cut_graph(*proto.mutable_graph(), options.until);
        inline_functions(proto);
        return {path.filename().string(), sha256(bytes), GraphBuilder(proto, path.parent_path(), options).build()};
    } catch (const CompileError& error) {
        throw CompileError("{}: {}", path.string(), error.what());
    }
}

int newest_opset() { return onnx::OpSchemaRegistry::DomainToVersionRange::Instance().Map().at("").second; }

}  // namespace onnx2halide
