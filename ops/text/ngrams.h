#pragma once

#include "compiler/graph/graph.h"

namespace onnx2halide {

/// The n-grams that TfIdfVectorizer counts.
struct Ngrams {
    Constant pool;     // items: n-grams of one item, then those of two, ...; distinct and ascending for each length
    Constant lengths;  // the number of n-grams of each length, from 1
    Constant columns;  // the result's column for each n-gram
    std::optional<Constant> weights;  // of each n-gram
    int64_t column_count;
};

/// Reads the attributes of TfIdfVectorizer (9), and adds strings to the table. Throws CompileError if they contradict
/// each other.
Ngrams read_ngrams(const Node& node, StringTable& strings);

}  // namespace onnx2halide
