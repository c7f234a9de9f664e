#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "compiler/graph/graph.h"

namespace onnx2halide {

struct LoadOptions {
    /// Of dims that the model leaves open, by the model's name for them (`--dim batch=1`, `--dim batch=1..32`) or by
    /// input and axis (`--dim image:0=1`), which goes before a name.
    std::map<std::string, DimRange> dims;
    /// `--until conv1`: the node or value at which the graph ends; empty: at the model's outputs.
    std::string until;
};

/// A model as the compiler sees it: a graph without functions, in which every operator has a NodeGenerator.
struct Model {
    std::string file;    // without its folder: tiny.onnx
    std::string sha256;  // of the file's bytes, in hex
    std::shared_ptr<Graph> graph;
};

/// Reads a model, checks it with ONNX's checker, inlines its own functions and expands the standard's function
/// operators that have no NodeGenerator. Throws CompileError, whose text starts with the path, where it is no
/// model, is rejected by the checker or lacks external data; and lists all unsupported operators at
/// once.
Model load_model(const std::filesystem::path& path, const LoadOptions& options);

/// The newest opset of ONNX's own domain that a model may use.
int newest_opset();

}  // namespace onnx2halide
