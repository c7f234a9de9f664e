#include "compiler/build/generator_file.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "compiler/graph/error.h"

namespace onnx2halide {

namespace {

/// Strips the banner and the comment on the first class from a preamble: objects do not depend on them.
std::string without_outer_comments(const std::string& preamble) {
    std::vector<std::string> lines;
    std::istringstream stream(preamble);
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    const auto is_code = [](const std::string& line) { return !line.empty() && !line.starts_with("//"); };
    const auto first = std::find_if(lines.begin(), lines.end(), is_code);
    const auto last = std::find_if(lines.rbegin(), std::make_reverse_iterator(first), is_code).base();
    return fmt::format("{}\n", fmt::join(first, last, "\n"));
}

/// The start of the first line at or after `position` that is neither empty nor a comment.
size_t first_code(const std::string& text, size_t position) {
    while (position < text.size() && (text[position] == '\n' || text.compare(position, 2, "//") == 0)) {
        position = std::min(text.find('\n', position), text.size() - 1) + 1;
    }
    return position;
}

}  // namespace

GeneratorFile split_generators(const std::string& name, const std::string& text) {
    GeneratorFile file{name, "", {}};
    std::set<std::string> names;
    size_t position = 0;
    for (size_t mark = text.find(registration_mark); mark != std::string::npos;
         mark = text.find(registration_mark, position)) {
        const size_t name_start = mark + registration_mark.size(),
                     last = std::min(text.find('\n', text.find(')', mark)), text.size() - 1);
        const std::string class_name = text.substr(name_start, text.find_first_of(",)", name_start) - name_start);
        const size_t declared = text.find("\nclass " + class_name + " ", position);
        if (declared > mark) throw CompileError("HALIDE_REGISTER_GENERATOR({}) does not follow its class", class_name);
        if (!names.insert(class_name).second) throw CompileError("class {} is defined twice", class_name);
        const size_t start = file.classes.empty() ? declared + 1 : first_code(text, position);
        if (file.classes.empty()) file.preamble = without_outer_comments(text.substr(0, start));
        const size_t line =
            1 + static_cast<size_t>(std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(start), '\n'));
        file.classes.push_back({class_name, text.substr(start, last + 1 - start), line});
        position = last;
    }
    if (text.find("\nclass ", position) != std::string::npos)
        throw CompileError("the last class is not followed by HALIDE_REGISTER_GENERATOR");
    const size_t rest = first_code(text, position + 1);
    if (!file.classes.empty() && rest < text.size()) {
        const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(rest), '\n');
        throw CompileError("line {}: '{}' follows the last HALIDE_REGISTER_GENERATOR and belongs to no class", line,
                           text.substr(rest, text.find('\n', rest) - rest));
    }
    return file;
}

}  // namespace onnx2halide
