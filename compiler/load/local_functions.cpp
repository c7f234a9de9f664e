#include "compiler/load/local_functions.h"

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>

#include <fmt/format.h>
#include <onnx/inliner/inliner.h>

#include "compiler/graph/error.h"
#include "compiler/load/schema.h"
#include "compiler/load/subgraphs.h"

namespace onnx2halide {

namespace {

/// Sets the opset of a function's nodes, which differs from the model's.
template <typename Nodes>
void keep_opset(Nodes& nodes, const std::string& domain, int64_t opset) {
    for (onnx::NodeProto& node : nodes) {
        if (node.domain() == domain) set_opset(node, static_cast<int>(opset));
        visit_subgraphs(node, [&](onnx::GraphProto& graph) { keep_opset(*graph.mutable_node(), domain, opset); });
    }
}

/// Makes functions import the model's opsets, while their nodes keep their own: ONNX's inliner skips functions whose
/// opset differs from the model's. The model imports what only functions do.
void unite_opsets(onnx::ModelProto& model) {
    std::map<std::string, int64_t> versions;
    for (const auto& import : model.opset_import()) versions[import.domain()] = import.version();
    for (onnx::FunctionProto& function : *model.mutable_functions()) {
        for (onnx::OperatorSetIdProto& import : *function.mutable_opset_import()) {
            const std::string& domain = import.domain();
            const auto known = versions.find(domain);
            if (known == versions.end()) {
                *model.add_opset_import() = import;
                versions[domain] = import.version();
                continue;
            }
            if (known->second == import.version()) continue;
            keep_opset(*function.mutable_node(), domain, import.version());
            import.set_version(known->second);
        }
    }
}

/// Domain, name and overload of a function.
using FunctionKey = std::tuple<std::string, std::string, std::string>;
using Functions = std::map<FunctionKey, const onnx::FunctionProto*>;

template <typename Nodes>
void add_defaults(Nodes& nodes, const Functions& functions) {
    for (onnx::NodeProto& node : nodes) {
        visit_subgraphs(node, [&](onnx::GraphProto& graph) { add_defaults(*graph.mutable_node(), functions); });
        const auto called = functions.find({node.domain(), node.op_type(), node.overload()});
        if (called == functions.end()) continue;
        std::set<std::string> given;
        for (const onnx::AttributeProto& attribute : node.attribute()) given.insert(attribute.name());
        for (const onnx::AttributeProto& attribute : called->second->attribute_proto()) {
            if (!given.contains(attribute.name())) *node.add_attribute() = attribute;
        }
    }
}

/// Gives calls the default attributes of their functions, which ONNX's inliner does not look at.
void add_defaults(onnx::ModelProto& model) {
    Functions functions;
    for (const onnx::FunctionProto& function : model.functions())
        functions[{function.domain(), function.name(), function.overload()}] = &function;
    add_defaults(*model.mutable_graph()->mutable_node(), functions);
    for (onnx::FunctionProto& function : *model.mutable_functions()) add_defaults(*function.mutable_node(), functions);
}

std::set<std::string> names_made_by(const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes) {
    std::set<std::string> names;
    for (const onnx::NodeProto& node : nodes) names.insert(node.output().begin(), node.output().end());
    return names;
}

/// Adds a node that copies a value, and returns the name of the copy. `count` numbers the copies.
std::string add_copy(google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes, const std::string& value, int& count) {
    onnx::NodeProto& copy = *nodes.Add();
    copy.set_op_type("Identity");
    copy.add_input(value);
    copy.add_output(fmt::format("{}_returned_{}", value, count++));
    return copy.output(0);
}

/// Copies the outputs of a function's subgraphs that are not the results of nodes in them, or occur twice: ONNX's
/// inliner renames each output as if a node made it.
void copy_returned_values(google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes, int& count) {
    for (onnx::NodeProto& owner : nodes) {
        visit_subgraphs(owner, [&](onnx::GraphProto& graph) {
            copy_returned_values(*graph.mutable_node(), count);
            std::set<std::string> made = names_made_by(graph.node());
            for (onnx::ValueInfoProto& output : *graph.mutable_output()) {
                if (made.erase(output.name()) == 0)
                    output.set_name(add_copy(*graph.mutable_node(), output.name(), count));
            }
        });
    }
}

/// Copies a function's outputs that are its inputs: ONNX's inliner expects a node that makes each.
void copy_returned_operands(onnx::FunctionProto& function, int& count) {
    const std::set<std::string> made = names_made_by(function.node());
    for (std::string& output : *function.mutable_output()) {
        if (!made.contains(output)) output = add_copy(*function.mutable_node(), output, count);
    }
}

/// The message of an assertion in ONNX, without the source location.
std::string without_assertion(const std::string& text) {
    constexpr std::string_view end = "` failed: ";
    const size_t place = text.find(end);
    return place == std::string::npos ? text : text.substr(place + end.size());
}

}  // namespace

void inline_local_functions(onnx::ModelProto& model) {
    unite_opsets(model);
    add_defaults(model);
    for (onnx::FunctionProto& function : *model.mutable_functions()) {
        int count = 0;
        copy_returned_values(*function.mutable_node(), count);
        copy_returned_operands(function, count);
    }
    // The inliner asserts conditions that ONNX's checker does not check, such as that a call has no more operands than
    // its function.
    try {
        onnx::inliner::InlineLocalFunctions(model);
    } catch (const std::exception& error) {
        throw CompileError("the model's functions cannot be inlined: {}", without_assertion(error.what()));
    }
}

}  // namespace onnx2halide
