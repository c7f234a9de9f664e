#include "compiler/driver/schedule_file.h"

#include <regex>
#include <sstream>

#include <fmt/format.h>

#include "compiler/graph/error.h"
#include "compiler/io/files.h"
#include "ops/names.h"

namespace onnx2halide {

Schedules read_schedules(const std::filesystem::path& file) {
    static const std::regex head(R"(void (\w+)::schedule\(\) \{)");
    Schedules schedules;
    std::string* body = nullptr;  // of the function that contains the line
    std::istringstream stream(read_text(file));
    int number = 0;
    for (std::string line; std::getline(stream, line);) {
        ++number;
        if (line.ends_with('\r')) line.pop_back();  // of an editor that ends lines as Windows does
        std::smatch found;
        if (body) {
            if (line == "}")
                body = nullptr;
            else
                *body += line.empty() ? "\n" : "    " + line + "\n";
        } else if (std::regex_match(line, found, head)) {
            const auto [schedule, is_new] = schedules.try_emplace(found[1]);
            if (!is_new)
                throw CompileError("{}:{}: kernel '{}' is scheduled twice", file.string(), number, found[1].str());
            body = &schedule->second;
            *body = fmt::format("        // From {}.\n", file.filename().string());
        } else if (!line.empty() && !line.starts_with("//")) {
            throw CompileError("{}:{}: '{}', expected void KERNEL::schedule() {{", file.string(), number, line);
        }
    }
    if (body) throw CompileError("{}: the last function is not closed by a line with only }}", file.string());
    return schedules;
}

std::string schedules_text(const KernelJob& job, const std::string& model_file) {
    std::string text = fmt::format(
        "// onnx2halide: schedules of {0} by {1}, for {2}\n"
        "// compile and build overwrite this file; to use a copy: onnx2halide compile {0} --schedule FILE\n",
        comment_text(model_file), job.autoscheduler, job.file.classes.front().target);
    for (const GeneratorClass& generator : job.file.classes) {
        const auto found = job.schedules.find(generator.name);
        if (found == job.schedules.end()) continue;
        text += fmt::format("\nvoid {}::schedule() {{\n    Pipeline pipeline = get_pipeline();\n", generator.name);
        std::istringstream stream(found->second);
        for (std::string line; std::getline(stream, line);) text += line.empty() ? "\n" : "    " + line + "\n";
        text += "}\n";
    }
    return text;
}

}  // namespace onnx2halide
