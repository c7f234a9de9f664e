#include "compiler/load/model_file.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include "compiler/graph/error.h"
#include "compiler/io/files.h"
#include "compiler/load/subgraphs.h"

namespace onnx2halide {

namespace {

/// ONNX's own domain has two names, "" and "ai.onnx". ONNX's library knows its functions by the empty one only.
void normalise_domain(std::string& domain) {
    if (domain == "ai.onnx") domain.clear();
}

template <typename Nodes>
void normalise_domains_of(Nodes& nodes) {
    for (onnx::NodeProto& node : nodes) {
        normalise_domain(*node.mutable_domain());
        visit_subgraphs(node, [](onnx::GraphProto& graph) { normalise_domains_of(*graph.mutable_node()); });
    }
}

void normalise_domains(onnx::ModelProto& model) {
    for (onnx::OperatorSetIdProto& import : *model.mutable_opset_import()) normalise_domain(*import.mutable_domain());
    normalise_domains_of(*model.mutable_graph()->mutable_node());
    for (onnx::FunctionProto& function : *model.mutable_functions()) {
        normalise_domain(*function.mutable_domain());
        for (onnx::OperatorSetIdProto& import : *function.mutable_opset_import())
            normalise_domain(*import.mutable_domain());
        normalise_domains_of(*function.mutable_node());
    }
}

}  // namespace

std::string read_model_file(const std::filesystem::path& path) {
    if (std::filesystem::is_directory(path)) throw CompileError("is a folder, expected an ONNX model");
    try {
        return read_text(path);
    } catch (const FileError& error) {
        throw CompileError("cannot be read: {}", error.reason());
    }
}

onnx::ModelProto parse_model(const std::string& bytes) {
    onnx::ModelProto model;
    google::protobuf::io::ArrayInputStream stream(bytes.data(),
                                                  static_cast<int>(std::min<size_t>(bytes.size(), INT32_MAX)));
    google::protobuf::io::CodedInputStream input(&stream);
    input.SetTotalBytesLimit(INT32_MAX);
    if (bytes.size() > INT32_MAX) throw CompileError("is larger than 2 GiB, expected its weights in external data");
    if (!model.ParseFromCodedStream(&input) || !input.ConsumedEntireMessage() || !model.has_graph()) {
        throw CompileError("is not an ONNX model, or is truncated");
    }
    normalise_domains(model);
    return model;
}

}  // namespace onnx2halide
