#pragma once

#include <map>
#include <string>

#include <onnx/defs/schema.h>
#include <onnx/onnx_pb.h>

namespace onnx2halide {

/// ONNX's own domain has two names; ours is the empty one.
std::string normalised_domain(const std::string& domain);

/// The opset that a model imports for each domain.
class OpsetVersions {
public:
    explicit OpsetVersions(const onnx::ModelProto& model);
    /// 1 where the model does not say.
    int of(const std::string& domain) const;

private:
    std::map<std::string, int> versions_;
};

/// Lets an opset of its own govern a node instead of the one that the model imports, as those of bodies need that the
/// compiler writes.
void set_opset(onnx::NodeProto& node, int opset);

/// The schema that governs a node, or null where ONNX knows no such operator.
const onnx::OpSchema* find_schema(const onnx::NodeProto& node, const OpsetVersions& opsets);

}  // namespace onnx2halide
