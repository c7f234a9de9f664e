#include "compiler/emit/template.h"

#include <stdexcept>

#include "compiler/io/files.h"
#include "onnx2halide_paths.h"

namespace onnx2halide {

std::string fill_template(const std::string& file, const std::map<std::string, std::string>& fields) {
    const std::string text = read_text(std::string(ONNX2HALIDE_TEMPLATES_DIR "/") + file);
    std::string result;
    size_t position = 0;
    for (;;) {
        const size_t start = text.find('@', position),
                     end = start == std::string::npos ? start : text.find('@', start + 1);
        if (end == std::string::npos) return result + text.substr(position);
        const std::string field = text.substr(start + 1, end - start - 1);
        const auto found = fields.find(field);
        if (found == fields.end()) throw std::logic_error("template " + file + " has an unknown field @" + field + "@");
        result += text.substr(position, start - position) + found->second;
        position = end + 1;
    }
}

}  // namespace onnx2halide
