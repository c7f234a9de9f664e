#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "compiler/plan/groups.h"

namespace onnx2halide {

/// A copy of a group in which symbols replace extents, so that more groups share a kernel.
class SymbolicCopy {
public:
    enum class Extents {
        /// Every constant extent above 1 of the group's inputs and outputs becomes a symbol of its own, so that one
        /// kernel serves all sizes. Extents 0 and 1 stay, because broadcasting and empty tensors depend on them.
        all,
        /// Every atom that is not an open dim, such as max(batch, 4) or a count that is known at run time only, becomes
        /// a symbol, the same one wherever it occurs. So does a product of symbols that only occur together. The host
        /// computes each once, Halide gets short expressions to reason about, and kernels for other counts have the
        /// same text.
        compound,
    };
    /// `open_dims` are the model's, which keep their names. They must outlive the copy.
    SymbolicCopy(const Group& group, const std::vector<const Value*>& escaping, Extents extents,
                 const std::map<std::string, Dim>& open_dims);

    const Group& group() const { return group_; }
    const std::vector<const Value*>& escaping() const { return escaping_; }
    /// The expression that a symbol of the copy stands for, in symbols of the graph.
    Dim extent(const std::string& symbol) const {
        const auto found = extents_.find(symbol);
        return found == extents_.end() ? Dim::symbol(symbol) : found->second;
    }
    const Value* original(const Value* copy) const { return originals_.at(copy); }

private:
    Value* copy(const Value* value);
    void name_all(Value& value, size_t number);
    void name_compound(Value& value);
    Dim name_compound(const Dim& dim);
    void name_products();
    Dim named(const Dim& meaning);

    Extents kind_;
    const std::map<std::string, Dim>& open_dims_;

    Group group_;
    std::vector<const Value*> escaping_;
    std::map<std::string, Dim> extents_;
    std::map<std::string, Dim> named_;  // symbols by the text of the atom that they stand for
    std::map<const Value*, const Value*> originals_;
    std::map<const Value*, std::unique_ptr<Value>> copies_;  // by original
    std::vector<std::unique_ptr<Node>> nodes_;
};

/// Whether the extents or known elements of a group's values contain symbols.
bool has_open_extents(const Group& group);

}  // namespace onnx2halide
