#include "compiler/load/sort_nodes.h"

#include <functional>
#include <queue>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/load/subgraphs.h"

namespace onnx2halide {

namespace {

using Nodes = google::protobuf::RepeatedPtrField<onnx::NodeProto>;

/// The indices of the nodes in topological order. Nodes that are in order already stay so.
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
