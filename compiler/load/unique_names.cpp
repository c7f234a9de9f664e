#include "compiler/load/unique_names.h"

#include <map>
#include <set>
#include <string>

#include <fmt/format.h>
#include <onnx/onnx_pb.h>

#include "compiler/load/subgraphs.h"

namespace onnx2halide {

namespace {

/// Maps the names that are visible in a graph, its own and captured ones, to their new names.
using Scope = std::map<std::string, std::string>;

class UniqueNames {
public:
    void rename(onnx::GraphProto& graph, Scope scope) {
        std::set<std::string> inputs;
        for (auto& input : *graph.mutable_input()) {
            inputs.insert(input.name());
            define(*input.mutable_name(), scope);
        }
        const auto define_constant = [&](std::string& name) {
            // Old models list constants as inputs, too.
            inputs.contains(name) ? look_up(name, scope) : define(name, scope);
        };
        for (auto& constant : *graph.mutable_initializer()) define_constant(*constant.mutable_name());
        for (auto& constant : *graph.mutable_sparse_initializer())
            define_constant(*constant.mutable_values()->mutable_name());
        // Before those in subgraphs, which may have the name of a value that is defined behind their node.
        Scope own;
        for (const auto& node : graph.node()) {
            for (const std::string& output : node.output()) own[output] = reserve(output);
        }
        for (auto& node : *graph.mutable_node()) {
            for (auto& input : *node.mutable_input()) look_up(input, scope);
            visit_subgraphs(node, [&](onnx::GraphProto& inner) { rename(inner, scope); });
            for (auto& output : *node.mutable_output()) output = scope[output] = own.at(output);
        }
        for (auto& value : *graph.mutable_value_info()) look_up(*value.mutable_name(), scope);
        for (auto& output : *graph.mutable_output()) look_up(*output.mutable_name(), scope);
    }

private:
    std::set<std::string> names_;

    /// A name of which there is no other; nothing for the empty name of omitted values.
    std::string reserve(const std::string& name) {
        std::string result = name;
        for (int i = 2; !result.empty() && !names_.insert(result).second; ++i) result = fmt::format("{}_{}", name, i);
        return result;
    }

    void define(std::string& name, Scope& scope) { name = scope[name] = reserve(name); }

    static void look_up(std::string& name, const Scope& scope) {
        if (const auto found = scope.find(name); found != scope.end()) name = found->second;
    }
};

}  // namespace

void make_names_unique(onnx::GraphProto& graph) { UniqueNames().rename(graph, {}); }

}  // namespace onnx2halide
