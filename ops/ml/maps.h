#pragma once

#include "compiler/graph/graph.h"

namespace onnx2halide {

/// The labels of ZipMap (1) or a classifier in their order, integers (from the attribute `integers`) or strings, which
/// are added to the table. Throws CompileError if neither attribute has any.
Constant read_labels(const Node& node, StringTable& strings, const std::string& integers = "classlabels_int64s");

/// The vocabulary of DictVectorizer (1).
struct Vocabulary {
    Constant keys;     // integers or strings, in ascending order; at least one
    Constant columns;  // the result's column for each key
};

/// Reads it; strings are added to the table.
Vocabulary read_vocabulary(const Node& node, StringTable& strings);

}  // namespace onnx2halide
