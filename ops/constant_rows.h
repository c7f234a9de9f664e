#pragma once

#include <string>
#include <vector>

#include "compiler/graph/graph.h"

// Constants of rank 1, which operators of ai.onnx.ml make of their attributes.
namespace onnx2halide {

/// A row of elements whose C type is that of `element`.
template <typename T>
Constant row_of(ElementType element, const std::vector<T>& elements) {
    return make_constant(element, {static_cast<int64_t>(elements.size())}, elements);
}

/// A row of strings, which are added to the table.
Constant row_of(StringTable& table, const std::vector<std::string>& strings);

/// The items of whichever of two attributes has any: one of integers, the other of strings, which are added to the
/// table. Throws CompileError if neither has any, or both have.
Constant read_items(const Node& node, const std::string& integers, const std::string& strings, StringTable& table);

}  // namespace onnx2halide
