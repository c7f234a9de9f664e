#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <re2/re2.h>

#include "compiler/emit/emit.h"
#include "compiler/emit/host_steps.h"
#include "compiler/emit/port_table.h"
#include "compiler/emit/template.h"
#include "compiler/graph/box_type.h"
#include "compiler/io/files.h"
#include "onnx2halide_paths.h"
#include "ops/names.h"

namespace onnx2halide {

namespace {

class HostProgram {
public:
    HostProgram(const Program& program, const EmitOptions& options)
        : program_(program), options_(options), graph_(*program.graph) {
        Names names;
        for (const Value* tensor : program.tensors) tensor_names_[tensor] = names.unique(tensor->name);
    }

    std::string text() const {
        const std::string steps = HostSteps(program_, tensor_names_).text(), fixed = fixed_tensors(),
                          place = this->place();
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
                {"STRINGS", string_table()},
                {"STRINGS_POINTER", has_strings() ? "strings" : "NULL"},
                {"STRING_COUNT", fmt::to_string(has_strings() ? graph_.strings->texts().size() : 0)},
                {"HAS_BOXES", has_boxes() ? "1" : "0"},
                {"SHAPES", shapes()},
                {"FIXED_TENSORS", fixed},
                {"FIXED_TENSORS_POINTER", fixed.empty() ? "NULL" : "fixed_tensors"},
                {"FIXED_TENSOR_COUNT", fixed.empty() ? "0" : "sizeof fixed_tensors / sizeof fixed_tensors[0]"},
                {"PLACE", place},
                {"PLACE_POINTER", place.empty() ? "NULL" : "place"},
                {"BIND", bind()},
                {"SYMBOLS", symbol_list()},
                {"STEPS", steps},
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
                {"DEVICE_HEADERS", device_headers()},
                {"OPERATOR_HEADERS", operator_headers(steps)},
                {"DEVICE_MEMORY", device_memory_table()},
                {"DEVICE", device()},
                {"TYPED_RUN", program_.has_typed_run() ? typed_run() : ""},
            });
    }

private:
    bool has_embedded_weights() const { return program_.weight_bytes > 0 && !options_.weights_in_file; }

    std::string kernel_declarations() const {
        std::string text;
        for (const Kernel& kernel : program_.kernels) {
            Names names;  // of parameters: none may be one of the header's macros
            names.reserve_prefix(macro_name(program_.name) + "_");
            std::vector<std::string> parameters = {"void* session"};
            const auto add = [&](const char* type, const std::string& name) {
                parameters.push_back(type + names.unique(name));
            };
            const KernelSource& source = kernel.source();
            for (const Value* input : source.inputs()) add("halide_buffer_t* ", source.name_of(input));
            for (const std::string& symbol : source.symbols()) add("int32_t ", symbol);
            for (const Value* output : source.outputs()) add("halide_buffer_t* ", source.name_of(output));
            text += kernel_declaration(kernel, fmt::format("{}", fmt::join(parameters, ", ")));
        }
        return text;
    }

