#include <algorithm>
#include <memory>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "compiler/cli/commands.h"
#include "compiler/driver/inspect.h"
#include "compiler/graph/error.h"
#include "compiler/io/interrupt.h"
#include "compiler/load/outline.h"

namespace onnx2halide {

namespace {

struct Arguments {
    std::vector<std::string> models, dims;
    bool as_json = false;
    CompileOptions options;
};

/// `float32 [batch, 3, 224, 224]`
std::string type_text(const TensorType& type) {
    if (type.element == ElementType::undefined) return "unknown";
    if (type.box) return type.text();
    std::vector<std::string> dims;
    for (const Dim& dim : type.shape) dims.push_back(dim.text());
    return fmt::format("{} [{}]", info(type.element).name, fmt::join(dims, ", "));
}

/// Prints rows of text with their columns aligned.
void print_rows(const std::vector<std::vector<std::string>>& rows) {
    std::vector<size_t> widths;
    for (const auto& row : rows) {
        widths.resize(std::max(widths.size(), row.size()));
        for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
    }
    for (const auto& row : rows) {
        std::string line;
        for (size_t i = 0; i < row.size(); ++i)
            line += fmt::format("{:<{}}", row[i], i + 1 < row.size() ? widths[i] + 2 : 0);
        fmt::print("{}\n", line);
    }
}

void print_outline(const Outline& outline) {
    fmt::print("{:<12}{} (opset {}, sha256 {})\n", "model", outline.file, outline.opset, outline.sha256);
    std::vector<std::vector<std::string>> rows;
    for (const auto& [name, type] : outline.inputs)
        rows.push_back({fmt::format("{:<10}", "input"), name, type_text(type)});
    for (const auto& [name, type] : outline.outputs)
        rows.push_back({fmt::format("{:<10}", "output"), name, type_text(type)});
    print_rows(rows);
    std::vector<std::string> counts;
    for (const auto& [name, count] : outline.operators) counts.push_back(fmt::format("{} {}", count, name));
    fmt::print("{:<12}{}\n", "operators", fmt::join(counts, ", "));
}

void print_inspection(const Inspection& inspection) {
    const bool is_open = !inspection.open_dims.empty();
    const std::string depends = fmt::format("depends on {}", fmt::join(inspection.open_dims, ", "));
    const std::string arena =
        is_open ? depends : fmt::format("{} bytes in all, without scratch memory", inspection.arena_bytes);
    // JSON has longer ones in full.
    constexpr size_t longest = 120;
    const auto readable = [&](const std::string& dim) {
        return dim.size() <= longest ? dim : is_open ? depends : "depends on results of the run";
    };
    if (is_open) fmt::print("{:<12}{}\n", "open dims", fmt::join(inspection.open_dims, ", "));
    fmt::print("{:<12}{}\n{:<12}{}\n{:<12}{}\n", "nodes", inspection.nodes.size(), "parameters", inspection.parameters,
               "FLOPs", readable(inspection.flops));
    fmt::print("{:<12}{} distinct, {} calls\n{:<12}{}\n\n", "kernels", inspection.kernels, inspection.steps.size(),
               "arena", arena);
    std::vector<std::vector<std::string>> rows = {{"node", "operator", "result", "type"}};
    for (const InspectedNode& node : inspection.nodes) {
        for (const auto& [name, type] : node.outputs)
            rows.push_back({fmt::to_string(node.index), node.op_type, name, type_text(type)});
    }
    print_rows(rows);
    fmt::print("\n");
    rows = {{"step", "kernel", "FLOPs"}};
    for (const auto& [kernel, flops] : inspection.steps)
        rows.push_back({fmt::to_string(rows.size() - 1), kernel, readable(flops)});
    print_rows(rows);
}

/// [{"name": "image", "element": "float32", "shape": ["batch", 3, 224, 224]}]; what is not a tensor has a name and a
/// type.
nlohmann::ordered_json ports_json(const std::vector<Port>& ports) {
    auto list = nlohmann::ordered_json::array();
    for (const auto& [name, type] : ports) {
        if (type.box) {
            list.push_back({{"name", name}, {"type", type.text()}});
            continue;
        }
        auto shape = nlohmann::ordered_json::array();
        for (const Dim& dim : type.shape)
            dim.constant() ? shape.push_back(*dim.constant()) : shape.push_back(dim.text());
        list.push_back({{"name", name}, {"element", info(type.element).name}, {"shape", shape}});
    }
    return list;
}

nlohmann::ordered_json to_json(const Outline& outline) {
    nlohmann::ordered_json json = {{"file", outline.file}, {"sha256", outline.sha256}, {"opset", outline.opset}};
    json["inputs"] = ports_json(outline.inputs);
    json["outputs"] = ports_json(outline.outputs);
    json["operators"] = nlohmann::ordered_json::object();
    for (const auto& [name, count] : outline.operators) json["operators"][name] = count;
    return json;
}

void add_json(nlohmann::ordered_json& json, const Inspection& inspection) {
    json["open_dims"] = inspection.open_dims;
    json["parameters"] = inspection.parameters;
    json["flops"] = inspection.flops;
    json["distinct_kernels"] = inspection.kernels;
    json["arena_bytes"] = inspection.arena_bytes;
    json["nodes"] = nlohmann::ordered_json::array();
    for (const InspectedNode& node : inspection.nodes) {
        json["nodes"].push_back(
            {{"index", node.index}, {"operator", node.op_type}, {"outputs", ports_json(node.outputs)}});
    }
    json["steps"] = nlohmann::ordered_json::array();
    for (const auto& [kernel, flops] : inspection.steps)
        json["steps"].push_back({{"kernel", kernel}, {"flops", flops}});
}

/// JSON as text. Names in a model need not be UTF-8.
std::string json_text(const nlohmann::ordered_json& json, int indent) {
    return json.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

/// Prints an inspection. If the model cannot be compiled, prints what its file says and then throws CompileError.
void inspect_one(const std::string& model, const Arguments& arguments) {
    Outline outline = outline_model(model);
    std::optional<Inspection> inspection;
    std::optional<CompileError> failure;
    try {
        inspection = inspect(model, arguments.options);
        outline.inputs = inspection->inputs;
        outline.outputs = inspection->outputs;
    } catch (const CompileError& error) {
        failure = error;
    }
    if (arguments.as_json) {
        nlohmann::ordered_json json = to_json(outline);
        if (inspection) add_json(json, *inspection);
        if (failure) json["error"] = failure->what();
        fmt::print("{}\n", json_text(json, arguments.models.size() == 1 ? 2 : -1));
    } else {
        print_outline(outline);
        if (inspection) print_inspection(*inspection);
    }
    flush_output();
    if (failure) throw *failure;
}

/// Inspects each model; one that fails does not stop the others. JSON of several models is one line each.
int inspect_all(Arguments& arguments) {
    arguments.options.dims = parse_dims(arguments.dims);
    arguments.options.parallel = process_count(0);
    int status = exit_done;
    for (const std::string& model : arguments.models) {
        try {
            inspect_one(model, arguments);
        } catch (const CompileError& error) {
            fmt::print(stderr, "{}\n", error.what());
            status = exit_model_at_fault;
        }
    }
    return status;
}

}  // namespace

void add_inspect_command(CLI::App& app, Invocation& invocation) {
    const auto arguments = std::make_shared<Arguments>();
    CLI::App* command = app.add_subcommand("inspect", "show a model's graph, types, shapes, work, kernels and memory");
    command->add_option("MODEL", arguments->models, "ONNX models")->option_text(" ")->required();
    add_target_option(*command, arguments->options.target);
    add_dim_option(*command, arguments->dims);
    add_convolution_option(*command, arguments->options.convolution);
    add_until_option(*command, arguments->options.until);
    command->add_flag("--json", arguments->as_json, "as JSON; one line per model if there are several");
    command->footer(help_footer("  onnx2halide inspect mnist.onnx\n"
                                "  onnx2halide inspect --json yunet.onnx --dim height=320 --dim width=320\n"
                                "  onnx2halide inspect resnet18.onnx --until conv1 --convolution direct"));
    command->callback([arguments, &invocation] {
        end_tidily_on_signals();  // inference may build and run what sizes depend on
        invocation.status = inspect_all(*arguments);
    });
}

}  // namespace onnx2halide
