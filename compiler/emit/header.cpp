#include <algorithm>
#include <cctype>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "compiler/emit/emit.h"
#include "compiler/emit/template.h"
#include "compiler/io/files.h"
#include "onnx2halide_paths.h"
#include "ops/names.h"

namespace onnx2halide {

namespace {

/// `/* image: float32 1x1x8x8 */`, and macros for the shape.
std::string port_macros(const std::string& model, const Value* value, const std::string& public_name,
                        const std::string& name) {
    const TensorType& type = value->port_type();
    const std::string prefix = macro_name(model) + "_" + macro_name(name);
    std::string text = fmt::format("/* {}: {} */\n", comment_text(public_name), type.text());
    if (type.box) return text;
    text += fmt::format("#define {}_RANK {}\n", prefix, type.rank());
    const auto elements = type.elements().constant();
    if (!elements) return text;
    if (type.rank() > 0) {
        std::vector<int64_t> dims;
        for (const Dim& dim : type.shape) dims.push_back(*dim.constant());
        text += fmt::format("#define {}_SHAPE {{{}}}\n", prefix, fmt::join(dims, ", "));
    }
    text += fmt::format("#define {}_ELEMENTS {}\n", prefix, *elements);
    return is_packed(type.element) ? text + fmt::format("#define {}_BYTES {}\n", prefix, type.packed().bytes().text())
                                   : text;
}

/// The macros of sizes, whose numbers `build` updates.
std::string size_macros(const Program& program, std::optional<int64_t> scratch_bytes) {
    const std::string macro = macro_name(program.name);
    const std::string remark = scratch_bytes ? "" : " /* scratch memory is not known before `onnx2halide build` */";
    std::string text;
    if (program.is_static()) {
        text += fmt::format("\n/* Bytes of a session's arena with one thread: its tensors, and the scratch memory of "
                            "its kernels. */\n#define {}_ARENA_SIZE {}{}\n",
                            macro, program.arena_bytes + scratch_bytes.value_or(0), remark);
    }
    return text + fmt::format("/* Bytes that each further thread adds. */\n#define {}_SCRATCH_SIZE {}{}\n", macro,
                              scratch_bytes.value_or(0), remark);
}

/// The declaration of the typed run, which only models of fixed shapes have.
std::string typed_run(const Program& program, const std::vector<std::string>& names) {
    if (!program.has_typed_run()) return "";
    return fmt::format("\n/* Runs the model on tensors of the shapes above, row-major. Returns 0, or a code: {0}_error "
                       "tells why. Allocates nothing. */\n"
                       "int {0}_run({0}* session{1});\n",
                       program.name, typed_parameters(*program.graph, names));
}

}  // namespace

std::vector<std::string> port_names(const Program& program) {
    Names names;
    names.reserve_prefix(macro_name(program.name) + "_");
    std::vector<std::string> result;
    std::set<std::string> macros;  // `x` and `X` have the same
    const auto add = [&](const std::string& port) {
        std::string name = names.unique(port);
        while (!macros.insert(macro_name(name)).second) name = names.unique(port);
        result.push_back(name);
    };
    for (const Value* input : program.graph->inputs) add(input->name);
    for (const std::string& output : program.graph->output_names) add(output);
    return result;
}

std::string macro_name(const std::string& name) {
    std::string result = name;
    std::transform(result.begin(), result.end(), result.begin(),
                   [](unsigned char character) { return std::toupper(character); });
    return result;
}

std::string typed_parameters(const Graph& graph, const std::vector<std::string>& names) {
    std::string text;
    for (size_t i = 0; i < graph.inputs.size(); ++i) {
        text += fmt::format(", const {}* {}", info(graph.inputs[i]->port_type().element).c_name, names[i]);
    }
    for (size_t i = 0; i < graph.outputs.size(); ++i) {
        text +=
            fmt::format(", {}* {}", info(graph.outputs[i]->port_type().element).c_name, names[graph.inputs.size() + i]);
    }
    return text;
}

std::string emit_header(const Program& program, const EmitOptions& options, std::optional<int64_t> scratch_bytes) {
    const Graph& graph = *program.graph;
    const std::vector<std::string> names = port_names(program);
    std::string ports;
    for (size_t i = 0; i < graph.inputs.size(); ++i)
        ports += port_macros(program.name, graph.inputs[i], graph.inputs[i]->name, names[i]);
    for (size_t i = 0; i < graph.outputs.size(); ++i) {
        ports += port_macros(program.name, graph.outputs[i], graph.output_names[i], names[graph.inputs.size() + i]);
    }
    return fill_template("model.h.in", {
                                           {"BANNER", emit_banner(program, options, " * ")},
                                           {"NAME", program.name},
                                           {"MACRO", macro_name(program.name)},
                                           {"TYPES", read_text(ONNX2HALIDE_RUNTIME_DIR "/onnx2halide_types.h")},
                                           {"PORTS", ports},
                                           {"INPUTS", fmt::to_string(graph.inputs.size())},
                                           {"OUTPUTS", fmt::to_string(graph.outputs.size())},
                                           {"SIZES", size_macros(program, scratch_bytes)},
                                           {"TYPED_RUN", typed_run(program, names)},
                                       });
}

}  // namespace onnx2halide
