#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "compiler/emit/emit.h"
#include "compiler/emit/host_steps.h"
#include "compiler/emit/template.h"
#include "ops/names.h"

namespace onnx2halide {

namespace {

/// A string literal of C.
std::string quoted(const std::string& text) {
    std::string result = "\"";
    for (const char character : text) {
        if (character == '"' || character == '\\') result += '\\';
        const auto code = static_cast<unsigned char>(character);
        result += code < 32 || code > 126 ? fmt::format("\\{:03o}", code) : std::string(1, character);
    }
    return result + "\"";
}

class HostProgram {
public:
    HostProgram(const Program& program, const EmitOptions& options)
        : program_(program), options_(options), graph_(*program.graph) {
        Names names;
        for (const Value* tensor : program.tensors) tensor_names_[tensor] = names.unique(tensor->name);
    }

    std::string text() const {
        return fill_template(
            "model.c.in",
            {
                {"BANNER", emit_banner(program_, options_, " * ")},
                {"NAME", program_.name},
                {"MACRO", macro_name(program_.name)},
                {"WEIGHTS", has_embedded_weights()
                                ? fmt::format("\nextern const unsigned char onnx2halide_{}_weights[];\n", program_.name)
                                : ""},
                {"KERNELS", kernel_declarations()},
                {"TARGETS", targets()},
                {"TENSORS", tensor_list()},
                {"PORTS", ports()},
                {"OPEN_DIMS", open_dim_table()},
                {"SHAPES", shapes()},
                {"PLACE", place()},
                {"BIND", bind()},
                {"SYMBOLS", symbol_list()},
                {"STEPS", HostSteps(program_, tensor_names_).text()},
                {"INPUTS", fmt::to_string(graph_.inputs.size())},
                {"OUTPUTS", fmt::to_string(graph_.outputs.size())},
                {"DIM_COUNT", fmt::to_string(dim_count())},
                {"OPEN_COUNT", fmt::to_string(graph_.symbols.size())},
                {"SYMBOL_COUNT", fmt::to_string(program_.symbols.size())},
                {"HEAP_COUNT", fmt::to_string(program_.heap.size())},
                {"OPEN_DIMS_POINTER", graph_.symbols.empty() ? "NULL" : "open_dims"},
                {"ARENA_BYTES", fmt::to_string(program_.arena_bytes)},
                {"WEIGHTS_POINTER", has_embedded_weights() ? "onnx2halide_" + program_.name + "_weights" : "NULL"},
                {"WEIGHT_BYTES", fmt::to_string(program_.weight_bytes)},
                {"WEIGHTS_ID", options_.weights_id},
                {"USES_DEVICE", program_.is_gpu() ? "1" : "0"},
                {"TYPED_RUN", program_.is_static() ? typed_run() : ""},
            });
    }

private:
    bool has_embedded_weights() const { return program_.weight_bytes > 0 && !options_.weights_in_file; }

    std::string kernel_declarations() const {
        std::string text;
        for (const Kernel& kernel : program_.kernels) {
            Names names;  // of the parameters, which the header's macros would replace
            names.reserve_prefix(macro_name(program_.name) + "_");
            std::vector<std::string> parameters = {"void *session"};
            const auto add = [&](const char* type, const std::string& name) {
                parameters.push_back(type + names.unique(name));
            };
            const KernelSource& source = kernel.source();
            for (const Value* input : source.inputs()) add("halide_buffer_t *", source.name_of(input));
            for (const std::string& symbol : source.symbols()) add("int32_t ", symbol);
            for (const Value* output : source.outputs()) add("halide_buffer_t *", source.name_of(output));
            text += kernel_declaration(kernel, fmt::format("{}", fmt::join(parameters, ", ")));
        }
        return text;
    }

