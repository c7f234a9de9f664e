#include <memory>

#include <fmt/format.h>

#include "compiler/cli/commands.h"
#include "compiler/driver/rebuild.h"
#include "compiler/io/interrupt.h"

namespace onnx2halide {

namespace {

struct Arguments {
    std::filesystem::path folder;
    std::vector<std::string> emit;
    int parallel = 0;
};

}  // namespace

void add_build_command(CLI::App& app, Invocation& invocation) {
    const auto arguments = std::make_shared<Arguments>();
    CLI::App* command = app.add_subcommand("build", "rebuild NAME.a from sources that a person has edited");
    command->add_option("DIR", arguments->folder, "folder that `compile` left")->option_text(" ")->required();
    add_emit_option(*command, arguments->emit, "further results, instead of those that are there");
    add_parallel_option(*command, arguments->parallel);
    command->footer(help_footer(
        "  onnx2halide build mnist                              # after editing mnist/mnist_generators.cpp\n"
        "  onnx2halide build mnist --emit stmt_html,assembly    # to see what Halide makes of it"));
    command->callback([arguments, &invocation] {
        end_tidily_on_signals();
        const std::vector<CompileResult> results =
            rebuild(arguments->folder, {arguments->emit, process_count(arguments->parallel), show_progress});
        clear_progress();
        for (const CompileResult& result : results) {
            for (const std::string& warning : result.warnings) fmt::print(stderr, "{}\n", warning);
            tell(success_text(result, arguments->folder, false));
        }
        invocation.status = exit_done;
    });
}

}  // namespace onnx2halide
