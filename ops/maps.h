#pragma once

#include "compiler/graph/graph.h"

namespace onnx2halide {

/// The labels of ZipMap (1) or a classifier, integers (the attribute `integers`) or strings, in their order. Enters
/// strings in the table. Throws CompileError unless one of the two attributes has any.
Constant read_labels(const Node& node, StringTable& strings, const std::string& integers = "classlabels_int64s");

/// The vocabulary of DictVectorizer (1).
struct Vocabulary {
    Constant keys;     // integers or strings, in ascending order; one or more
    Constant columns;  // the result's column of each key
};

/// Likewise.
Vocabulary read_vocabulary(const Node& node, StringTable& strings);

}  // namespace onnx2halide
