#include "compiler/load/outline.h"

#include <algorithm>
#include <map>
#include <set>

#include "compiler/graph/error.h"
#include "compiler/io/sha256.h"
#include "compiler/load/model_file.h"
#include "compiler/load/schema.h"
#include "compiler/load/type_proto.h"

namespace onnx2halide {

namespace {

Dim dim_of(const onnx::TensorShapeProto::Dimension& dim) {
    if (dim.has_dim_value() && dim.dim_value() >= 0) return dim.dim_value();
    return Dim::symbol(dim.dim_param().empty() ? "?" : dim.dim_param());
}

/// The name and type of a value; the element type is undefined if the file does not declare it.
Port port_of(const onnx::ValueInfoProto& value) {
    if (value.type().value_case() == onnx::TypeProto::VALUE_NOT_SET) return {value.name(), TensorType()};
    if (!value.type().has_tensor_type()) return {value.name(), read_type(value.type()).value()};
    const auto& type = value.type().tensor_type();
    std::vector<Dim> shape;
    for (const auto& dim : type.shape().dim()) shape.push_back(dim_of(dim));
    if (!type.has_shape()) shape.push_back(Dim::symbol("…"));
    return {value.name(), TensorType(element_type_of(type.elem_type()), std::move(shape))};
}

std::vector<std::pair<std::string, size_t>> count_operators(const onnx::GraphProto& graph) {
    std::map<std::string, size_t> counts;
    for (const auto& node : graph.node()) {
        const std::string& domain = node.domain();
        ++counts[domain.empty() ? node.op_type() : domain + "." + node.op_type()];
    }
    std::vector<std::pair<std::string, size_t>> operators(counts.begin(), counts.end());
    std::stable_sort(operators.begin(), operators.end(),
                     [](const auto& a, const auto& b) { return a.second > b.second; });
    return operators;
}

}  // namespace

Outline outline_model(const std::filesystem::path& path) {
    try {
        const std::string bytes = read_model_file(path);
        const onnx::ModelProto model = parse_model(bytes);
        const onnx::GraphProto& graph = model.graph();
        Outline outline{path.filename().string(), sha256(bytes), OpsetVersions(model).of(""), {}, {},
                        count_operators(graph)};
        std::set<std::string> initialisers;
        for (const auto& tensor : graph.initializer()) initialisers.insert(tensor.name());
        for (const auto& input : graph.input()) {
            if (!initialisers.contains(input.name())) outline.inputs.push_back(port_of(input));
        }
        for (const auto& output : graph.output()) outline.outputs.push_back(port_of(output));
        return outline;
    } catch (const CompileError& error) {
        throw CompileError("{}: {}", path.string(), error.what());
    }
}

}  // namespace onnx2halide
