#include "compiler/driver/tuning_file.h"

#include <algorithm>
#include <limits>
#include <sstream>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "compiler/io/files.h"
#include "compiler/io/sha256.h"

namespace onnx2halide {

namespace {

using Json = nlohmann::json;

constexpr int tuning_format = 1;

std::string param_names(const KernelSource& source) {
    std::vector<std::string> names;
    for (const KernelSource::Param& param : source.params()) names.push_back(param.role);
    return names.empty() ? "none" : fmt::format("one of {}", fmt::join(names, ", "));
}

/// A tuning file, and its name for messages.
class TuningFile {
public:
    explicit TuningFile(const std::filesystem::path& file) : name_(file.string()), kernels_(parse(read_text(file))) {}

    void apply(const std::string& key, KernelSource& source) const {
        const auto found = kernels_.find(key);
        if (found == kernels_.end()) return;
        const std::string kernel = fmt::format("{}: kernel '{}' ({})", name_, source.class_name(), key);
        const Json params = found->is_object() ? found->value("params", Json()) : Json();
        if (!params.is_object()) throw CompileError("{} has no object 'params'", kernel);
        for (const auto& [role, value] : params.items()) {
            if (!is_param_value(value))
                throw CompileError("{}: parameter '{}' is {}, expected a whole number from 1", kernel, role,
                                   value.dump());
            if (!source.set_param(role, value.get<int>()))
                throw CompileError("{} has no parameter '{}', expected {}", kernel, role, param_names(source));
        }
    }

private:
    /// Returns the object `kernels`. Throws CompileError if the text is not a tuning file.
    Json parse(const std::string& text) const {
        Json json;
        try {
            json = Json::parse(text);
        } catch (const Json::parse_error& error) {
            const size_t at = std::min(error.byte, text.size());
            const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(at), '\n');
            throw CompileError("{}:{}: is not JSON, expected a file that onnx2halide tune wrote", name_, line);
        }
        if (!json.is_object() || !json.contains("format") || !json.value("kernels", Json()).is_object())
            throw CompileError("{}: has no 'format' and 'kernels', expected a file that onnx2halide tune wrote", name_);
        if (json["format"] != tuning_format)
            throw CompileError("{}: has format {}, expected {}", name_, json["format"].dump(), tuning_format);
        return json["kernels"];
    }

    static bool is_param_value(const Json& value) {
        return value.is_number_integer() && value >= 1 && value <= std::numeric_limits<int>::max();
    }

    std::string name_;
    Json kernels_;
};

}  // namespace

std::string tuning_key(const Target& target, const std::string& canonical) {
    constexpr size_t digits = 16;
    std::string code = target.text + "\n";
    std::istringstream lines(canonical);
    for (std::string line; std::getline(lines, line);) {
        const bool is_comment = line.find("//") != std::string::npos && line.find("//") == line.find_first_not_of(' ');
        if (!is_comment) code += line + "\n";
    }
    return sha256(code).substr(0, digits);
}

void apply_tuning(const std::filesystem::path& file, Program& program) {
    const TuningFile tuning(file);
    for (Kernel& kernel : program.kernels) {
        for (size_t i = 0; i < program.targets.size(); ++i)
            tuning.apply(tuning_key(program.targets[i], kernel.canonical[i]), kernel.sources[i]);
    }
}

}  // namespace onnx2halide