    /// The declaration of a kernel; with several targets, a table of functions in their order, which STEP_OF_TARGET
    /// reads.
    static std::string kernel_declaration(const Kernel& kernel, const std::string& parameters) {
        if (kernel.sources.size() == 1) return fmt::format("int {}_kernel({});\n", kernel.name, parameters);
        std::vector<std::string> functions;
        for (const KernelSource& source : kernel.sources) functions.push_back(source.class_name() + "_kernel");
        return fmt::format(
            "typedef int {0}_function({1});\n{0}_function {2};\nstatic {0}_function* const {0}_kernels[] = {{{2}}};\n",
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

    std::string ports() const {
        PortTable inputs("input"), outputs("output");
        for (const Value* input : graph_.inputs)
            inputs.add(input->port_type(), input->name, least_extents(input->port_type()));
        for (size_t i = 0; i < graph_.outputs.size(); ++i)
            outputs.add(graph_.outputs[i]->port_type(), graph_.output_names[i]);
        return inputs.text(program_.name) + outputs.text(program_.name);
    }

    bool has_tensor(bool (*is_kind)(const TensorType&)) const {
        return std::any_of(program_.tensors.begin(), program_.tensors.end(),
                           [&](const Value* tensor) { return is_kind(tensor->checked_type()); });
    }
    bool has_strings() const {
        const auto holds_strings = [](const TensorType& type) {
            const TensorType* inner = &type;
            while (inner->box && inner->box->key != ElementType::string) inner = &inner->box->item;
            return inner->box || inner->element == ElementType::string;
        };
        return has_tensor(holds_strings);
    }
    bool has_boxes() const {
        return has_tensor([](const TensorType& type) { return type.box != nullptr; });
    }

    bool is_cuda() const { return program_.targets.front().gpu == Target::Gpu::cuda; }

    /// Whether every run calls the same kernels with the same arguments on the same memory, so that CUDA can record it.
    bool is_recordable() const {
        const auto is_repeated = [](const Step& step) {
            return step.kind == Step::Kind::kernel || step.kind == Step::Kind::host;
        };
        return is_cuda() && !is_open() && program_.symbols.empty() && program_.heap.empty() &&
               std::all_of(program_.main.steps.begin(), program_.main.steps.end(), is_repeated);
    }

    /// The headers of the runtime that declare what the steps call.
    static std::string operator_headers(const std::string& steps) {
        static const RE2 function(R"(\b(onnx2halide_\w+)\()");
        std::string text;
        for (const char* header : {"box_operators.h", "host_operators.h", "ngrams.h", "string_operators.h"}) {
            const std::string declarations = read_text(fmt::format(ONNX2HALIDE_RUNTIME_DIR "/{}", header));
            re2::StringPiece rest(declarations);
            bool is_called = false;
            for (std::string name; RE2::FindAndConsume(&rest, function, &name);)
                is_called |= steps.find(name + ",") != std::string::npos;
            if (is_called) text += fmt::format("#include \"{}\"\n", header);
        }
        return text;
    }

    std::string device_headers() const {
        if (!program_.is_gpu()) return "";
        return fmt::format("#include \"HalideRuntime{}.h\"\n#include \"{}.h\"\n", is_cuda() ? "Cuda" : "OpenCL",
                           is_recordable() ? "cuda_graph" : "device");
    }

    /// The table of tensors' memory on the device, which tensors of one storage share.
    std::string device_memory_table() const {
        if (!program_.is_gpu()) return "";
        std::string rows;
        for (const Value* tensor : program_.tensors)
            rows += fmt::format("    {}, /* {} */\n", program_.storage_of.at(tensor), tensor_names_.at(tensor));
        return fmt::format(
            "\n/* The index of each tensor's memory on the device; views share that of the viewed tensor. */\n"
            "static const int device_memory_of[] = {{\n{}}};\n",
            rows);
    }

    std::string device() const {
        if (!program_.is_gpu()) return "";
        return fmt::format("    .device = halide_{}_device_interface,\n    .device_memory_of = device_memory_of,\n"
                           "    .device_memory_count = {},\n{}",
                           is_cuda() ? "cuda" : "opencl", program_.storages.size(),
                           is_recordable() ? "    .recorder = &onnx2halide_cuda_recorder,\n" : "");
    }

    /// The strings of constants, by number.
    std::string string_table() const {
        if (!has_strings()) return "";
        std::string rows;
        for (const std::string& text : graph_.strings->texts())
            rows += fmt::format("    {{{}, {}}},\n", string_literal(text), text.size());
        return fmt::format(
            "\n/* Strings by number; tensors hold the numbers. */\nstatic const onnx2halide_string strings[] "
            "= {{\n{}}};\n",
            rows);
    }

    std::string open_dim_table() const {
        if (graph_.symbols.empty()) return "";
        std::string rows;
        for (const OpenDim& open : open_dims(graph_)) {
            rows += fmt::format("    {{{}, {}, {}, {}, {}}},\n", string_literal(open.symbol), open.input, open.axis,
                                *open.dim.lower_bound(), *open.dim.upper_bound());
        }
        return fmt::format("\nstatic const onnx2halide_open_dim open_dims[] = {{\n{}}};\n", rows);
    }

    /// Sets the dims of inputs and outputs; -1 stands for those that are found at run time.
    std::string shapes() const {
        std::string text;
        size_t place = 0;
        for (const auto* values : {&graph_.inputs, &graph_.outputs}) {
            for (const Value* value : *values) {
                for (const Dim& dim : value->port_type().shape)
                    text += fmt::format("    dims[{}] = {};\n", place++,
                                        program_.is_known_before_run(dim) ? session_text(dim) : "-1");
            }
        }
        return text;
    }

    /// Whether a tensor's place and shape are the same in all runs.
    bool is_fixed(const Value* tensor) const {
        const auto is_number = [](const Dim& extent) { return extent.constant().has_value(); };
        const std::vector<Dim>& shape = tensor->checked_type().shape;
        const bool is_moved = is_placed_at_run_time() && program_.storage(tensor).storage_class == StorageClass::arena;
        return !program_.is_late(tensor) && !is_moved && std::all_of(shape.begin(), shape.end(), is_number);
    }

    /// The table of fixed tensors. A function that sets up each in code would take the C compiler a time that grows
    /// with the square of their number.
    std::string fixed_tensors() const {
        std::string text;
        for (const Value* tensor : program_.tensors) {
            if (!is_fixed(tensor)) continue;
            const Storage& storage = program_.storage(tensor);
            const TensorType& type = tensor->checked_type();
            std::string memory = "ELSEWHERE, 0";
            if (storage.storage_class == StorageClass::weight) memory = fmt::format("IN_WEIGHTS, {}", storage.offset);
            if (storage.storage_class == StorageClass::arena)
                memory = fmt::format("IN_ARENA, {}", storage.offset + *offset_in_whole(tensor).constant());
            text += fmt::format("    FIXED({}, {}, {}, {}, {}),\n", tensor_names_.at(tensor), memory,
                                halide_type_text(type.element), tensor->pitch().value_or(0), extents_text(type));
        }
        if (text.empty()) return "";
        return fmt::format(
            "\n/* Tensors that are the same in all runs: memory and offset in bytes, type, pitch of rows "
            "that are not dense, and extents,\n * innermost first. */\n"
            "static const onnx2halide_fixed_tensor fixed_tensors[] = {{\n{}}};\n",
            text);
    }

    /// The address of a tensor that is not fixed, as C text.
    std::string address(const Value* tensor) const {
        const Storage& storage = program_.storage(tensor);
        if (storage.storage_class == StorageClass::weight) return fmt::format("session->weights + {}", storage.offset);
        if (storage.storage_class != StorageClass::arena) return "NULL";
        const auto index = std::find(program_.arena.begin(), program_.arena.end(), program_.storage_of.at(tensor)) -
                           program_.arena.begin();
        return fmt::format("session->arena + arena[{}].offset{}", index, offset_text(tensor));
    }

    /// The offset of a tensor in its storage, in bytes.
    static Dim offset_in_whole(const Value* tensor) {
        return tensor->part ? tensor->part->offset * info(tensor->checked_type().element).bytes : 0;
    }
    static std::string offset_text(const Value* tensor) {
        const Dim offset = offset_in_whole(tensor);
        return offset.is(0) ? "" : fmt::format(" + {}", session_text(offset));
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
        for (const Value* tensor : program_.tensors) {
            if (is_fixed(tensor)) continue;
            const TensorType& type = tensor->checked_type();
            if (program_.is_late(tensor)) {
                text += fmt::format("    LATE({}, {}, {});\n", tensor_names_.at(tensor), halide_type_text(type.element),
                                    type.rank());
                continue;
            }
            text += fmt::format("    TENSOR({}, {}, {}, {});\n", tensor_names_.at(tensor), address(tensor),
                                halide_type_text(type.element), extents_text(type));
            if (const auto pitch = tensor->pitch())
                text += fmt::format("    onnx2halide_set_pitch(T({}), {});\n", tensor_names_.at(tensor), *pitch);
        }
        if (text.empty()) return "";
        return fmt::format("\n/* Sets up the other tensors: address, type, and extents, innermost first. */\n"
                           "static int place(onnx2halide_session* session) {{\n{}    return 0;\n}}\n",
                           text);
    }

    std::string bind() const {
        std::string text;
        for (const Value* tensor : program_.tensors) {
            const Storage& storage = program_.storage(tensor);
            const std::string name = tensor_names_.at(tensor), offset = offset_text(tensor);
            if (storage.storage_class == StorageClass::input) {
                text += fmt::format("    T({})->host = (uint8_t*)(uintptr_t)session->input_data[{}]{};\n", name,
                                    storage.index, offset);
                if (program_.is_gpu()) text += fmt::format("    MADE_ON_HOST(T({}));\n", name);
            } else if (storage.storage_class == StorageClass::output) {
                text += fmt::format("    T({})->host = {}session->output_data[{}]{};\n", name,
                                    offset.empty() ? "" : "(uint8_t*)", storage.index, offset);
            }
        }
        return text;
    }

    /// A constant for each symbol: D(batch) is the dim of index symbol_batch.
    std::string symbol_list() const {
        std::string text;
        for (const std::string& symbol : program_.symbols) text += fmt::format("    symbol_{},\n", symbol);
        return text.empty() ? ""
                            : fmt::format("\n/* Dims that are found at run time: D(batch) is that of index "
                                          "symbol_batch. */\nenum {{\n{}}};\n",
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
            "\nint {0}_run({0}* handle{1}) {{\n    if (!handle) return onnx2halide_no_session(&description, "
            "\"run\");\n    onnx2halide_session* session = "
            "(onnx2halide_session*)handle;\n{2}    return onnx2halide_run(session);\n}}\n",
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
