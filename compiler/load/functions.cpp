#include "compiler/load/functions.h"

#include <set>

#include <onnx/defs/schema.h>
#include <onnx/inliner/inliner.h>

#include "compiler/load/schema.h"
#include "ops/node_generator.h"

namespace onnx2halide {

namespace {

/// Function operators of the model that nothing else can honour.
onnx::inliner::FunctionIdVector expandable_operators(const onnx::ModelProto& model) {
    const OpsetVersions opsets(model);
    std::set<onnx::inliner::FunctionId> found;
    for (const auto& node : model.graph().node()) {
        const onnx::OpSchema* schema = find_schema(node, opsets);
        if (!schema || find_operator(normalised_domain(node.domain()), node.op_type(), schema->since_version())) continue;
        if (schema->HasFunction() || schema->HasContextDependentFunction()) found.emplace(node.domain(), node.op_type());
    }
    return {found.begin(), found.end()};
}

}  // namespace

void inline_functions(onnx::ModelProto& model) {
    if (model.functions_size() > 0) onnx::inliner::InlineLocalFunctions(model);
    // A body may call further function operators; the standard nests them three deep at most.
    for (int depth = 0; depth < 8; ++depth) {
        auto operators = expandable_operators(model);
        if (operators.empty()) return;
        const auto set = onnx::inliner::FunctionIdSet::Create(std::move(operators));
        onnx::inliner::InlineSelectedFunctions(model, *set, nullptr);
    }
}

}  // namespace onnx2halide
