#include "compiler/driver/inspect.h"

#include "compiler/driver/load_typed.h"
#include "compiler/driver/transform.h"
#include "compiler/passes/fold.h"
#include "compiler/plan/plan.h"
#include "compiler/plan/work.h"
#include "ops/control_flow.h"
#include "ops/node_generator.h"
#include "ops/schedule/target.h"

namespace onnx2halide {

namespace fs = std::filesystem;

namespace {

/// What the graph is before any pass.
Inspection inspect_graph(Graph& graph) {
    Inspection result;
    for (const Value* input : graph.inputs) result.inputs.emplace_back(input->name, *input->type);
    for (const Value* output : graph.outputs) result.outputs.emplace_back(output->name, *output->type);
    for (const auto& [symbol, dim] : graph.symbols) result.open_dims.push_back(symbol);
    Dim flops;
    for (const auto& node : graph.nodes()) {
        InspectedNode& inspected = result.nodes.emplace_back(InspectedNode{node->index, node->op_type, {}});
        for (const Value* output : node->outputs) {
            if (output) inspected.outputs.emplace_back(output->name, *output->type);
        }
        if (!is_control_flow(*node)) flops += make_generator(*node)->flops();
    }
    result.flops = flops.text();
    result.parameters = constant_elements(graph);
    return result;
}

/// Cuts out what depends only on constants. The results become constants without data: for the passes and the plan it
/// is enough that they are constants.
void pretend_to_fold(Graph& graph) {
    const FoldProgram fold = cut_fold_program(graph);
    for (Value* value : fold.results)
        value->constant = Constant{value->type->element, {}, std::make_shared<std::vector<std::byte>>(), {}};
}

Program plan(Graph& graph, const CompileOptions& options) {
    const std::vector<Target> targets = parse_targets(options.target);
    transform(graph, targets, options);
    pretend_to_fold(graph);
    transform_folded(graph, targets, options);
    PlanOptions plan;
    plan.name = "inspected";
    plan.grouping = grouping_of(options);
    return make_program(graph, targets, plan);
}

void add_kernels(const Program& program, Inspection& result) {
    result.kernels = program.kernels.size();
    result.arena_bytes = program.arena_bytes;
    for_each_step(program.main, [&](const Step& step) {
        if (step.kind != Step::Kind::kernel) return;
        // A kernel of open extents may be called with other ones than those that it was written for.
        const std::string& kernel = program.kernels[step.calls[0].kernel].name;
        result.steps.emplace_back(kernel, work_of(step).flops.text());
    });
}

}  // namespace

Inspection inspect(const fs::path& path, const CompileOptions& options) {
    try {
        const Model model = load_typed(path, options);
        Inspection result = inspect_graph(*model.graph);
        add_kernels(plan(*model.graph, options), result);
        return result;
    } catch (const CompileError& error) {
        throw CompileError(message_with_path(path, error));
    }
}

}  // namespace onnx2halide
