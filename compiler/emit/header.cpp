#include <algorithm>
#include <cctype>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "compiler/emit/emit.h"
#include "ops/names.h"

namespace onnx2halide {

namespace {

std::string upper(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(), [](unsigned char character) { return std::toupper(character); });
    return text;
}

/// The shared types, which stand once behind their own include guard.
std::string shared_types() {
    std::ifstream file(ONNX2HALIDE_RUNTIME_DIR "/onnx2halide_types.h");
    if (!file) throw std::runtime_error("runtime/onnx2halide_types.h cannot be read");
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

/// `/* image: float32 1x1x8x8 */` and macros for its shape.
std::string port_macros(const std::string& model, const Value* value, const std::string& public_name, const std::string& name) {
    const TensorType& type = value->checked_type();
    const std::string prefix = upper(model) + "_" + upper(name);
    std::string text = fmt::format("/* {}: {} */\n#define {}_RANK {}\n", public_name, type.text(), prefix, type.rank());
    const auto elements = type.elements().constant();
    if (!elements) return text;
    if (type.rank() > 0) {
        std::vector<int64_t> dims;
        for (const Dim& dim : type.shape) dims.push_back(*dim.constant());
        text += fmt::format("#define {}_SHAPE {{{}}}\n", prefix, fmt::join(dims, ", "));
    }
    return text + fmt::format("#define {}_ELEMENTS {}\n", prefix, *elements);
}

std::string typed_parameters(const Graph& graph, const std::vector<std::string>& names) {
    std::string text;
    for (size_t i = 0; i < graph.inputs.size(); ++i) {
        text += fmt::format(", const {} *{}", info(graph.inputs[i]->checked_type().element).c_name, names[i]);
    }
    for (size_t i = 0; i < graph.outputs.size(); ++i) {
        text += fmt::format(", {} *{}", info(graph.outputs[i]->checked_type().element).c_name, names[graph.inputs.size() + i]);
    }
    return text;
}

}  // namespace

std::vector<std::string> port_names(const Graph& graph) {
    Names names;
    std::vector<std::string> result;
    for (const Value* input : graph.inputs) result.push_back(names.unique(input->name));
    for (const std::string& output : graph.output_names) result.push_back(names.unique(output));
    return result;
}

std::string emit_header(const Program& program, const EmitOptions& options, int64_t scratch_bytes) {
    const Graph& graph = *program.graph;
    const std::string &name = program.name, macro = upper(name);
    const std::vector<std::string> names = port_names(graph);
    std::string text = "/*\n" + emit_banner(program, options, " * ") + " */\n";
    text += fmt::format("#ifndef {0}_H\n#define {0}_H\n\n#include <stddef.h>\n#include <stdint.h>\n\n", macro);
    text += "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n" + shared_types() + "\n";
    for (size_t i = 0; i < graph.inputs.size(); ++i) text += port_macros(name, graph.inputs[i], graph.inputs[i]->name, names[i]);
    for (size_t i = 0; i < graph.outputs.size(); ++i) {
        text += port_macros(name, graph.outputs[i], graph.output_names[i], names[graph.inputs.size() + i]);
    }
    text += fmt::format("enum {{ {0}_INPUTS = {1}, {0}_OUTPUTS = {2} }};\n", macro, graph.inputs.size(), graph.outputs.size());
    if (program.is_static()) {
        text += fmt::format("\n/* Bytes of a session's arena with one thread: its tensors, and the scratch memory of its kernels. */\n#define {}_ARENA_SIZE {}\n",
                            macro, program.arena_bytes + scratch_bytes);
    }
    text += fmt::format("/* Bytes that each further thread adds. */\n#define {}_SCRATCH_SIZE {}\n", macro, scratch_bytes);
    text += fmt::format(R"(
/* Names, types and shapes of the inputs and outputs, in the model's order; a row without a name ends each table. */
extern const onnx2halide_port {0}_inputs[];
extern const onnx2halide_port {0}_outputs[];

/* One session: its own memory, and the model's weights, which all sessions share. One thread at a time may use it. */
typedef struct {0} {0};

/* Makes a session; options may be NULL. Returns 0, or a code and leaves *session NULL: {0}_error(NULL) tells why, in this thread. */
int {0}_create({0} **session, const onnx2halide_options *options);
)",
                        name);
    if (program.is_static()) {
        text += fmt::format("\n/* Runs the model on tensors of the shapes above, row-major. Returns 0, or a code: {0}_error tells why. Allocates nothing. */\n"
                            "int {0}_run({0} *session{1});\n",
                            name, typed_parameters(graph, names));
    }
    text += fmt::format(R"(
/* Runs the model on {1}_INPUTS values and sets {1}_OUTPUTS values. An output without a buffer of its own points into the session
 * until its next run. Returns 0, or a code: {0}_error tells why. */
int {0}_run_values({0} *session, const onnx2halide_value *inputs, onnx2halide_value *outputs);

/* Why the last call on this session failed, or with NULL why create did, in this thread. Never NULL. */
const char *{0}_error(const {0} *session);

/* Frees a session; NULL is allowed. */
void {0}_destroy({0} *session);

#ifdef __cplusplus
}}
#endif

#endif
)",
                        name, macro);
    return text;
}

}  // namespace onnx2halide
