#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "compiler/cli/commands.h"
#include "compiler/driver/compile.h"
#include "compiler/graph/error.h"

namespace onnx2halide {

namespace {

struct Arguments {
    std::vector<std::string> models, dims;
    std::string target = "host";
    bool as_json = false;
};

using Ports = std::vector<std::pair<std::string, TensorType>>;

void print_ports(const char* title, const Ports& ports) {
    for (const auto& [name, type] : ports) fmt::print("{:<12}{}  {}\n", title, name, type.text());
}

void print_table(const Inspection& inspection) {
    fmt::print("{:<12}{} (opset {}, sha256 {})\n", "model", inspection.file, inspection.opset, inspection.sha256);
    print_ports("input", inspection.inputs);
    print_ports("output", inspection.outputs);
    if (!inspection.open_dims.empty()) fmt::print("{:<12}{}\n", "open dims", fmt::join(inspection.open_dims, ", "));
    fmt::print("{:<12}{}\n{:<12}{}\n{:<12}{}\n", "nodes", inspection.nodes.size(), "parameters", inspection.parameters,
               "FLOPs", inspection.flops);
    fmt::print("{:<12}{} distinct, {} calls\n{:<12}{} bytes in all, without scratch memory\n\n", "kernels",
               inspection.kernels, inspection.steps.size(), "arena", inspection.arena_bytes);
    fmt::print("{:<5}{:<24}{:<48}{}\n", "node", "operator", "result", "type");
    for (const InspectedNode& node : inspection.nodes) {
        for (const auto& [name, type] : node.outputs)
            fmt::print("{:<5}{:<24}{:<48}{}\n", node.index, node.op_type, name, type.text());
    }
    fmt::print("\n{:<5}{:<56}{:>14}\n", "step", "kernel", "FLOPs");
    for (size_t i = 0; i < inspection.steps.size(); ++i)
        fmt::print("{:<5}{:<56}{:>14}\n", i, inspection.steps[i].first, inspection.steps[i].second);
}

/// [{"name": "image", "element": "float32", "shape": ["batch", 3, 224, 224]}]
nlohmann::ordered_json ports_json(const Ports& ports) {
    auto list = nlohmann::ordered_json::array();
    for (const auto& [name, type] : ports) {
        auto shape = nlohmann::ordered_json::array();
        for (const Dim& dim : type.shape)
            dim.constant() ? shape.push_back(*dim.constant()) : shape.push_back(dim.text());
        list.push_back({{"name", name}, {"element", info(type.element).name}, {"shape", shape}});
    }
    return list;
}

nlohmann::ordered_json to_json(const Inspection& inspection) {
    nlohmann::ordered_json json = {{"file", inspection.file},
                                   {"sha256", inspection.sha256},
                                   {"opset", inspection.opset},
                                   {"open_dims", inspection.open_dims}};
    json["inputs"] = ports_json(inspection.inputs);
    json["outputs"] = ports_json(inspection.outputs);
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
    return json;
}

/// With several models one that fails does not stop the others; JSON has a line a model then.
int inspect_all(const Arguments& arguments) {
    CompileOptions options;
    options.target = arguments.target;
    options.dims = parse_dims(arguments.dims);
    int status = exit_done;
    for (const std::string& model : arguments.models) {
        try {
            const Inspection inspection = inspect(model, options);
            if (arguments.as_json) {
                fmt::print("{}\n", to_json(inspection).dump(arguments.models.size() == 1 ? 2 : -1));
            } else {
                print_table(inspection);
            }
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
    command->add_option("MODEL", arguments->models, "ONNX models")->required();
    command->add_option("--target", arguments->target, "Halide target")->check(is_target())->capture_default_str();
    command->add_option("--dim", arguments->dims, "number for a dim that the model leaves open, as in --dim batch=1")
        ->allow_extra_args(false);
    command->add_flag("--json", arguments->as_json, "as JSON; with several models a line each");
    command->footer("Example:\n  onnx2halide inspect mnist.onnx");
    command->callback([arguments, &invocation] { invocation.status = inspect_all(*arguments); });
}

}  // namespace onnx2halide
