#include "compiler/load/schema.h"

namespace onnx2halide {

std::string normalised_domain(const std::string& domain) { return domain == "ai.onnx" ? "" : domain; }

OpsetVersions::OpsetVersions(const onnx::ModelProto& model) {
    for (const auto& import : model.opset_import())
        versions_[normalised_domain(import.domain())] = static_cast<int>(import.version());
    versions_.try_emplace("", 1);
}

int OpsetVersions::of(const std::string& domain) const {
    const auto found = versions_.find(normalised_domain(domain));
    return found == versions_.end() ? 1 : found->second;
}

const onnx::OpSchema* find_schema(const onnx::NodeProto& node, const OpsetVersions& opsets) {
    return onnx::OpSchemaRegistry::Schema(node.op_type(), opsets.of(node.domain()), normalised_domain(node.domain()));
}

}  // namespace onnx2halide
