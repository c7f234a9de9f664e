#include "compiler/driver/program_manifest.h"

#include <fmt/format.h>

#include "compiler/plan/work.h"

namespace onnx2halide {

namespace {

Manifest number_or_text(const Dim& dim) {
    return dim.constant() ? Manifest(*dim.constant()) : Manifest(dim.text(DimSyntax::c));
}

Manifest open_dims_json(const Graph& graph) {
    auto dims = Manifest::array();
    for (const OpenDim& open : open_dims(graph))
        dims.push_back({{"name", open.symbol}, {"input", open.input}, {"axis", open.axis}});
    return dims;
}

/// The steps of a run in order: the kernels of which each calls one, and its cost, which is text in C's syntax if it
/// depends on open dims.
Manifest steps_json(const Program& program) {
    auto steps = Manifest::array();
    for_each_step(program.main, [&](const Step& step) {
        if (step.kind != Step::Kind::kernel) return;
        const Work work = work_of(step);
        auto nodes = Manifest::array();
        for (const Node* node : step.nodes) nodes.push_back(fmt::format("{} {}", node->op_type, node->name));
        auto kernels = Manifest::array();
        for (const KernelCall& call : step.calls) kernels.push_back(program.kernels[call.kernel].name);
        steps.push_back({{"kernels", kernels},
                         {"nodes", nodes},
                         {"flops", number_or_text(work.flops)},
                         {"bytes_read", number_or_text(work.bytes_read)},
                         {"bytes_written", number_or_text(work.bytes_written)}});
    });
    return steps;
}

}  // namespace

Manifest make_manifest(const ProgramBuild& build) {
    const Program& program = build.program;
    Manifest json;
    json["format"] = manifest_format;
    json["name"] = program.name;
    json["model"] = build.emit.model_file;
    json["sha256"] = build.emit.model_sha256;
    json["opset"] = build.emit.opset;
    json["compiler"] = ONNX2HALIDE_VERSION;
    json["command"] = build.emit.command;
    json["target"] = targets_text(program.targets);
    json["cc"] = build.cc;
    json["autoscheduler"] = build.autoscheduler;
    json["emit"] = build.kinds;
    json["needs_re2"] = build.needs_re2;
    json["arena_bytes"] = program.arena_bytes;
    json["scratch_bytes"] = nullptr;
    json["weights"] = {
        {"bytes", program.weight_bytes}, {"id", build.emit.weights_id}, {"in_file", build.emit.weights_in_file}};
    json["kernels"] = Manifest::array();
    for (const KernelSource* source : program.classes()) {
        Manifest parameters = Manifest::object();
        for (const KernelSource::Param& param : source->params()) parameters[param.name] = param.value;
        json["kernels"].push_back(
            {{"name", source->class_name()}, {"target", source->target().text}, {"parameters", parameters}});
    }
    json["open_dims"] = open_dims_json(*program.graph);
    json["steps"] = steps_json(program);
    return json;
}

}  // namespace onnx2halide
