#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "compiler/graph/box_type.h"
#include "compiler/passes/passes.h"
#include "ops/control_flow.h"
#include "ops/node_generator.h"

namespace onnx2halide {

namespace {

/// Whether neither the model nor the user gives bounds for a dim.
bool is_unbounded(const Dim& dim) { return dim.lower_bound() == 1 && dim.upper_bound() == Dim::unbounded; }

void add_symbols(const TensorType& type, std::set<std::string>& symbols) {
    for (const Dim& dim : type.shape) symbols.merge(dim.symbols());
    if (type.box) add_symbols(type.box->item, symbols);
}

void add_symbols(const std::vector<Value*>& values, std::set<std::string>& symbols) {
    for (const Value* value : values) {
        if (!value) continue;
        add_symbols(value->checked_type(), symbols);
        if (!value->known) continue;
        for (const Dim& element : value->known->integers) symbols.merge(element.symbols());
    }
}

bool is_host_operator(const Node& node) { return !is_control_flow(node) && !make_generator(node)->is_kernel(); }

/// The symbols that kernels, subgraphs, nodes' results or the graph's outputs depend on: all but those in the inputs of
/// functions of the runtime.
std::set<std::string> counted_symbols(Graph& graph) {
    std::set<std::string> symbols;
    add_symbols(graph.outputs, symbols);
    for_each_graph(graph, [&](Graph& each) {
        if (&each != &graph) add_symbols(each.inputs, symbols);
        for (const auto& node : each.nodes()) {
            add_symbols(node->outputs, symbols);
            if (!is_host_operator(*node)) add_symbols(node->inputs, symbols);
        }
    });
    return symbols;
}

}  // namespace

void allow_empty(Graph& graph) {
    const std::set<std::string> counted = counted_symbols(graph);
    std::map<std::string, Dim> wider;
    for (auto& [symbol, dim] : graph.symbols) {
        if (is_unbounded(dim) && !counted.contains(symbol)) wider[symbol] = dim = Dim::symbol(symbol, 0);
    }
    for (Value* input : graph.inputs) {
        for (auto* type : {&input->type, &input->port}) {
            if (!*type) continue;
            for (Dim& dim : (*type)->shape) dim = dim.substitute(wider);
        }
    }
}

}  // namespace onnx2halide
