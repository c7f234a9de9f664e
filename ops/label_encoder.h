#pragma once

#include "compiler/graph/graph.h"

namespace onnx2halide {

/// What LabelEncoder says in its attributes: a value for each key.
struct Encoding {
    Constant keys;                    // each once, in ascending order, without NaN; one or more
    Constant values;                  // one a key
    Constant otherwise;               // one element: the value of what is no key
    std::optional<Constant> missing;  // likewise that of NaN, where it has one of its own
};

/// Reads LabelEncoder (2, 4) with keys and values that are numbers. Throws CompileError for strings, and where keys and
/// values contradict each other or the input.
Encoding read_encoding(const Node& node);

}  // namespace onnx2halide
