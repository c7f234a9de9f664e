#include <memory>

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
    command->add_option("DIR", arguments->folder, "folder that `compile` left")->required();
    command->add_option("-j", arguments->options.parallel, "processes to build with; default: one a core")
        ->check(CLI::Range(1, 1024));
    add_emit_option(*command, arguments->options.emit, "further results instead of those that `compile` left");
    command->footer("Example:\n  onnx2halide build mnist   # after editing mnist/mnist_generators.cpp");
    command->callback([arguments, &invocation] {
        end_tidily_on_signals();
        arguments->options.progress = show_progress;
        rebuild(arguments->folder, arguments->options);
        clear_progress();
        invocation.status = exit_done;
    });
}

}  // namespace onnx2halide
