#pragma once

#include <set>
#include <string>

#include <onnx/onnx_pb.h>

namespace onnx2halide {

/// Calls `visit` for every graph among the attributes of a node.
template <typename Visit>
void visit_subgraphs(const onnx::NodeProto& node, const Visit& visit) {
    for (const auto& attribute : node.attribute()) {
        if (attribute.has_g()) visit(attribute.g());
        for (const auto& graph : attribute.graphs()) visit(graph);
    }
}
template <typename Visit>
void visit_subgraphs(onnx::NodeProto& node, const Visit& visit) {
    for (auto& attribute : *node.mutable_attribute()) {
        if (attribute.has_g()) visit(*attribute.mutable_g());
        for (auto& graph : *attribute.mutable_graphs()) visit(graph);
    }
}

/// Adds the names of the values that a node reads, including those that its subgraphs capture.
void add_reads(const onnx::NodeProto& node, std::set<std::string>& reads);

}  // namespace onnx2halide
