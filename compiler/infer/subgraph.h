#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/graph/dim.h"
#include "compiler/graph/graph.h"

namespace onnx2halide {

/// What the inference of nodes with subgraphs has in common: If, Loop and Scan.

/// Copies the type and known elements of a captured value to the input of the subgraph that stands for it. Throws
/// CompileError if the value is missing.
void pass_on(Value* outer, Value* inner);

/// Moves symbols that a subgraph has bound to its captures to the outer values that these stand for.
void bind_outside(const std::vector<Value*>& outer, const std::vector<Value*>& inner);

/// A symbol that the node sets at run time, see own_symbol_name.
Dim fresh_symbol(const Node& node, const std::string& role, int64_t min = 0, int64_t max = Dim::unbounded);

/// Replaces all uses of a node's output, which may be null.
void replace(Graph& graph, Value* output, Value* by);

/// The value of a condition, or nullopt if only a run knows it.
std::optional<bool> known_condition(const Value* condition);

/// Whether a value that must be one element of this type has one, if its shape says so. Throws CompileError if it
/// cannot.
Proof is_one_element(const Value& value, std::string_view name, ElementType expected);

/// Makes an operand that must have one element a tensor of shape 1, which is checked at run time if its size is open.
void require_one_element(Graph& graph, Node& node, size_t i, std::string_view name, ElementType expected);

}  // namespace onnx2halide
