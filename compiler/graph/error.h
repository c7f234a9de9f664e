#pragma once

#include <stdexcept>
#include <string>

#include <fmt/format.h>

namespace onnx2halide {

/// A fault of the user's model or its data: what was expected and what was found, one lower-case phrase without a full
/// stop. Faults of ours are assertions or std::logic_error instead.
class CompileError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;

    template <typename... Args>
    explicit CompileError(fmt::format_string<Args...> format, Args&&... args)
        : std::runtime_error(fmt::format(format, std::forward<Args>(args)...)) {}
};

/// A fault of the command line, told in the same form.
class UsageError : public std::runtime_error {
public:
    template <typename... Args>
    explicit UsageError(fmt::format_string<Args...> format, Args&&... args)
        : std::runtime_error(fmt::format(format, std::forward<Args>(args)...)) {}
};

}  // namespace onnx2halide
