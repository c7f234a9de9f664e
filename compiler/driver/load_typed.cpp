#include "compiler/driver/load_typed.h"

#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "compiler/driver/fold_programs.h"
#include "compiler/infer/cache_dims.h"
#include "compiler/infer/fixed_dims.h"
#include "compiler/infer/infer.h"

namespace onnx2halide {

namespace fs = std::filesystem;

namespace {

using Dims = std::map<std::string, DimRange>;

/// A model as far as inference came.
struct TypedModel {
    Model model;
    std::string error;  // why a node has no type; empty: every node has one
};

TypedModel load_and_infer(const fs::path& path, const Dims& dims, const CompileOptions& options) {
    TypedModel typed{load_model(path, {dims, options.until}), ""};
    try {
        infer_types(*typed.model.graph, [&](Node& node) { return fold_node(node, options.parallel); });
    } catch (const CompileError& error) {
        typed.error = error.what();
    }
    return typed;
}

/// Adds to `dims` what inference has found out about the model's open dims, and returns whether any of that is new.
/// Eventually nothing is: a dim that has become a number is no longer open, a lower bound only rises, at most to the
/// 2^16 at which least_dims stops searching, and a dim becomes a cache only if it has no bounds yet.
bool add_bounds(const TypedModel& typed, Dims& dims) {
    Graph& graph = *typed.model.graph;
    const auto fixed = fixed_dims(graph), least = least_dims(graph);
    for (const auto& [dim, number] : least) dims.insert_or_assign(dim, DimRange{number, Dim::unbounded});
    for (const auto& [dim, number] : fixed) dims.insert_or_assign(dim, DimRange{number, number});
    if (!fixed.empty() || !least.empty()) return true;
    if (!typed.error.empty()) return false;  // cache_dims needs all types
    bool is_new = false;
    for (const std::string& dim : cache_dims(graph))
        is_new |= dims.try_emplace(dim, DimRange{0, Dim::unbounded}).second;
    return is_new;
}

/// Names the dims that are 0: they make values empty, which causes errors far from the inputs.
std::string empty_dims_text(const Dims& dims) {
    std::vector<std::string> flags;
    for (const auto& [key, range] : dims) {
        if (range.max == 0) flags.push_back(fmt::format("--dim {}=0", key));
    }
    return flags.empty() ? "" : fmt::format(" (with {})", fmt::join(flags, " "));
}

}  // namespace

Model load_typed(const fs::path& path, const CompileOptions& options) {
    Dims dims = options.dims;
    TypedModel typed;
    // The loader applies the bounds of dims, and types and folded constants are inferred from them. So when inference
    // finds new bounds, the model is loaded again.
    do {
        typed = {};  // frees the weights of the last one
        typed = load_and_infer(path, dims, options);
    } while (add_bounds(typed, dims));
    if (!typed.error.empty()) throw CompileError("{}: {}{}", path.string(), typed.error, empty_dims_text(options.dims));
    return typed.model;
}

std::string message_with_path(const fs::path& path, const CompileError& error) {
    const std::string prefix = path.string() + ": ", text = error.what();
    return text.starts_with(prefix) ? text : prefix + text;
}

}  // namespace onnx2halide
