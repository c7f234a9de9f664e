#include "compiler/load/sort_nodes.h"

#include <functional>
#include <queue>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

namespace onnx2halide {

namespace {

using Nodes = google::protobuf::RepeatedPtrField<onnx::NodeProto>;

void add_reads(const onnx::NodeProto& node, std::set<std::string>& names);

/// What a graph inside of a node reads of the graph around it.
void add_reads(const onnx::GraphProto& graph, std::set<std::string>& names) {
    std::set<std::string> reads;
    for (const auto& node : graph.node()) add_reads(node, reads);
    for (const auto& output : graph.output()) reads.insert(output.name());
    for (const auto& input : graph.input()) reads.erase(input.name());
    for (const auto& constant : graph.initializer()) reads.erase(constant.name());
    for (const auto& node : graph.node()) {
        for (const std::string& output : node.output()) reads.erase(output);
    }
    names.merge(reads);
}

void add_reads(const onnx::NodeProto& node, std::set<std::string>& names) {
    names.insert(node.input().begin(), node.input().end());
    for (const auto& attribute : node.attribute()) {
        if (attribute.has_g()) add_reads(attribute.g(), names);
        for (const auto& graph : attribute.graphs()) add_reads(graph, names);
    }
}

/// The places of nodes in an order in which each may run. Nodes that are in order stay so.
std::vector<int> running_order(const Nodes& nodes) {
    std::unordered_map<std::string, int> producers;
    for (int i = 0; i < nodes.size(); ++i) {
        for (const std::string& output : nodes[i].output()) {
            if (!output.empty()) producers.emplace(output, i);
        }
    }
    std::vector<std::vector<int>> readers(nodes.size());
    std::vector<int> missing(nodes.size(), 0);
    for (int i = 0; i < nodes.size(); ++i) {
        std::set<std::string> reads;
        add_reads(nodes[i], reads);
        for (const std::string& name : reads) {
            const auto producer = producers.find(name);
            if (producer == producers.end()) continue;
            readers[producer->second].push_back(i);
            ++missing[i];
        }
    }
    std::priority_queue<int, std::vector<int>, std::greater<>> ready;
    for (int i = 0; i < nodes.size(); ++i) {
        if (missing[i] == 0) ready.push(i);
    }
    std::vector<int> order;
    while (!ready.empty()) {
        const int next = ready.top();
        ready.pop();
        order.push_back(next);
        for (const int reader : readers[next]) {
            if (--missing[reader] == 0) ready.push(reader);
        }
    }
    for (int i = 0; i < nodes.size(); ++i) {
        if (missing[i] > 0) order.push_back(i);
    }
    return order;
}

}  // namespace

void sort_nodes(onnx::GraphProto& graph) {
    Nodes& nodes = *graph.mutable_node();
    Nodes sorted;
    for (const int i : running_order(nodes)) sorted.Add()->Swap(&nodes[i]);
    nodes.Swap(&sorted);
}

}  // namespace onnx2halide
