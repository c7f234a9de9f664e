#pragma once

#include <stdexcept>
#include <string>

#include <fmt/format.h>

namespace onnx2halide {

/// An error in the user's model or its data. The text says what was found and what was expected, in one lower-case
/// phrase without a full stop. Errors of the compiler itself are assertions or std::logic_error.
class CompileError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;

    template <typename... Args>
    explicit CompileError(fmt::format_string<Args...> format, Args&&... args)
        : std::runtime_error(fmt::format(format, std::forward<Args>(args)...)) {}
};

/// An error on the command line, with a text in the same form.
class UsageError : public std::runtime_error {
public:
    template <typename... Args>
    explicit UsageError(fmt::format_string<Args...> format, Args&&... args)
        : std::runtime_error(fmt::format(format, std::forward<Args>(args)...)) {}
};

}  // namespace onnx2halide
