#pragma once

#include <map>
#include <string>

namespace onnx2halide {

/// Returns a file of templates/ with each @FIELD@ replaced. Throws std::logic_error if it has a field that is not
/// given.
std::string fill_template(const std::string& file, const std::map<std::string, std::string>& fields);

}  // namespace onnx2halide
