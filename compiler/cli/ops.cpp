#include <map>
#include <memory>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "compiler/cli/commands.h"
#include "compiler/load/expansion.h"
#include "ops/node_generator.h"

namespace onnx2halide {

namespace {

/// The first opsets of the rows of each public operator, including those that are expanded, by domain and type.
std::map<std::pair<std::string, std::string>, std::set<int>> public_operators() {
    std::map<std::pair<std::string, std::string>, std::set<int>> operators;
    for (const Operator& row : all_operators()) {
        if (row.domain != own_domain) operators[{std::string(row.domain), std::string(row.type)}].insert(row.since);
    }
    for (const ExpandedOperator& row : expanded_operators())
        operators[{std::string(row.domain), std::string(row.type)}].insert(row.since);
    return operators;
}

int print_operators(bool as_json) {
    const auto operators = public_operators();
    if (as_json) {
        nlohmann::ordered_json list = nlohmann::ordered_json::array();
        for (const auto& [name, since] : operators)
            list.push_back({{"domain", name.first}, {"operator", name.second}, {"since", *since.begin()}});
        fmt::print("{}\n", list.dump(2));
        return exit_done;
    }
    fmt::print("{:<32}{:<20}{}\n", "operator", "domain", "from opset");
    for (const auto& [name, since] : operators)
        fmt::print("{:<32}{:<20}{}\n", name.second, name.first.empty() ? "ai.onnx" : name.first, *since.begin());
    fmt::print("\n{} operators, each from its opset on; the standard's other function operators are expanded.\n",
               operators.size());
    return exit_done;
}

}  // namespace

void add_ops_command(CLI::App& app, Invocation& invocation) {
    const auto as_json = std::make_shared<bool>(false);
    CLI::App* command = app.add_subcommand("ops", "list the operators that are supported");
    command->add_flag("--json", *as_json, "as JSON");
    command->footer(help_footer("  onnx2halide ops\n  onnx2halide ops --json"));
    command->callback([as_json, &invocation] { invocation.status = print_operators(*as_json); });
}

}  // namespace onnx2halide
