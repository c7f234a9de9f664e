#include "compiler/load/load.h"

#include <future>
#include <iterator>
#include <sstream>
#include <utility>
#include <vector>

#include <fmt/ranges.h>
#include <onnx/checker.h>

#include "compiler/io/sha256.h"
#include "compiler/load/cut.h"
#include "compiler/load/expand.h"
#include "compiler/load/functions.h"
#include "compiler/load/graph_builder.h"
#include "compiler/load/model_file.h"
#include "compiler/load/schema.h"
#include "compiler/load/sort_nodes.h"
#include "compiler/load/subgraphs.h"

namespace onnx2halide {

namespace {

/// The checker's message as one phrase, with its context, the node, in parentheses.
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

/// Names nodes without a name after their first outputs, for the checker's messages and our own.
void name_nodes(onnx::GraphProto& graph) {
    for (auto& node : *graph.mutable_node()) {
        if (node.name().empty() && node.output_size() > 0) node.set_name(node.output(0));
    }
}

/// Checks that opsets exist: ONNX's checker accepts unknown future ones.
void check_opsets(const onnx::ModelProto& model) {
    const auto& known = onnx::OpSchemaRegistry::DomainToVersionRange::Instance().Map();
    for (const auto& import : model.opset_import()) {
        const auto range = known.find(import.domain());
        if (range == known.end() || import.version() <= range->second.second) continue;
        throw CompileError("uses opset {} of {}, expected at most {}", import.version(),
                           import.domain().empty() ? "ai.onnx" : import.domain(), range->second.second);
    }
}

/// Changes a model, for the lifetime of this object, to what the checker should see. Outputs without a declared type,
/// which inference finds, are scalars. Weights in external files are empty: the checker would look for these in the
/// working folder, and read_tensor has better messages.
class CheckedModel {
public:
    explicit CheckedModel(onnx::ModelProto& model) : graph_(*model.mutable_graph()), outputs_(graph_.output()) {
        for (auto& output : *graph_.mutable_output()) {
            const auto kind = output.type().value_case();
            if (kind == onnx::TypeProto::VALUE_NOT_SET) output.mutable_type()->mutable_tensor_type()->set_elem_type(1);
            if (output.type().has_tensor_type()) output.mutable_type()->mutable_tensor_type()->mutable_shape();
        }
        set_weights_aside(graph_);
        for (auto& function : *model.mutable_functions()) set_weights_aside(*function.mutable_node());
    }
    ~CheckedModel() {
        graph_.mutable_output()->Swap(&outputs_);
        for (auto& [tensor, original] : weights_) tensor->Swap(&original);
    }
    CheckedModel(const CheckedModel&) = delete;

private:
    onnx::GraphProto& graph_;
    google::protobuf::RepeatedPtrField<onnx::ValueInfoProto> outputs_;
    std::vector<std::pair<onnx::TensorProto*, onnx::TensorProto>> weights_;

    void set_weights_aside(onnx::GraphProto& graph) {
        for (auto& tensor : *graph.mutable_initializer()) set_aside(tensor);
        for (auto& tensor : *graph.mutable_sparse_initializer()) set_aside(tensor);
        set_weights_aside(*graph.mutable_node());
    }

    void set_weights_aside(google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes) {
        for (auto& node : nodes) {
            for (auto& attribute : *node.mutable_attribute()) {
                if (attribute.has_t()) set_aside(*attribute.mutable_t());
                if (attribute.has_sparse_tensor()) set_aside(*attribute.mutable_sparse_tensor());
            }
            visit_subgraphs(node, [&](onnx::GraphProto& inner) { set_weights_aside(inner); });
        }
    }

    void set_aside(onnx::SparseTensorProto& tensor) {
        set_aside(*tensor.mutable_values());
        set_aside(*tensor.mutable_indices());
    }

    void set_aside(onnx::TensorProto& tensor) {
        if (tensor.data_location() != onnx::TensorProto::EXTERNAL) return;
        onnx::TensorProto empty;
        empty.set_name(tensor.name());
        empty.set_data_type(tensor.data_type());
        empty.add_dims(0);
        tensor.Swap(&empty);
        weights_.emplace_back(&tensor, std::move(empty));
    }
};

void check(onnx::ModelProto& model) {
    try {
        const CheckedModel checked(model);
        constexpr bool infers_shapes = false, takes_functions_of_any_opset = true;
        onnx::checker::check_model(model, infers_shapes, takes_functions_of_any_opset);
    } catch (const std::exception& error) {
        throw CompileError("rejected by ONNX's checker: {}", checker_message(error.what()));
    }
    check_opsets(model);
}

}  // namespace

Model load_model(const std::filesystem::path& path, const LoadOptions& options) {
    try {
        const std::string bytes = read_model_file(path);
        auto hash = std::async(std::launch::async, [&] { return sha256(bytes); });
        onnx::ModelProto proto = parse_model(bytes);
        name_nodes(*proto.mutable_graph());
        adopt_operators(proto);
        import_domains(proto);
        sort_nodes(*proto.mutable_graph());
        check(proto);
        if (!options.until.empty()) cut_graph(*proto.mutable_graph(), options.until);
        replace_by_bodies(proto);
        auto graph = build_graph(proto, path.parent_path(), options);
        return {path.filename().string(), hash.get(), std::move(graph)};
    } catch (const CompileError& error) {
        throw CompileError("{}: {}", path.string(), error.what());
    }
}

int newest_opset() { return onnx::OpSchemaRegistry::DomainToVersionRange::Instance().Map().at("").second; }

}  // namespace onnx2halide
