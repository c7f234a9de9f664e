#pragma once

#include <exception>
#include <stdexcept>
#include <string>

#include "compiler/io/files.h"

namespace onnx2halide {

/// Why a model was not compiled.
struct Fault {
    std::string text;
    bool is_ours = false;  // the compiler's, not the model's or the machine's
};

inline Fault fault_of(const std::exception& error) {
    return {message_of(error), dynamic_cast<const std::runtime_error*>(&error) == nullptr};
}

}  // namespace onnx2halide
