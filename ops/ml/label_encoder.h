#pragma once

#include "compiler/graph/graph.h"

namespace onnx2halide {

/// The attributes of LabelEncoder or CategoryMapper: a map from keys to values.
struct Encoding {
    Constant keys;                    // distinct, in ascending order, without NaN; at least one
    Constant values;                  // one per key
    Constant otherwise;               // one element: the default, for what is not a key
    std::optional<Constant> missing;  // one element: the value of NaN, if it differs
};

/// Reads the attributes of LabelEncoder (1, 2, 4) or CategoryMapper (1), and adds strings to the table. Throws
/// CompileError if keys and values contradict each other or the input.
Encoding read_encoding(const Node& node, StringTable& strings);

/// The categories of OneHotEncoder (1), integers or strings.
Constant read_categories(const Node& node, StringTable& strings);

}  // namespace onnx2halide
