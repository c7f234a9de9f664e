#include <memory>

#include <fmt/format.h>

#include "compiler/build/interrupt.h"
#include "compiler/cli/commands.h"
#include "compiler/driver/compile.h"

namespace onnx2halide {

void add_build_command(CLI::App& app, Invocation& invocation) {
    const auto options = std::make_shared<CompileOptions>();
    CLI::App* command = app.add_subcommand("build", "rebuild NAME.a from sources that a person has edited");
    command->add_option("DIR", options->output, "folder that `compile` left")->option_text(" ")->required();
    add_emit_option(*command, options->emit, "further results instead of those that are there");
    add_parallel_option(*command, options->parallel);
    command->footer(help_footer(
        "  onnx2halide build mnist                              # after editing mnist/mnist_generators.cpp\n"
        "  onnx2halide build mnist --emit stmt_html,assembly    # to see what Halide makes of it"));
    command->callback([options, &invocation] {
        end_tidily_on_signals();
        options->progress = show_progress;
        const Stopwatch watch;
        const std::vector<CompileResult> results = rebuild(options->output, *options);
        clear_progress();
        for (const CompileResult& result : results) {
            for (const std::string& warning : result.warnings) fmt::print(stderr, "{}\n", warning);
            tell(success_text(result, *options, watch.seconds()));
        }
        invocation.status = exit_done;
    });
}

}  // namespace onnx2halide
