#include "compiler/load/subgraphs.h"

namespace onnx2halide {

namespace {

void add_reads(const onnx::GraphProto& graph, std::set<std::string>& reads) {
    std::set<std::string> own;
    for (const auto& node : graph.node()) onnx2halide::add_reads(node, own);
    for (const auto& output : graph.output()) own.insert(output.name());
    for (const auto& input : graph.input()) own.erase(input.name());
    for (const auto& constant : graph.initializer()) own.erase(constant.name());
    for (const auto& node : graph.node()) {
        for (const std::string& output : node.output()) own.erase(output);
    }
    reads.merge(own);
}

}  // namespace

void add_reads(const onnx::NodeProto& node, std::set<std::string>& reads) {
    reads.insert(node.input().begin(), node.input().end());
    visit_subgraphs(node, [&](const onnx::GraphProto& graph) { add_reads(graph, reads); });
}

}  // namespace onnx2halide
