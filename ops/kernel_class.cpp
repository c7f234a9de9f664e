#include <algorithm>
#include <set>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <re2/re2.h>

#include "ops/kernel_source.h"

namespace onnx2halide {

namespace {

std::string extents_text(const TensorType& type) {
    std::vector<std::string> extents;
    for (const Dim& extent : type.extents()) extents.push_back(extent.text());
    return fmt::format("{}", fmt::join(extents, ", "));
}

/// `Input<Buffer<float, 4>> image{"image"};  // 64, 56, 56, 1`
std::string buffer_member(std::string_view direction, const TensorType& type, const std::string& name) {
    const std::string declaration = fmt::format("    {}<Buffer<{}, {}>> {}{{\"{}\"}};", direction,
                                                info(type.element).halide_name, type.rank(), name, name);
    return type.rank() == 0 ? declaration + "\n" : fmt::format("{}  // {}\n", declaration, extents_text(type));
}

/// The names in lines of C++, but for those in comments.
std::set<std::string> identifiers(const std::string& code) {
    static const re2::RE2 comment_or_name(R"(//.*|(\w+))");
    std::set<std::string> found;
    re2::StringPiece rest(code);
    for (std::string name; re2::RE2::FindAndConsume(&rest, comment_or_name, &name);) found.insert(name);
    return found;
}

/// `    Var c{"c"}, x{"x"};` of those that are used, or nothing
std::string members(std::string_view type, const std::vector<std::string>& names, const std::set<std::string>& used) {
    std::vector<std::string> declared;
    for (const std::string& name : names) {
        if (used.contains(name)) declared.push_back(type == "RDom" ? name : fmt::format("{}{{\"{}\"}}", name, name));
    }
    return declared.empty() ? "" : fmt::format("    {} {};\n", type, fmt::join(declared, ", "));
}

std::string body(const std::vector<std::string>& statements) {
    std::string text;
    bool after_comment = true;
    for (const std::string& statement : statements) {
        // A comment starts a paragraph.
        const bool is_comment = statement.starts_with("//");
        if (is_comment && !after_comment) text += "\n";
        text += "        " + statement + "\n";
        after_comment = is_comment;
    }
    return text;
}

}  // namespace

/// Statements that tell autoschedulers the sizes, and of open dims a likely one.
std::string KernelSource::estimates() const {
    constexpr int64_t likely = 16;
    std::map<std::string, Dim> open;
    std::string text;
    for (const std::string& symbol : symbols_) {
        open[symbol] = likely;
        text += fmt::format("            {}.set_estimate({});\n", symbol, likely);
    }
    for (const auto* values : {&inputs_, &outputs_}) {
        for (const Value* value : *values) {
            std::vector<std::string> extents;
            for (const Dim& extent : value->checked_type().extents()) extents.push_back(extent.substitute(open).text());
            if (extents.empty()) continue;
            text +=
                fmt::format("            onnx::estimate({}, {{{}}});\n", value_names_.at(value), fmt::join(extents, ", "));
        }
    }
    return text;
}

/// The statement that tells a buffer's extents and strides.
std::string KernelSource::shape_text(const Value* value) const {
    const TensorType& type = value->checked_type();
    if (type.rank() == 0) return "";
    const std::string& name = value_names_.at(value);
    if (updated_.contains(value)) {
        std::string text = fmt::format("        {}", name);
        size_t i = 0;
        for (const Dim& extent : type.extents()) text += fmt::format(".dim({}).set_bounds(0, {})", i++, extent.text());
        return text + ";\n";
    }
    const auto pitch = value->pitch();
    return fmt::format("        onnx::{}({}, {{{}}}{});\n", pitch ? "pitched" : "dense", name, extents_text(type),
                       pitch ? fmt::format(", {}", *pitch) : "");
}

std::string KernelSource::text(Schedule schedule, const std::optional<std::string>& given) const {
    std::string text = fmt::format("class {0} : public Halide::Generator<{0}> {{\npublic:\n", class_name_);
    for (const Param& param : params_)
        text += fmt::format("    GeneratorParam<int> {0}{{\"{0}\", {1}}};\n", param.name, param.value);
    if (!params_.empty()) text += "\n";
    for (const Value* input : inputs_) text += buffer_member("Input", input->checked_type(), value_names_.at(input));
    for (const std::string& symbol : symbols_) text += fmt::format("    Input<int32_t> {0}{{\"{0}\"}};\n", symbol);
    for (const Value* output : outputs_)
        text += buffer_member("Output", output->checked_type(), value_names_.at(output));

    text += "\n    void generate() {\n";
    for (const auto* values : {&inputs_, &outputs_}) {
        for (const Value* value : *values) text += shape_text(value);
    }
    text += "\n" + body(algorithm_) + "    }\n\n    void schedule() {\n        if (using_autoscheduler()) {\n" +
            estimates() + "            return;\n        }\n";
    if (given) {
        text += *given;
    } else if (schedule == Schedule::naive) {
        for (const std::string& func : funcs_) text += fmt::format("        {}.compute_root();\n", func);
    } else {
        for (const Lanes& lanes : lanes_)
            text += fmt::format("        const int {} = natural_vector_size<{}>();\n", lanes.name, lanes.type);
        text += body(schedule_);
        if (!maybe_one_.empty() && !target_.is_gpu()) {
            text += fmt::format(
                "\n        // Where nothing is broadcast, elements that follow each other are read as vectors.\n"
                "        {}.specialize({});\n",
                value_names_.at(outputs_.back()), nothing_is_broadcast());
        }
    }
    text += "    }\n";

    const std::set<std::string> used = identifiers(text);
    const std::string internals = members("Var", vars_, used) + members("RVar", rvars_, used) +
                                  members("RDom", rdoms_, used) + members("Func", funcs_, used);
    if (!internals.empty()) text += "\nprivate:\n" + internals;
    return text + fmt::format("}};\nHALIDE_REGISTER_GENERATOR({0}, {0})\n", class_name_);
}

}  // namespace onnx2halide
