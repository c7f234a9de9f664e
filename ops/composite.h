#pragma once

#include <string>
#include <vector>

#include "compiler/graph/new_node.h"
#include "ops/node_generator.h"

namespace onnx2halide {

/// Builds the nodes that replace one node. They are inserted into the graph before it, after its inputs' producers.
class CompositeBuilder {
public:
    CompositeBuilder(Graph& graph, const Node& node) : graph_(graph), node_(node) {}

    const Node& node() const { return node_; }
    bool has_input(size_t i) const { return node_.has_input(i); }
    /// An input of the node. Throws CompileError if it is omitted.
    Value* input(size_t i) const;
    /// The same, null if it is omitted.
    Value* optional_input(size_t i) const { return has_input(i) ? node_.inputs[i] : nullptr; }

    /// Adds a node. Returns its one result, whose name says its role in the expanded node.
    Value* add(const std::string& role, NewNode node);
    Value* constant(const std::string& role, Constant constant);
    Value* constant(const std::string& role, std::vector<int64_t> shape, const std::vector<std::string>& strings);

private:
    Graph& graph_;
    const Node& node_;

    std::string name(const std::string& role) const;
};

/// Builds the nodes that replace one node, and returns the values that replace its outputs.
using Expand = std::vector<Value*> (*)(CompositeBuilder&);

/// A node that is expanded into other operators, which define it, before the graph is divided into kernels.
class Composite : public NodeGenerator {
public:
    Composite(const Node& node, Expand expand) : NodeGenerator(node), expand_(expand) {}

    std::vector<TensorType> infer() const override;
    /// Never called: the node is expanded before kernels are written.
    void algorithm(KernelSource& source) const override;
    bool is_kernel() const override { return false; }
    Dim flops() const override;

    /// Inserts the nodes into the node's graph, before it.
    std::vector<Value*> expand(Graph& graph) const;

    /// Replaces an output of the node by a value that the expansion computes, which takes over its name.
    static void rename(Graph& graph, Value* result, Value* output);

private:
    Expand expand_;

    std::vector<Value*> expand_copy(Graph& scratch) const;
    std::vector<Value*> expand_known(Graph& scratch, const Node& copy) const;
};

/// A composite that accepts operands known only at run time. It is expanded during inference, as its nodes may ask for
/// elements of each other's results.
class EarlyComposite : public Composite {
public:
    using Composite::Composite;
};

/// Makes a row's generator: `make_composite<expand_gelu>`.
template <Expand expand>
std::unique_ptr<NodeGenerator> make_composite(const Node& node) {
    return std::make_unique<Composite>(node, expand);
}

}  // namespace onnx2halide
