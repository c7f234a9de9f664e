#include "compiler/load/schema.h"

#include <charconv>
#include <optional>

namespace onnx2halide {

namespace {

constexpr const char* opset_key = "onnx2halide.opset";

/// The opset that set_opset() has given a node.
std::optional<int> own_opset(const onnx::NodeProto& node) {
    for (const auto& entry : node.metadata_props()) {
        const std::string& text = entry.value();
        int opset = 0;
        if (entry.key() == opset_key &&
            std::from_chars(text.data(), text.data() + text.size(), opset).ec == std::errc())
            return opset;
    }
    return std::nullopt;
}

}  // namespace

OpsetVersions::OpsetVersions(const onnx::ModelProto& model) {
    for (const auto& import : model.opset_import()) versions_[import.domain()] = static_cast<int>(import.version());
    versions_.try_emplace("", 1);
}

int OpsetVersions::of(const std::string& domain) const {
    const auto found = versions_.find(domain);
    return found == versions_.end() ? 1 : found->second;
}

void set_opset(onnx::NodeProto& node, int opset) {
    auto& entry = *node.add_metadata_props();
    entry.set_key(opset_key);
    entry.set_value(std::to_string(opset));
}

const onnx::OpSchema* find_schema(const onnx::NodeProto& node, const OpsetVersions& opsets) {
    const int opset = own_opset(node).value_or(opsets.of(node.domain()));
    return onnx::OpSchemaRegistry::Schema(node.op_type(), opset, node.domain());
}

}  // namespace onnx2halide
