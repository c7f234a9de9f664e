#include "compiler/load/input_dims.h"

#include <algorithm>
#include <regex>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace onnx2halide {

std::string InputDims::OpenDim::place() const { return fmt::format("{}:{}", input, axis); }

std::string InputDims::OpenDim::hint() const { return has_name() ? name : fmt::format("{}_dim_{}", input, axis); }

/// A name for a symbol that differs from those that the compiler gives to symbols that are set at run time: see
/// extent_symbol_name, element_symbol_name and own_symbol_name.
std::string InputDims::new_symbol(const OpenDim& open) {
    static const std::regex own("(.*_)?(extent|element)_[0-9_]+(of_[0-9]+)?"
                                "|[A-Za-z]+_[0-9]+_(iterations?|(output|state|slice)_[0-9]+_[0-9]+)");
    const std::string name = names_.unique(open.hint());
    return name == thread_count_symbol || std::regex_match(name, own) ? names_.unique(name + "_dim") : name;
}

InputDims::InputDims(const std::map<std::string, DimRange>& given, const onnx::GraphProto& graph) : given_(given) {
    for (const auto& input : graph.input()) {
        for (int axis = 0; axis < input.type().tensor_type().shape().dim_size(); ++axis) {
            if (const auto open = open_dim(input, axis)) narrow(*open);
        }
    }
}

/// An axis that the model leaves open, or nullopt.
std::optional<InputDims::OpenDim> InputDims::open_dim(const onnx::ValueInfoProto& input, int axis) {
    const auto& dim = input.type().tensor_type().shape().dim(axis);
    if (dim.has_dim_value() && dim.dim_value() >= 0) return std::nullopt;
    return OpenDim{dim.dim_param(), input.name(), axis};
}

/// What the user calls a dim, as far as it is given. The last takes precedence.
std::vector<std::string> InputDims::given_keys(const OpenDim& open) const {
    std::vector<std::string> keys;
    // In reports and headers a dim is called by an identifier, which its name may not be.
    for (const std::string& key : {identifier(open.hint()), open.name, open.place()}) {
        if (!key.empty() && given_.contains(key)) keys.push_back(key);
    }
    return keys;
}

/// Restricts all dims of this one's name to the bounds that are given for it. A number is that of the axis alone.
void InputDims::narrow(const OpenDim& open) {
    const std::vector<std::string> keys = given_keys(open);
    if (!open.has_name() || keys.empty()) return;
    const std::string& key = keys.back();
    const DimRange& given = given_.at(key);
    if (given.min == given.max) return;
    const auto [known, is_new] = bounds_.try_emplace(open.name, given);
    DimRange& bounds = known->second;
    if (given.max < bounds.min || given.min > bounds.max)
        throw CompileError("--dim {}={}: other bounds restrict the dim '{}' to {}", key, given.text(), open.name,
                           bounds.text());
    bounds = {std::max(bounds.min, given.min), std::min(bounds.max, given.max)};
}

TensorType InputDims::type_of(const onnx::ValueInfoProto& input) {
    const auto& tensor = input.type().tensor_type();
    if (!tensor.has_shape()) throw CompileError("input '{}' has no shape", input.name());
    std::vector<Dim> shape;
    for (int axis = 0; axis < tensor.shape().dim_size(); ++axis) {
        const auto open = open_dim(input, axis);
        shape.push_back(open ? dim_of(*open) : Dim(tensor.shape().dim(axis).dim_value()));
    }
    return {element_type_of(tensor.elem_type()), std::move(shape)};
}

Dim InputDims::dim_of(const OpenDim& open) {
    dims_.push_back(open);
    DimRange range = {1, Dim::unbounded};
    for (const std::string& key : given_keys(open)) {
        used_.insert(key);
        range = given_.at(key);
    }
    const auto bounds = bounds_.find(open.name);
    if (range.min != range.max && bounds != bounds_.end()) range = bounds->second;
    if (range.min == range.max) return range.min;
    open_dims_.push_back(open);
    const auto [known, is_new] =
        open.has_name() ? by_model_name_.try_emplace(open.name) : by_place_.try_emplace(open.place());
    if (is_new) {
        const std::string symbol = new_symbol(open);
        known->second = symbols_[symbol] = Dim::symbol(symbol, range.min, range.max);
    }
    return known->second;
}

void InputDims::check_given() const {
    for (const auto& [name, range] : given_) {
        if (used_.contains(name)) continue;
        throw CompileError("--dim {}={}: the model leaves no dim of that name open{}", name, range.text(),
                           open_dims_text());
    }
}

/// The key of a dim for `--dim`: its name or, if it has none or an ambiguous one, such as a '?' at several axes of one
/// input, INPUT:AXIS.
std::string InputDims::key_of(const OpenDim& dim) const {
    const auto is_namesake = [&](const OpenDim& other) {
        return other.name == dim.name && other.input == dim.input && other.axis != dim.axis;
    };
    const bool is_unclear = dim.name.empty() || std::any_of(dims_.begin(), dims_.end(), is_namesake);
    return is_unclear ? dim.place() : dim.name;
}

std::string InputDims::open_dims_text() const {
    if (open_dims_.empty()) return "";
    std::set<std::string> keys;
    for (const OpenDim& dim : open_dims_) keys.insert(key_of(dim));
    return fmt::format("; open are: {}", fmt::join(keys, ", "));
}

}  // namespace onnx2halide
