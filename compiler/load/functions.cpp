#include "compiler/load/functions.h"

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <onnx/defs/schema.h>
#include <onnx/inliner/inliner.h>
#include <onnx/shape_inference/implementation.h>

#include "compiler/load/expand.h"
#include "compiler/load/local_functions.h"
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
        if (!schema || has_expansion(node) || find_operator(node.domain(), node.op_type(), schema->since_version()))
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
    const auto declare = [&](const onnx::TensorProto& elements, const auto& dims) {
        auto& info = *declared.add_value_info();
        info.set_name(elements.name());
        auto& type = *info.mutable_type()->mutable_tensor_type();
        type.set_elem_type(elements.data_type());
        for (const int64_t dim : dims) type.mutable_shape()->add_dim()->set_dim_value(dim);
    };
    for (const auto& constant : graph.initializer()) declare(constant, constant.dims());
    for (const auto& constant : graph.sparse_initializer()) declare(constant.values(), constant.dims());
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

/// Declares the outputs of SequenceMaps' bodies as `typed` does, a copy of the graph with more types. The function by
/// which ONNX defines the operator states their elements' type, which models may leave to inference.
void declare_mapped_values(onnx::GraphProto& graph, const onnx::GraphProto& typed) {
    for (int i = 0; i < graph.node_size(); ++i) {
        std::vector<const onnx::GraphProto*> copies;
        visit_subgraphs(typed.node(i), [&](const onnx::GraphProto& inner) { copies.push_back(&inner); });
        auto copy = copies.begin();
        visit_subgraphs(*graph.mutable_node(i), [&](onnx::GraphProto& inner) {
            for (int j = 0; graph.node(i).op_type() == "SequenceMap" && j < inner.output_size(); ++j) {
                if (!inner.output(j).has_type()) *inner.mutable_output(j) = (*copy)->output(j);
            }
            declare_mapped_values(inner, **copy++);
        });
    }
}

/// Takes the elements of large weights out of a model for the lifetime of this object, so that copies of the model lack
/// them. Smaller ones may be shapes, which inference reads.
class WeightsAside {
public:
    explicit WeightsAside(onnx::ModelProto& model) : model_(model) {
        auto& initializers = *model.mutable_graph()->mutable_initializer();
        for (int i = 0; i < initializers.size(); ++i) {
            onnx::TensorProto& tensor = initializers[i];
            if (tensor.ByteSizeLong() <= most_bytes) continue;
            onnx::TensorProto empty;
            empty.set_name(tensor.name());
            empty.set_data_type(tensor.data_type());
            *empty.mutable_dims() = tensor.dims();
            tensor.Swap(&empty);
            weights_.emplace_back(i, std::move(empty));
        }
    }
    ~WeightsAside() {
        for (auto& [i, weight] : weights_) model_.mutable_graph()->mutable_initializer(i)->Swap(&weight);
    }
    WeightsAside(const WeightsAside&) = delete;

private:
    static constexpr size_t most_bytes = 4096;
    onnx::ModelProto& model_;
    std::vector<std::pair<int, onnx::TensorProto>> weights_;  // by their place among the initialisers
};

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
    if (has_graphs_inside(graph)) {
        const onnx::ModelProto typed = with_inferred_types(model);
        declare_mapped_values(graph, typed.graph());
        declare_inner_values(typed.graph(), graph);
    }
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

/// Expands function operators that have no NodeGenerator, as far as ONNX's inliner can.
void expand_functions(onnx::ModelProto& model) {
    if (expandable_operators(model).empty()) return;
    const WeightsAside aside(model);
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

}  // namespace

void replace_by_bodies(onnx::ModelProto& model) {
    if (model.functions_size() > 0) inline_local_functions(model);
    // Some bodies depend on types, which ONNX infers before nodes of our own are among the others. Bodies that our
    // table adds may call functions, too.
    expand_functions(model);
    expand_operators(model);
    expand_functions(model);
}

}  // namespace onnx2halide