    /// With several targets a table that STEP_OF_TARGET reads, in the order of `targets`.
    static std::string kernel_declaration(const Kernel& kernel, const std::string& parameters) {
        if (kernel.sources.size() == 1) return fmt::format("int {}_kernel({});\n", kernel.name, parameters);
        std::vector<std::string> functions;
        for (const KernelSource& source : kernel.sources) functions.push_back(source.class_name() + "_kernel");
        return fmt::format(
            "typedef int {0}_function({1});\n{0}_function {2};\nstatic {0}_function *const {0}_kernels[] = {{{2}}};\n",
            kernel.name, parameters, fmt::join(functions, ", "));
    }

    /// Rows of the table of targets.
    std::string targets() const {
        std::string text;
        for (const Target& target : program_.targets) {
            std::vector<std::string> words;
            for (const uint64_t word : target.features) words.push_back(fmt::format("{:#x}", word));
            text += fmt::format("    {{\"{}\", {{{}}}}},\n", target.text, fmt::join(words, ", "));
        }
        return text;
    }

    std::string tensor_list() const {
        std::string text;
        for (const Value* tensor : program_.tensors) text += fmt::format("    tensor_{},\n", tensor_names_.at(tensor));
        return text;
    }

    size_t dim_count() const {
        size_t count = 0;
        for (const Value* tensor : program_.tensors) count += tensor->checked_type().rank();
        return count;
    }

    std::string port_list(const std::string& direction, const std::vector<Value*>& values,
                          const std::vector<std::string>& names) const {
        std::string dims, rows;
        for (size_t i = 0; i < values.size(); ++i) {
            const TensorType& type = values[i]->port_type();
            std::string pointer = "NULL";
            if (type.rank() > 0) {
                pointer = fmt::format("{}_{}_dims", direction, i);
                std::vector<int64_t> extents;
                for (const Dim& dim : type.shape) extents.push_back(dim.constant().value_or(-1));
                dims += fmt::format("static const int64_t {}[] = {{{}}};\n", pointer, fmt::join(extents, ", "));
            }
            rows += fmt::format("    {{{}, {}, {}, {}}},\n", quoted(names[i]), static_cast<int>(type.element),
                                type.rank(), pointer);
        }
        return fmt::format("{}const onnx2halide_port {}_{}s[] = {{\n{}    {{NULL, 0, 0, NULL}},\n}};\n", dims,
                           program_.name, direction, rows);
    }

    std::string ports() const {
        std::vector<std::string> inputs;
        for (const Value* input : graph_.inputs) inputs.push_back(input->name);
        return port_list("input", graph_.inputs, inputs) + port_list("output", graph_.outputs, graph_.output_names);
    }

    std::string open_dim_table() const {
        if (graph_.symbols.empty()) return "";
        std::string rows;
        for (const OpenDim& open : open_dims(graph_)) {
            rows += fmt::format("    {{{}, {}, {}, {}, {}}},\n", quoted(open.symbol), open.input, open.axis,
                                *open.dim.lower_bound(), *open.dim.upper_bound());
        }
        return fmt::format("\nstatic const onnx2halide_open_dim open_dims[] = {{\n{}}};\n", rows);
    }

    /// -1 stands for what only a run knows.
    std::string shapes() const {
        std::string text;
        size_t place = 0;
        for (const auto* values : {&graph_.inputs, &graph_.outputs}) {
            for (const Value* value : *values) {
                for (const Dim& dim : value->port_type().shape)
                    text += fmt::format("    dims[{}] = {};\n", place++,
                                        program_.is_known_early(dim) ? session_text(dim) : "-1");
            }
        }
        return text;
    }

    /// C text of the address at which a tensor starts when its session is set up.
    std::string address(const Value* tensor) const {
        const Storage& storage = program_.storage(tensor);
        if (storage.place == Place::weight) return fmt::format("session->weights + {}", storage.offset);
        if (storage.place != Place::arena) return "NULL";
        if (!is_placed_at_run_time()) return fmt::format("session->arena + {}", storage.offset);
        const auto index = std::find(program_.arena.begin(), program_.arena.end(), program_.storage_of.at(tensor)) -
                           program_.arena.begin();
        return fmt::format("session->arena + arena[{}].offset", index);
    }

