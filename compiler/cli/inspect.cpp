#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "compiler/cli/commands.h"
#include "compiler/driver/compile.h"

namespace onnx2halide {

namespace {

struct Arguments {
    std::string model, target = "host";
    std::vector<std::string> dims;
    bool as_json = false;
};

void print_ports(const char* title, const std::vector<std::pair<std::string, std::string>>& ports) {
    for (const auto& [name, type] : ports) fmt::print("{:<12}{}  {}\n", title, name, type);
}

void print_table(const Inspection& inspection) {
    fmt::print("{:<12}{} (opset {}, sha256 {})\n", "model", inspection.file, inspection.opset, inspection.sha256);
    print_ports("input", inspection.inputs);
    print_ports("output", inspection.outputs);
    if (!inspection.open_dims.empty()) fmt::print("{:<12}{}\n", "open dims", fmt::join(inspection.open_dims, ", "));
    fmt::print("{:<12}{}\n{:<12}{}\n{:<12}{}\n", "nodes", inspection.nodes.size(), "parameters", inspection.parameters, "FLOPs", inspection.flops);
    fmt::print("{:<12}{} distinct, {} calls\n{:<12}{} bytes in all, without scratch memory\n\n", "kernels", inspection.kernels, inspection.steps.size(), "arena",
               inspection.arena_bytes);
    fmt::print("{:<5}{:<24}{:<48}{}\n", "node", "operator", "result", "type");
    for (const InspectedNode& node : inspection.nodes) fmt::print("{:<5}{:<24}{:<48}{}\n", node.index, node.op_type, node.result, node.type);
    fmt::print("\n{:<5}{:<56}{:>14}\n", "step", "kernel", "FLOPs");
    for (size_t i = 0; i < inspection.steps.size(); ++i) fmt::print("{:<5}{:<56}{:>14}\n", i, inspection.steps[i].first, inspection.steps[i].second);
}

void print_json(const Inspection& inspection) {
    nlohmann::ordered_json json = {{"file", inspection.file}, {"sha256", inspection.sha256}, {"opset", inspection.opset}, {"open_dims", inspection.open_dims}};
    const auto ports = [&](const char* key, const std::vector<std::pair<std::string, std::string>>& list) {
        json[key] = nlohmann::ordered_json::array();
        for (const auto& [name, type] : list) json[key].push_back({{"name", name}, {"type", type}});
    };
    ports("inputs", inspection.inputs);
    ports("outputs", inspection.outputs);
    json["parameters"] = inspection.parameters;
    json["flops"] = inspection.flops;
    json["distinct_kernels"] = inspection.kernels;
    json["arena_bytes"] = inspection.arena_bytes;
    json["nodes"] = nlohmann::ordered_json::array();
    for (const InspectedNode& node : inspection.nodes) {
        json["nodes"].push_back({{"index", node.index}, {"operator", node.op_type}, {"result", node.result}, {"type", node.type}});
    }
    json["steps"] = nlohmann::ordered_json::array();
    for (const auto& [kernel, flops] : inspection.steps) json["steps"].push_back({{"kernel", kernel}, {"flops", flops}});
    fmt::print("{}\n", json.dump(2));
}

}  // namespace

void add_inspect_command(CLI::App& app, Invocation& invocation) {
    const auto arguments = std::make_shared<Arguments>();
    CLI::App* command = app.add_subcommand("inspect", "show a model's graph, types, shapes, work, kernels and memory");
    command->add_option("MODEL", arguments->model, "ONNX model")->required();
    command->add_option("--target", arguments->target, "Halide target")->capture_default_str();
    command->add_option("--dim", arguments->dims, "number for a dim that the model leaves open, as in --dim batch=1")->allow_extra_args(false);
    command->add_flag("--json", arguments->as_json, "as JSON");
    command->callback([arguments, &invocation] {
        CompileOptions options;
        options.target = arguments->target;
        options.dims = parse_dims(arguments->dims);
        const Inspection inspection = inspect(arguments->model, options);
        arguments->as_json ? print_json(inspection) : print_table(inspection);
        invocation.status = exit_done;
    });
}

}  // namespace onnx2halide
