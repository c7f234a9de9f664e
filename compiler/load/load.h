#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "compiler/graph/graph.h"

namespace onnx2halide {

/// What a user specifies about the model to load.
struct LoadOptions {
    /// Numbers or bounds for dims that the model leaves open, by their names in the model (`--dim batch=1`, `--dim
    /// batch=1..32`) or by input and axis (`--dim image:0=1`), which takes precedence.
    std::map<std::string, DimRange> dims;
    /// `--until conv1`: the node or value that the graph ends at. Empty for the model's outputs.
    std::string until;
};

/// A loaded model: a graph without functions, in which every operator has a NodeGenerator.
struct Model {
    std::string file;    // without its folder: tiny.onnx
    std::string sha256;  // of the file's bytes, in hex
    std::shared_ptr<Graph> graph;
};

/// Reads a model, checks it with ONNX's checker, inlines its functions and expands operators that have no NodeGenerator
/// (see replace_by_bodies). Throws a CompileError, whose text starts with the path, if the file is not a model, is
/// rejected by the checker or lacks external data, or if operators are not supported, all of which it lists.
Model load_model(const std::filesystem::path& path, const LoadOptions& options);

/// The newest opset of ONNX's own domain that a model may use.
int newest_opset();

}  // namespace onnx2halide
