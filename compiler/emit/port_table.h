#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/graph/box_type.h"
#include "compiler/graph/tensor_type.h"

namespace onnx2halide {

/// Builds C text of the table of a model's inputs or outputs: the arrays to which its rows point, then the table.
class PortTable {
public:
    /// `direction` is input or output.
    explicit PortTable(const std::string& direction) : direction_(direction) {}

    /// Adds a row. `least` are the least extents of a tensor; empty: its extents are fixed.
    void add(const TensorType& type, const std::string& name, const std::vector<int64_t>& least = {});
    std::string text(const std::string& model) const;

private:
    std::string row(const TensorType& type, const std::string& name, const std::string& prefix);
    std::string tensor_row(const TensorType& type, int64_t rank, const std::string& name, const std::string& prefix);
    std::string box_row(const BoxType& box, const std::string& name, const std::string& prefix);
    std::string array(const std::string& name, const std::vector<int64_t>& numbers);

    std::string direction_, arrays_, rows_;
    size_t count_ = 0;
};

/// The least extents of an input; empty if all are fixed.
std::vector<int64_t> least_extents(const TensorType& type);

}  // namespace onnx2halide
