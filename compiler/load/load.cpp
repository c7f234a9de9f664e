#include "compiler/load/load.h"

#include <iterator>
#include <set>
#include <sstream>

#include <fmt/ranges.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <onnx/checker.h>

#include "compiler/build/files.h"
#include "compiler/build/sha256.h"
#include "compiler/load/cut.h"
#include "compiler/load/functions.h"
#include "compiler/load/schema.h"
#include "compiler/load/tensor.h"
#include "ops/names.h"
#include "ops/node_generator.h"

namespace onnx2halide {

namespace {

std::string read_file(const std::filesystem::path& path) {
    if (std::filesystem::is_directory(path)) throw CompileError("is a folder, expected an ONNX model");
    try {
        return read_text(path);
    } catch (const std::runtime_error&) {
        throw CompileError("cannot be read");
    }
}

onnx::ModelProto parse(const std::string& bytes) {
    onnx::ModelProto model;
    google::protobuf::io::ArrayInputStream stream(bytes.data(),
                                                  static_cast<int>(std::min<size_t>(bytes.size(), INT32_MAX)));
    google::protobuf::io::CodedInputStream input(&stream);
    input.SetTotalBytesLimit(INT32_MAX);
    if (bytes.size() > INT32_MAX) throw CompileError("is larger than 2 GiB, expected its weights in external data");
    if (!model.ParseFromCodedStream(&input) || !input.ConsumedEntireMessage() || !model.has_graph()) {
        throw CompileError("is not an ONNX model, or is truncated");
    }
    return model;
}

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
        refuse_open_dims();
        for (const auto& info : model_.graph().value_info()) declare(info);
        for (const auto& node : model_.graph().node()) add_node(node);
        for (const auto& output : model_.graph().output()) {
            declare(output);
            graph_->outputs.push_back(graph_->value(output.name()));
            graph_->output_names.push_back(output.name());
        }
        refuse_unsupported();
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
        const bool named = dim.has_dim_param() && !dim.dim_param().empty();
        const std::string name = named ? dim.dim_param() : fmt::format("{}_dim_{}", input, axis);
        const auto given = options_.dims.find(name);
        if (given != options_.dims.end()) {
            used_dims_.insert(name);
            return given->second;
        }
        open_dims_.insert(name);
        if (axis != 0) inner_dims_.insert(name);
        if (!symbols_.contains(name)) {
            const std::string symbol = symbol_names_.unique(name);
            symbols_[name] = Dim::symbol(symbol);
            graph_->symbols[symbol] = symbols_[name];
        }
        return symbols_[name];
    }

    std::string open_dims_text() const {
        if (open_dims_.empty()) return "";
        return fmt::format("; open are: {}", fmt::join(open_dims_, ", "));
    }

    /// A batch, which is one name that stands only at axis 0 of inputs, may stay open.
    void refuse_open_dims() const {
        std::set<std::string> refused = inner_dims_;
        if (open_dims_.size() > inner_dims_.size() + 1) refused = open_dims_;
        if (refused.empty()) return;
        std::string flags;
        for (const std::string& name : refused) flags += fmt::format(" --dim '{}=N'", name);
        throw CompileError("the model leaves dims open that must be given, with numbers for N:{}", flags);
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

    void refuse_unsupported() const {
        std::vector<std::string> lines;
        for (const auto& node : graph_->nodes()) {
            if (!find_operator(node->domain, node->op_type, node->version)) {
                lines.push_back(fmt::format("{}: unsupported operator (version {})", node->label(), node->version));
            }
        }
        if (lines.size() == 1) throw CompileError(lines[0]);
        if (!lines.empty())
            throw CompileError("{} nodes are unsupported:\n  {}", lines.size(), fmt::join(lines, "\n  "));
    }

    const onnx::ModelProto& model_;
    std::filesystem::path folder_;
    const LoadOptions& options_;
    OpsetVersions opsets_;
    std::unique_ptr<Graph> graph_;
    Names symbol_names_;
    std::map<std::string, Dim> symbols_;  // by the model's names
    std::set<std::string> open_dims_, inner_dims_, used_dims_;
    int next_index_ = 0;
};

}  // namespace

Model load_model(const std::filesystem::path& path, const LoadOptions& options) {
    const std::string file = path.filename().string();
    try {
        const std::string bytes = read_file(path);
        onnx::ModelProto proto = parse(bytes);
        name_nodes(*proto.mutable_graph());
        check(proto, path);
        if (!options.until.empty()) cut_graph(*proto.mutable_graph(), options.until);
        inline_functions(proto);
        return {file, sha256(bytes), GraphBuilder(proto, path.parent_path(), options).build()};
    } catch (const CompileError& error) {
        throw CompileError("{}: {}", file, error.what());
    }
}

}  // namespace onnx2halide
