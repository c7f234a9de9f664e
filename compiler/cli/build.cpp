#include <memory>

#include <fmt/format.h>

#include "compiler/build/interrupt.h"
#include "compiler/cli/commands.h"
#include "compiler/driver/compile.h"

namespace onnx2halide {

void add_build_command(CLI::App& app, Invocation& invocation) {
    struct Arguments {
        std::string folder;
        CompileOptions options;
    };
    const auto arguments = std::make_shared<Arguments>();
    CLI::App* command = app.add_subcommand("build", "rebuild NAME.a from sources that a person has edited");
    command->add_option("DIR", arguments->folder, "folder that `compile` left")->option_text(" ")->required();
    add_emit_option(*command, arguments->options.emit, "further results instead of those that are there");
    add_parallel_option(*command, arguments->options.parallel);
    command->footer(help_footer(
        "  onnx2halide build mnist                              # after editing mnist/mnist_generators.cpp\n"
        "  onnx2halide build mnist --emit stmt_html,assembly    # to see what Halide makes of it"));
    command->callback([arguments, &invocation] {
        end_tidily_on_signals();
        arguments->options.progress = show_progress;
        const std::vector<std::string> warnings = rebuild(arguments->folder, arguments->options);
        clear_progress();
        for (const std::string& warning : warnings) fmt::print(stderr, "{}\n", warning);
        invocation.status = exit_done;
    });
}

}  // namespace onnx2halide
