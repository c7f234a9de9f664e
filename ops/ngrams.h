#pragma once

#include "compiler/graph/graph.h"

namespace onnx2halide {

/// The n-grams that TfIdfVectorizer counts.
struct Ngrams {
    Constant pool;  // items: n-grams of one item, then those of two, ...; each length's in ascending order, each once
    Constant lengths;                 // how many there are of each length, from 1
    Constant columns;                 // the result's column of each n-gram
    std::optional<Constant> weights;  // of each n-gram
    int64_t column_count;
};

/// Reads a TfIdfVectorizer (9), and enters strings in the table. Throws CompileError where attributes contradict each
/// other.
Ngrams read_ngrams(const Node& node, StringTable& strings);

}  // namespace onnx2halide
