#include "compiler/load/functions.h"

#include <map>
#include <set>
#include <string>
#include <string_view>

#include <onnx/defs/schema.h>
#include <onnx/inliner/inliner.h>
#include <onnx/shape_inference/implementation.h>

#include "compiler/load/expand.h"
#include "compiler/load/schema.h"
#include "compiler/load/subgraphs.h"
#include "compiler/load/unique_names.h"
#include "ops/node_generator.h"

namespace onnx2halide {

namespace {

/// Adds the function operators of a graph and its subgraphs that have no NodeGenerator.
void add_expandable_operators(onnx::GraphProto& graph, const OpsetVersions& opsets,
                              std::set<onnx::inliner::FunctionId>& found) {
    for (auto& node : *graph.mutable_node()) {
        visit_subgraphs(node, [&](onnx::GraphProto& inner) { add_expandable_operators(inner, opsets, found); });
        const onnx::OpSchema* schema = find_schema(node, opsets);
        if (!schema || find_operator(normalised_domain(node.domain()), node.op_type(), schema->since_version()))
            continue;
        if (schema->HasFunction() || schema->HasContextDependentFunction())
            found.emplace(node.domain(), node.op_type());
    }
}

onnx::inliner::FunctionIdVector expandable_operators(onnx::ModelProto& model) {
    std::set<onnx::inliner::FunctionId> found;
    add_expandable_operators(*model.mutable_graph(), OpsetVersions(model), found);
    return {found.begin(), found.end()};
}

/// Declares the types of constants. ONNX's inliner looks up the types of a call's inputs in the value_info of the
/// model's graph, which lacks them.
void declare_constants(const onnx::GraphProto& graph, onnx::GraphProto& declared) {
    for (const auto& constant : graph.initializer()) {
        auto& info = *declared.add_value_info();
        info.set_name(constant.name());
        auto& type = *info.mutable_type()->mutable_tensor_type();
        type.set_elem_type(constant.data_type());
        for (const int64_t dim : constant.dims()) type.mutable_shape()->add_dim()->set_dim_value(dim);
    }
}

/// Declares the values of all subgraphs, as far as their types are known.
void declare_inner_values(const onnx::GraphProto& graph, onnx::GraphProto& declared) {
    for (const auto& node : graph.node()) {
        visit_subgraphs(node, [&](const onnx::GraphProto& inner) {
            declare_constants(inner, declared);
            for (const auto* values : {&inner.value_info(), &inner.input(), &inner.output()}) {
                for (const auto& value : *values) {
                    if (value.has_type()) *declared.add_value_info() = value;
                }
            }
            declare_inner_values(inner, declared);
        });
    }
}

bool has_graphs_inside(const onnx::GraphProto& graph) {
    bool found = false;
    for (const auto& node : graph.node()) visit_subgraphs(node, [&](const onnx::GraphProto&) { found = true; });
    return found;
}

/// A copy of the model in which subgraphs declare types, too, as far as ONNX's inference finds them.
onnx::ModelProto with_inferred_types(const onnx::ModelProto& model) {
    onnx::ModelProto inferred = model;
    try {
        onnx::shape_inference::InferShapes(inferred);
    } catch (const std::exception&) {
        return model;
    }
    return inferred;
}

/// Expands every call of one function operator. Returns false if ONNX's inliner cannot: the model is then unchanged,
/// and the nodes will be reported as unsupported.
bool expand(onnx::ModelProto& model, const onnx::inliner::FunctionId& id) {
    onnx::ModelProto expanded = model;
    onnx::GraphProto& graph = *expanded.mutable_graph();
    declare_constants(graph, graph);
    if (has_graphs_inside(graph)) declare_inner_values(with_inferred_types(model).graph(), graph);
    graph.add_value_info()->mutable_type();  // of the empty name, for omitted inputs
    const auto set = onnx::inliner::FunctionIdSet::Create({id});
    try {
        onnx::inliner::InlineSelectedFunctions(expanded, *set, nullptr);
    } catch (const std::exception&) {
        return false;
    }
    *expanded.mutable_graph()->mutable_value_info() = model.graph().value_info();
    model = std::move(expanded);
    return true;
}

/// Sets the opset of a function's nodes, which differs from the model's.
template <typename Nodes>
void keep_opset(Nodes& nodes, const std::string& domain, int64_t opset) {
    for (onnx::NodeProto& node : nodes) {
        if (normalised_domain(node.domain()) == domain) set_opset(node, static_cast<int>(opset));
        visit_subgraphs(node, [&](onnx::GraphProto& graph) { keep_opset(*graph.mutable_node(), domain, opset); });
    }
}

/// Makes functions import the model's opsets, while their nodes keep their own: ONNX's inliner skips functions whose
/// opset differs from the model's.
void unite_opsets(onnx::ModelProto& model) {
    std::map<std::string, int64_t> versions;
    for (const auto& import : model.opset_import()) versions[normalised_domain(import.domain())] = import.version();
    for (onnx::FunctionProto& function : *model.mutable_functions()) {
        for (onnx::OperatorSetIdProto& import : *function.mutable_opset_import()) {
            const std::string domain = normalised_domain(import.domain());
            const auto known = versions.find(domain);
            if (known == versions.end() || known->second == import.version()) continue;
            keep_opset(*function.mutable_node(), domain, import.version());
            import.set_version(known->second);
        }
    }
}

/// The message of an assertion in ONNX, without the source location.
std::string without_assertion(const std::string& text) {
    constexpr std::string_view end = "` failed: ";
    const size_t place = text.find(end);
    return place == std::string::npos ? text : text.substr(place + end.size());
}

/// Inlines the model's own functions. ONNX's inliner asserts conditions that its checker does not check, such as that a
/// call has no more operands than its function.
void inline_local_functions(onnx::ModelProto& model) {
    unite_opsets(model);
    try {
        onnx::inliner::InlineLocalFunctions(model);
    } catch (const std::exception& error) {
        throw CompileError("the model's functions cannot be inlined: {}", without_assertion(error.what()));
    }
}

}  // namespace

void replace_by_bodies(onnx::ModelProto& model) {
    if (model.functions_size() > 0) inline_local_functions(model);
    expand_operators(model);
    // A body may call further function operators; the standard nests them three deep at most.
    std::set<onnx::inliner::FunctionId> refused;
    for (int depth = 0; depth < 8; ++depth) {
        bool has_expanded = false;
        const auto expandable = expandable_operators(model);
        if (!expandable.empty()) make_names_unique(*model.mutable_graph());
        for (const onnx::inliner::FunctionId& id : expandable) {
            if (refused.contains(id)) continue;
            if (expand(model, id)) {
                has_expanded = true;
            } else {
                refused.insert(id);
            }
        }
        if (!has_expanded) return;
    }
}

}  // namespace onnx2halide
