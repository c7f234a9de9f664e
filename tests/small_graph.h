#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/graph/graph.h"

namespace onnx2halide {

/// A graph for a test, from one statement a line, with inferred types:
///
///     x = input float32[batch,4]            # dims are numbers or symbols
///     w = constant int64[2] 3 -1            # without numbers every element is 0.5, or 1 where the type has no half
///     y, z = Split(x, , w) axis=1 pads=1,1  # an empty operand is an omitted one
///     output y, z
///
/// Attributes are integers, floats (1.0), lists of integers of two or more, or words. Op.DOMAIN names an operator of
/// another domain, Op-13 its version.
/// A node is called like its first result.
std::unique_ptr<Graph> parse_graph(std::string_view text);

/// The nodes that a graph holds now, one a line: `y = Relu(x)`, and last `output y`. Values made by passes show under
/// their own names.
std::string graph_text(const Graph& graph);

/// float32[batch,4], and {1,3,2,0} behind it where the layout is not row-major
std::string type_text(const TensorType& type);

/// Whether a pass changes none of a graph's nodes.
bool is_left_alone(std::string_view text, const std::function<void(Graph&)>& pass);

/// The nodes of a graph by name.
Node* find_node(const Graph& graph, std::string_view name);

/// What inference says against a graph, or nothing.
std::string error_of(std::string_view text);

/// The kernel of the node that makes the first output, with its schedule for AVX2.
std::string kernel_text(std::string_view text);
/// The same for a target, such as "x86-64-linux-avx2-fma".
std::string kernel_text(const Graph& graph, const std::string& target);

/// The statements that the node which makes the first output writes, one a line.
std::string statements(std::string_view text);

}  // namespace onnx2halide
