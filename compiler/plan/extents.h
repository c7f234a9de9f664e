#pragma once

#include <map>
#include <memory>
#include <vector>

#include "compiler/plan/groups.h"

namespace onnx2halide {

/// A copy of a group in which every extent above 1 of the values it reads and makes is a symbol of its own, so that one
/// kernel serves all sizes. Extents 0 and 1 stay: broadcasting and empty tensors depend on them.
class SymbolicCopy {
public:
    SymbolicCopy(const Group& group, const std::vector<const Value*>& escaping);

    const Group& group() const { return group_; }
    const std::vector<const Value*>& escaping() const { return escaping_; }
    /// The number that a symbol of the copy stands for.
    Dim extent(const std::string& symbol) const { return extents_.at(symbol); }
    const Value* original(const Value* copy) const { return originals_.at(copy); }

private:
    Value* copy(const Value* value);

    Group group_;
    std::vector<const Value*> escaping_;
    std::map<std::string, Dim> extents_;
    std::map<const Value*, const Value*> originals_;
    std::map<const Value*, std::unique_ptr<Value>> copies_;  // by original
    std::vector<std::unique_ptr<Node>> nodes_;
};

}  // namespace onnx2halide
