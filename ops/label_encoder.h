#pragma once

#include "compiler/graph/graph.h"

namespace onnx2halide {

/// What LabelEncoder or CategoryMapper says in its attributes: a value for each key.
struct Encoding {
    Constant keys;                    // each once, in ascending order, without NaN; one or more
    Constant values;                  // one a key
    Constant otherwise;               // one element: the value of what is no key
    std::optional<Constant> missing;  // likewise that of NaN, where it has one of its own
};

/// Reads LabelEncoder (1, 2, 4) or CategoryMapper (1), and enters strings in the table. Throws CompileError where keys
/// and values contradict each other or the input.
Encoding read_encoding(const Node& node, StringTable& strings);

/// The categories of OneHotEncoder (1), integers or strings.
Constant read_categories(const Node& node, StringTable& strings);

}  // namespace onnx2halide
