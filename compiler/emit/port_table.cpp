#include "compiler/emit/port_table.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ops/names.h"

namespace onnx2halide {

void PortTable::add(const TensorType& type, const std::string& name, const std::vector<int64_t>& least) {
    const std::string prefix = fmt::format("{}_{}", direction_, count_++);
    const std::string text = row(type, string_literal(name), prefix);
    rows_ += fmt::format("    {{{}, {}}},\n", text, least.empty() ? "NULL" : array(prefix + "_least", least));
}

std::string PortTable::text(const std::string& model) const {
    return fmt::format("{}const onnx2halide_port {}_{}s[] = {{\n{}    {{NULL, 0, 0, NULL, 0, NULL, NULL}},\n}};\n",
                       arrays_, model, direction_, rows_);
}

/// A row without its last field.
std::string PortTable::row(const TensorType& type, const std::string& name, const std::string& prefix) {
    return type.box ? box_row(*type.box, name, prefix) : tensor_row(type, type.rank(), name, prefix);
}

/// A row of a tensor. `rank` is -1 if any is allowed.
std::string PortTable::tensor_row(const TensorType& type, int64_t rank, const std::string& name,
                                  const std::string& prefix) {
    std::string dims = "NULL";
    if (rank > 0) {
        std::vector<int64_t> extents;
        for (const Dim& dim : type.shape) extents.push_back(dim.constant().value_or(-1));
        dims = array(prefix + "_dims", extents);
    }
    return fmt::format("{}, {}, {}, {}, 0, NULL", name, static_cast<int>(type.element), rank, dims);
}

std::string PortTable::box_row(const BoxType& box, const std::string& name, const std::string& prefix) {
    const bool has_rank = box.holds_boxes() || box.rank == BoxType::Rank::known;
    const std::string item = prefix + "_item",
                      inner = has_rank ? row(box.item, "NULL", item) : tensor_row(box.item, -1, "NULL", item);
    arrays_ += fmt::format("static const onnx2halide_port {} = {{{}, NULL}};\n", item, inner);
    const std::string_view kind = box.kind == BoxType::Kind::sequence   ? "ONNX2HALIDE_SEQUENCE"
                                  : box.kind == BoxType::Kind::optional ? "ONNX2HALIDE_OPTIONAL"
                                                                        : "ONNX2HALIDE_MAP";
    return fmt::format("{}, {}, 0, NULL, {}, &{}", name, static_cast<int>(box.key), kind, item);
}

/// Adds an array of this name, which it returns.
std::string PortTable::array(const std::string& name, const std::vector<int64_t>& numbers) {
    arrays_ += fmt::format("static const int64_t {}[] = {{{}}};\n", name, fmt::join(numbers, ", "));
    return name;
}

std::vector<int64_t> least_extents(const TensorType& type) {
    const bool is_open = std::any_of(type.shape.begin(), type.shape.end(), [](const Dim& d) { return !d.constant(); });
    if (type.box || !is_open) return {};
    std::vector<int64_t> least;
    for (const Dim& dim : type.shape) least.push_back(*dim.lower_bound());
    return least;
}

}  // namespace onnx2halide
