#include <fmt/format.h>
#include <fmt/ranges.h>

#include "compiler/emit/emit.h"
#include "ops/names.h"

namespace onnx2halide {

namespace {

constexpr std::string_view preamble = "#include \"onnx2halide_generators.h\"\n";

std::string work_text(const Dim& flops) {
    const auto count = flops.constant();
    if (!count || *count < 1000) return "";
    return *count < 1000000 ? fmt::format("   {:.0f} kFLOP", *count / 1e3)
                            : fmt::format("   {:.0f} MFLOP", *count / 1e6);
}

/// `// tuned: rows 8 instead of 4`; empty if the schedule has its own parameters.
std::string tuned_comment(const KernelSource& source) {
    std::vector<std::string> tuned;
    for (const KernelSource::Param& param : source.params()) {
        if (param.value != param.own)
            tuned.push_back(fmt::format("{} {} instead of {}", param.name, param.value, param.own));
    }
    return tuned.empty() ? "" : fmt::format("// tuned: {}\n", fmt::join(tuned, ", "));
}

/// `// conv1, relu1: float32 1x64x56x56   231 MFLOP`, and a line with the other nodes that use this class.
std::string class_comment(const Kernel& kernel) {
    std::vector<std::string> names;
    for (const Node* node : kernel.nodes) names.push_back(node->name);
    const Value* result = kernel.nodes.back()->outputs[0];
    std::string text = fmt::format("\n// {}: {}{}\n", comment_text(fmt::format("{}", fmt::join(names, ", "))),
                                   result->checked_type().text(), work_text(kernel.flops));
    if (!kernel.served.empty())
        text += fmt::format("// also: {}\n", comment_text(fmt::format("{}", fmt::join(kernel.served, ", "))));
    return text;
}

}  // namespace

std::string emit_banner(const Program& program, const EmitOptions& options, const std::string& prefix) {
    return fmt::format("{0}onnx2halide: {1} (opset {2}, sha256 {3}), target {4}\n{0}again with: {5}\n", prefix,
                       comment_text(options.model_file), options.opset, options.model_sha256.substr(0, 16),
                       targets_text(program.targets), comment_text(options.command));
}

std::string emit_generators(const Program& program, const EmitOptions& options) {
    std::string text = emit_banner(program, options, "// ") +
                       "// after edits: onnx2halide build; onnx2halide_generators.h is in its templates/\n\n" +
                       std::string(preamble);
    for (size_t i = 0; i < program.targets.size(); ++i) {
        if (program.targets.size() > 1) text += fmt::format("\n// ---- {} ----\n", program.targets[i].text);
        for (const Kernel& kernel : program.kernels) {
            const KernelSource& source = kernel.sources[i];
            const auto given = options.schedules.find(source.class_name());
            text += class_comment(kernel) + tuned_comment(source);
            text += given == options.schedules.end() ? source.text(options.schedule)
                                                     : source.text(options.schedule, given->second);
        }
    }
    return text;
}

}  // namespace onnx2halide