    bool is_open() const { return !graph_.symbols.empty(); }
    bool is_placed_at_run_time() const { return is_open() && !program_.arena.empty(); }

    std::string place() const {
        std::string text;
        if (is_placed_at_run_time()) {
            text += "    onnx2halide_lifetime arena[] = {  /* first step, last step, bytes */\n";
            for (const size_t index : program_.arena) {
                const Storage& storage = program_.storages[index];
                text += fmt::format("        {{{}, {}, {}, -1}},  /* {} */\n", storage.first_step, storage.last_step,
                                    session_text(storage.bytes), tensor_names_.at(storage.root));
            }
            text += "    };\n";
            text += fmt::format("    const int code = onnx2halide_reserve(session, onnx2halide_place_arena(arena, "
                                "{}));\n    if (code != 0) return code;\n",
                                program_.arena.size());
        } else if (is_open()) {
            text += "    const int code = onnx2halide_reserve(session, 0);\n    if (code != 0) return code;\n";
        }
        const HostSteps steps(program_, tensor_names_);
        for (const Value* tensor : program_.tensors) {
            const TensorType& type = tensor->checked_type();
            if (steps.is_late(tensor)) {
                text += fmt::format("    LATE({}, {}, {});\n", tensor_names_.at(tensor), halide_type_text(type.element),
                                    type.rank());
                continue;
            }
            text += fmt::format("    TENSOR({}, {}, {}, {});\n", tensor_names_.at(tensor), address(tensor),
                                halide_type_text(type.element), extents_text(type));
            if (program_.is_gpu() && program_.storage(tensor).place == Place::weight) {
                text += fmt::format("    T({})->flags = halide_buffer_flag_host_dirty;\n", tensor_names_.at(tensor));
            }
        }
        return text;
    }

    std::string bind() const {
        std::string text;
        for (const Value* tensor : program_.tensors) {
            const Storage& storage = program_.storage(tensor);
            if (storage.place == Place::input) {
                text += fmt::format("    T({})->host = (uint8_t *)(uintptr_t)session->input_data[{}];\n",
                                    tensor_names_.at(tensor), storage.index);
                if (program_.is_gpu())
                    text +=
                        fmt::format("    T({})->flags = halide_buffer_flag_host_dirty;\n", tensor_names_.at(tensor));
            } else if (storage.place == Place::output) {
                text += fmt::format("    T({})->host = session->output_data[{}];\n", tensor_names_.at(tensor),
                                    storage.index);
            }
        }
        return text;
    }

    /// A constant for each symbol: D(batch) is the number of symbol_batch.
    std::string symbol_list() const {
        std::string text;
        for (const std::string& symbol : program_.symbols) text += fmt::format("    symbol_{},\n", symbol);
        return text.empty()
                   ? ""
                   : fmt::format(
                         "\n/* Dims that a run finds: D(batch) is that of index symbol_batch. */\nenum {{\n{}}};\n",
                         text);
    }

    std::string typed_run() const {
        const std::vector<std::string> names = port_names(program_);
        std::string body;
        for (size_t i = 0; i < names.size(); ++i) {
            const bool is_input = i < graph_.inputs.size();
            body += fmt::format("    session->{}_data[{}] = {};\n", is_input ? "input" : "output",
                                is_input ? i : i - graph_.inputs.size(), names[i]);
        }
        return fmt::format(
            "\nint {0}_run({0} *handle{1}) {{\n    if (!handle) return onnx2halide_no_session(&description, "
            "\"run\");\n    onnx2halide_session *session = (onnx2halide_session "
            "*)handle;\n{2}    return onnx2halide_run(session);\n}}\n",
            program_.name, typed_parameters(graph_, names), body);
    }

    const Program& program_;
    const EmitOptions& options_;
    const Graph& graph_;
    std::map<const Value*, std::string> tensor_names_;
};

}  // namespace

std::string emit_host_program(const Program& program, const EmitOptions& options) {
    return HostProgram(program, options).text();
}

}  // namespace onnx2halide
