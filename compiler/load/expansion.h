#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/graph/domains.h"

namespace onnx {
class AttributeProto;
class NodeProto;
}  // namespace onnx

namespace onnx2halide {

/// The opset of ONNX's own domain that bodies are written for, whatever that of the model.
constexpr int body_opset = 24;

/// A node to be expanded: its attributes, and which of its optional inputs and outputs are present. Reading an
/// attribute as another type than its own throws CompileError.
class OperatorCall {
public:
    explicit OperatorCall(const onnx::NodeProto& node) : node_(node) {}

    bool has_input(int i) const;
    bool has_output(int i) const;

    bool has(std::string_view attribute) const { return find(attribute) != nullptr; }
    int64_t integer(std::string_view attribute, int64_t otherwise) const;
    float real(std::string_view attribute, float otherwise) const;
    std::string string(std::string_view attribute, const std::string& otherwise) const;
    std::vector<int64_t> integers(std::string_view attribute) const;     // empty if it is missing
    std::vector<float> reals(std::string_view attribute) const;          // likewise
    std::vector<std::string> strings(std::string_view attribute) const;  // likewise

    /// A required attribute in [1, 2^31). Throws CompileError if it is missing or out of range.
    int64_t count(std::string_view attribute) const;
    /// Those of these attributes that are present, in ONNX's textual syntax: `<group: int = 2, pads: ints = [1, 1]>`.
    std::string passed_on(std::initializer_list<std::string_view> attributes) const;
    /// The same for the attributes of Conv.
    std::string passed_on_to_conv() const {
        return passed_on({"auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"});
    }

    /// The number of a Conv's or pool's spatial axes, as its attributes have it; 2 if it has none of them.
    size_t spatial_rank() const;

    /// Throw CompileError if the call has this flag, input or output, which is not supported.
    void refuse_flag(std::string_view attribute) const;
    void refuse_input(int i, std::string_view name) const;
    void refuse_output(int i, std::string_view name) const;

private:
    const onnx::AttributeProto* find(std::string_view attribute) const;
    const onnx::AttributeProto* find(std::string_view attribute, int type) const;

    const onnx::NodeProto& node_;
};

/// The nodes that replace a call, in ONNX's textual syntax: `z = Add(x, bias)`. They read the formal inputs and make
/// the formal outputs. A formal input that the call omits is omitted wherever the body reads it; an output that the
/// call omits need not be made. Every name is defined once, also across subgraphs.
struct OperatorBody {
    std::vector<std::string> inputs, outputs;
    std::string nodes;

    void add(std::string_view text);
    /// Defines `name`, a scalar of the type of `like`.
    void add_scalar(std::string_view name, float value, std::string_view like);
    /// Defines `planes`, an NHWC image in NCHW layout; add_image does the reverse. Images may have any number of
    /// spatial axes.
    void add_planes(std::string_view planes, std::string_view image, size_t spatial_rank = 2);
    void add_image(std::string_view image, std::string_view planes, size_t spatial_rank = 2);
};

/// One row of the table of operators that are expanded. `expand` throws CompileError if it does not support the call.
struct ExpandedOperator {
    std::string_view domain, type;
    int since;  // first opset of its domain
    OperatorBody (*expand)(const OperatorCall& call);
};

/// The rows of each family.
std::vector<ExpandedOperator> activation_expansions();
std::vector<ExpandedOperator> normalisation_expansions();
std::vector<ExpandedOperator> attention_expansions();
std::vector<ExpandedOperator> grouped_attention_expansions();
std::vector<ExpandedOperator> fused_expansions();
std::vector<ExpandedOperator> image_expansions();
std::vector<ExpandedOperator> spectrum_expansions();
std::vector<ExpandedOperator> integer_expansions();
std::vector<ExpandedOperator> hybrid_expansions();
std::vector<ExpandedOperator> linear_attention_expansions();
std::vector<ExpandedOperator> expert_expansions();
std::vector<ExpandedOperator> recurrent_expansions();
std::vector<ExpandedOperator> precursor_expansions();
std::vector<ExpandedOperator> experimental_expansions();
std::vector<ExpandedOperator> generation_expansions();

/// Every row, sorted by domain and type.
std::span<const ExpandedOperator> expanded_operators();

}  // namespace onnx2halide
