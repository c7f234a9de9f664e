#pragma once

#include <map>
#include <string>

#include <onnx/defs/schema.h>
#include <onnx/onnx_pb.h>

namespace onnx2halide {

/// The opsets that a model imports, by domain.
class OpsetVersions {
public:
    explicit OpsetVersions(const onnx::ModelProto& model);
    /// The opset of a domain; 1 if the model does not import it.
    int of(const std::string& domain) const;

private:
    std::map<std::string, int> versions_;
};

/// Gives a node an opset of its own, which overrides the one that the model imports. Nodes of bodies that the compiler
/// writes have one.
void set_opset(onnx::NodeProto& node, int opset);

/// The schema of a node's operator in its opset, or null if ONNX has none.
const onnx::OpSchema* find_schema(const onnx::NodeProto& node, const OpsetVersions& opsets);

}  // namespace onnx2halide
