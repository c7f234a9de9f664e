#include <memory>

#include <fmt/format.h>

#include "compiler/build/interrupt.h"
#include "compiler/cli/commands.h"
#include "compiler/driver/compile.h"

namespace onnx2halide {

namespace {

const std::map<std::string, ConvAlgorithm> convolution_names = {
    {"auto", ConvAlgorithm::automatic}, {"direct", ConvAlgorithm::direct}, {"winograd", ConvAlgorithm::winograd}};

struct Arguments {
    std::vector<std::string> models, dims;
    std::string schedule = "default", weights = "embed";
    CompileOptions options;
};

int compile(Arguments& arguments) {
    CompileOptions& options = arguments.options;
    options.dims = parse_dims(arguments.dims);
    options.naive = arguments.schedule == "naive";
    options.weights_in_file = arguments.weights == "file";
    options.progress = show_progress;
    const auto results = compile_models({arguments.models.begin(), arguments.models.end()}, options);
    clear_progress();
    int status = exit_done;
    for (const CompileResult& result : results) {
        if (result.error.empty()) continue;
        fmt::print(stderr, "{}\n", result.error);
        status = exit_model_at_fault;
    }
    return status;
}

}  // namespace

void add_compile_command(CLI::App& app, Invocation& invocation) {
    const auto arguments = std::make_shared<Arguments>();
    CompileOptions& options = arguments->options;
    CLI::App* command = app.add_subcommand("compile", "compile models into NAME.a, NAME.h and their sources");
    command->add_option("MODEL", arguments->models, "ONNX models; several build side by side")->required();
    command->add_option("-o,--output", options.output, "folder for the results")->capture_default_str();
    command->add_option("--name", options.name, "of the C functions and files; default: the model's file name");
    command->add_option("--target", options.target, "Halide target: host, x86-64-linux-avx2-fma-f16c, host-opencl, …")
        ->check(is_target())
        ->capture_default_str();
    command->add_option("--dim", arguments->dims, "number for a dim that the model leaves open, as in --dim batch=1")
        ->allow_extra_args(false);
    add_emit_option(*command, options.emit, "further results, separated by commas");
    command->add_flag("--overwrite", options.overwrite, "overwrite sources that were edited, too");
    command->add_option("--schedule", arguments->schedule, "default, or naive: every Func at root")
        ->check(CLI::IsMember({"default", "naive"}))
        ->capture_default_str();
    command
        ->add_option("--convolution", options.convolution,
                     "how 3x3 convolutions of stride 1 compute: auto, direct, or winograd, whose transforms round more")
        ->transform(CLI::CheckedTransformer(convolution_names))
        ->default_str("auto");
    command
        ->add_option("--weights", arguments->weights, "embed: in the archive; file: NAME.weights is read at run time")
        ->check(CLI::IsMember({"embed", "file"}))
        ->capture_default_str();
    command->add_option("--cc", options.cc, "C compiler for the host program")->capture_default_str();
    command->add_option("-j", options.parallel, "processes to build with; default: one a core")
        ->check(CLI::Range(1, 1024));
    command->add_option("--until", options.until,
                        "name of a node or value: the model ends there, and what it makes is the output");
    command->add_flag("--sources-only", options.sources_only, "leave out what needs the kernels built");
    command->add_flag("--all-values", options.all_values, "make every value of the graph an output");
    command->footer(R"(Examples:
  onnx2halide mnist.onnx -o mnist
  onnx2halide compile model.onnx --dim batch=1 --target x86-64-linux-avx2-fma-f16c -o out
  onnx2halide compile model.onnx --emit shared_library,stmt_html --weights file -o out)");
    command->callback([arguments, &invocation] {
        end_tidily_on_signals();
        arguments->options.command = invocation.command_line;
        invocation.status = compile(*arguments);
    });
}

}  // namespace onnx2halide
