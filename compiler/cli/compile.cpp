#include <algorithm>
#include <filesystem>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "compiler/build/kernels.h"
#include "compiler/cli/commands.h"
#include "compiler/driver/compile.h"
#include "compiler/io/interrupt.h"

namespace onnx2halide {

namespace {

constexpr std::string_view autoscheduler_prefix = "auto:";

/// The values of --schedule that are not files.
std::vector<std::string> schedule_names() {
    std::vector<std::string> names = {"default", "naive"};
    for (const std::string& name : autoschedulers()) names.push_back(std::string(autoscheduler_prefix) + name);
    return names;
}

bool is_schedule_name(const std::string& text) {
    const std::vector<std::string> names = schedule_names();
    return std::find(names.begin(), names.end(), text) != names.end();
}

/// The value of --schedule as the driver takes it.
ScheduleChoice schedule_of(const std::string& text) {
    if (text == "default") return DefaultSchedule();
    if (text == "naive") return NaiveSchedule();
    if (is_schedule_name(text)) return Autoscheduler{text.substr(autoscheduler_prefix.size())};
    return ScheduleFile{text};
}

/// Why --schedule cannot take this value; empty if it can.
std::string why_no_schedule(const std::string& text) {
    if (is_schedule_name(text) || std::filesystem::is_regular_file(text)) return "";
    return fmt::format("'{}', expected a file or one of {}", text, fmt::join(schedule_names(), ", "));
}

struct Arguments {
    std::vector<std::string> models, dims;
    std::string schedule = "default", weights = "embed", pipeline = "kernels";
    int parallel = 0;
    CompileOptions options;
};

int compile(Arguments& arguments) {
    CompileOptions& options = arguments.options;
    options.dims = parse_dims(arguments.dims);
    options.schedule = schedule_of(arguments.schedule);
    options.pipeline = arguments.pipeline == "whole" ? Pipeline::whole : Pipeline::kernels;
    options.weights_in_file = arguments.weights == "file";
    options.parallel = process_count(arguments.parallel);
    // The C compiler would take paths in it for options.
    if (options.output.string().starts_with('-')) options.output = "." / options.output;
    options.progress = show_progress;
    const auto results = compile_models({arguments.models.begin(), arguments.models.end()}, options);
    clear_progress();
    int status = exit_done;
    for (const CompileResult& result : results) {
        for (const std::string& warning : result.warnings) fmt::print(stderr, "{}\n", warning);
        if (!result.fault) {
            tell(success_text(result, options.output, options.sources_only));
        } else {
            fmt::print(stderr, "{}\n", result.fault->text);
            status = std::max<int>(status, result.fault->is_ours ? exit_our_fault : exit_model_at_fault);
        }
    }
    return status;
}

}  // namespace

void add_compile_command(CLI::App& app, Invocation& invocation) {
    const auto arguments = std::make_shared<Arguments>();
    CompileOptions& options = arguments->options;
    CLI::App* command = app.add_subcommand("compile", "compile models into NAME.a, NAME.h and their sources");
    command->add_option("MODEL", arguments->models, "ONNX models; several are built side by side")
        ->option_text(" ")
        ->required();
    command->add_option("-o,--output", options.output, "folder of the results; default: the working folder")
        ->option_text("DIR");
    command
        ->add_option("--name", options.name, "name of the C functions and files; default: from the model's file name")
        ->option_text("NAME")
        ->check(not_empty("a name"));
    add_target_option(*command, options.target);
    add_dim_option(*command, arguments->dims);
    add_emit_option(*command, options.emit, "further results");
    command
        ->add_option("--schedule", arguments->schedule,
                     "default; naive: every Func is computed on its own, as a baseline; auto:mullapudi2016, "
                     "auto:adams2019 or auto:li2018: one of Halide's autoschedulers; FILE: functions void "
                     "KERNEL::schedule(), as --emit schedule writes them")
        ->option_text("KIND or FILE")
        ->check(CLI::Validator(why_no_schedule, ""));
    command
        ->add_option(
            "--pipeline", arguments->pipeline,
            "kernels, the default: many; whole: one, for a small model of fixed shapes, so that an autoscheduler "
            "sees all of it; without an autoscheduler every Func is computed on its own")
        ->option_text("KIND")
        ->check(one_of({"kernels", "whole"}));
    add_convolution_option(*command, options.convolution);
    command
        ->add_option("--weights", arguments->weights,
                     "embed, the default: in the library; file: in NAME.weights, which is read at run time")
        ->option_text("PLACE")
        ->check(one_of({"embed", "file"}));
    command
        ->add_option("--tuning", options.tuning_file,
                     "parameters of the kernels' schedules, as `onnx2halide tune` finds them; kernels that are not in "
                     "the file keep their own")
        ->option_text("FILE");
    command->add_option("--trials", options.trials)->group("");  // for `tune`
    command->add_option("--cc", options.cc, "C compiler of the host program; default: gcc")->option_text("COMMAND");
    command->add_flag("--overwrite", options.overwrite, "overwrite edited sources, and files of other origin, too");
    add_until_option(*command, options.until);
    command->add_flag("--all-values", options.all_values, "make every value of the graph an output");
    command->add_flag("--sources-only", options.sources_only,
                      "write the sources without building them; `onnx2halide build` does that later");
    add_parallel_option(*command, arguments->parallel);
    command->footer(help_footer(R"(  onnx2halide mnist.onnx -o mnist
  onnx2halide compile model.onnx --dim batch=1 --target x86-64-linux-avx2-fma-f16c -o out
  onnx2halide compile model.onnx --dim 'image:2=48' --dim 'image:3=192' -o out
  onnx2halide compile model.onnx --emit shared_library,stmt_html --weights file -o out
  onnx2halide compile model.onnx --schedule auto:adams2019 --emit schedule -o out)"));
    command->callback([arguments, &invocation] {
        end_tidily_on_signals();
        arguments->options.command = invocation.command_line;
        invocation.status = compile(*arguments);
    });
}

}  // namespace onnx2halide
