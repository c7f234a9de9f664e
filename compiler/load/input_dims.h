#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <onnx/onnx_pb.h>

#include "compiler/load/load.h"
#include "ops/names.h"

namespace onnx2halide {

/// The dims of a model's inputs. Those that the model leaves open get the numbers that the user gives, or are symbols.
class InputDims {
public:
    /// Throws CompileError if the user gives bounds that exclude each other for dims of one name.
    InputDims(const std::map<std::string, DimRange>& given, const onnx::GraphProto& graph);

    /// The type of an input, which must be a tensor. Throws CompileError if it has no shape.
    TensorType type_of(const onnx::ValueInfoProto& input);

    /// Throws CompileError if the user gives a dim that no input leaves open.
    void check_given() const;

    /// The symbols, by name, with their bounds.
    const std::map<std::string, Dim>& symbols() const { return symbols_; }

private:
    /// A dim that the model leaves open.
    struct OpenDim {
        std::string name;  // in the model; may be empty
        std::string input;
        int axis;

        std::string place() const;                                      // INPUT:AXIS
        std::string hint() const;                                       // that the symbol's name is made from
        bool has_name() const { return !name.empty() && name != "?"; }  // a '?' is as good as none
    };

    static std::optional<OpenDim> open_dim(const onnx::ValueInfoProto& input, int axis);
    std::vector<std::string> given_keys(const OpenDim& open) const;
    void narrow(const OpenDim& open);
    Dim dim_of(const OpenDim& open);
    std::string new_symbol(const OpenDim& open);
    std::string key_of(const OpenDim& dim) const;
    std::string open_dims_text() const;

    const std::map<std::string, DimRange>& given_;
    std::map<std::string, DimRange> bounds_;  // by the model's name
    Names names_;
    std::map<std::string, Dim> symbols_, by_model_name_, by_place_;
    std::vector<OpenDim> dims_, open_dims_;  // all that the model leaves open, and those that the user leaves open, too
    std::set<std::string> used_;
};

}  // namespace onnx2halide
